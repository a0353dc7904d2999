//go:build cgo

package loops

import (
	"os"
	"strings"
	"testing"
)

// theSeven are the benchmarks of cgoalloc v1.2.1.
var theSeven = []string{
	"DefaultTemporaryData", "FBATemporaryData", "ArenaTemporaryData",
	"DefaultGrowShrink", "FBAGrowShrink",
	"MultilayerTemporaryData", "MultilayerGrowShrink",
}

// TestSameWork checks that the loops of the drop-in are those of the original.
func TestSameWork(t *testing.T) {
	body := func(file, path string) string {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), `"`+path+`"`) {
			t.Errorf("%s does not import %s", file, path)
		}
		_, body, ok := strings.Cut(string(text), "map[string]func(n int) error{\n")
		if !ok {
			t.Fatalf("%s has no map of loops", file)
		}
		return body
	}
	original := body("original.go", "github.com/CannibalVox/cgoalloc")
	dropin := body("dropin.go", "github.com/cheapgo/cheap/x/cgoalloc")
	if original != dropin {
		t.Error("original.go and dropin.go differ in more than the import")
	}
	for _, name := range theSeven {
		if Original[name] == nil || Dropin[name] == nil {
			t.Errorf("there is no loop %s", name)
		}
	}
	if len(Original) != len(theSeven) {
		t.Errorf("there are %d loops of the original, want %d", len(Original), len(theSeven))
	}
}
