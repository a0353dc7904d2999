package present

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/cheapgo/cheap/internal/result"
)

// TestDocument checks that docs/bench.md has every field of JSON.
func TestDocument(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "docs", "bench.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, of := range []any{result.Row{}, result.Ratio{}, result.Bar{}, result.Published{}, result.Share{}, result.Machine{}, replayedRow{}} {
		kind := reflect.TypeOf(of)
		for i := range kind.NumField() {
			name, _, _ := strings.Cut(kind.Field(i).Tag.Get("json"), ",")
			if name == "-" {
				continue
			}
			if name == "" || !strings.Contains(string(text), "`"+name+"`") {
				t.Errorf("docs/bench.md has nothing about the field %q of %s", name, kind)
			}
		}
	}
}
