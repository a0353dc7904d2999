package corpus

import (
	"fmt"
	"math"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestQuotation compares what docs/tools.md says of recall with results.md.
func TestQuotation(t *testing.T) {
	read := func(name string) string {
		t.Helper()
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	results := read("results.md")
	var found []string
	for _, m := range regexp.MustCompile(`(?m)^\| [^|]+ \| [\d,]+ \| [\d,]+, ([\d.]+) % \|`).FindAllStringSubmatch(results, -1) {
		share, err := strconv.ParseFloat(m[1], 64)
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, fmt.Sprintf("%.0f %%", math.Round(share)))
	}
	if len(found) != 3 {
		t.Fatalf("results.md has %q", found)
	}
	want := fmt.Sprintf("%s, %s and %s of the deletions were found", found[0], found[1], found[2])
	if page := read("../../../docs/tools.md"); !strings.Contains(page, want) {
		t.Errorf("docs/tools.md does not have %q", want)
	}
}
