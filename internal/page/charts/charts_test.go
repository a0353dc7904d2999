package charts

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/cheapgo/cheap/internal/test/testcall"
)

// TestLibrary reads the library, which is the one that its licences and its recipe are for.
func TestLibrary(t *testing.T) {
	library := Library()
	b, err := os.ReadFile("echarts/package.json")
	testcall.Must(t, err)
	var recipe struct{ Dependencies map[string]string }
	testcall.Must(t, json.Unmarshal(b, &recipe))
	banner, _, _ := strings.Cut(library, "*/")
	if want := "Apache ECharts " + recipe.Dependencies["echarts"] + ","; !strings.Contains(banner, want) {
		t.Errorf("the library says %q, the recipe %q", banner, want)
	}
	if strings.Contains(library, "</script") || strings.Contains(library, "<!--") {
		t.Error("the library ends the script that it is in")
	}
	for _, name := range []string{"LICENSE", "NOTICE", "LICENSE-zrender", "LICENSE-d3", "LICENSE-tslib"} {
		if _, err := os.Stat("echarts/" + name); err != nil {
			t.Error(err)
		}
	}
}
