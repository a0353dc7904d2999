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

// TestQuotation compares what docs/tools.md says of precision and recall with results.md.
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
	var falses, looked [2]int // of cfree, of keepalive
	of := regexp.MustCompile(`^(\d+) of (\d+)$`)
	for line := range strings.Lines(results) {
		cells := strings.Split(line, "|")
		if len(cells) != 8 {
			continue
		}
		for i, cell := range []string{cells[3], cells[5]} {
			if m := of.FindStringSubmatch(strings.TrimSpace(cell)); m != nil {
				f, _ := strconv.Atoi(m[1])
				n, _ := strconv.Atoi(m[2])
				falses[i] += f
				looked[i] += n
			}
		}
	}
	var found []string
	for _, m := range regexp.MustCompile(`(?m)^\| [^|]+ \| [\d,]+ \| [\d,]+, ([\d.]+) % \|`).FindAllStringSubmatch(results, -1) {
		share, err := strconv.ParseFloat(m[1], 64)
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, fmt.Sprintf("%.0f %%", math.Round(share)))
	}
	if looked[0] == 0 || looked[1] == 0 || len(found) != 3 {
		t.Fatalf("results.md has %v findings that were looked at, and %q", looked, found)
	}
	want := []string{
		fmt.Sprintf("%d of %d of cfree and %d of %d of keepalive were false", falses[0], looked[0], falses[1], looked[1]),
		fmt.Sprintf("%s, %s and %s of the deletions were found", found[0], found[1], found[2]),
	}
	page := read("../../../docs/tools.md")
	for _, text := range want {
		if !strings.Contains(page, text) {
			t.Errorf("docs/tools.md does not have %q", text)
		}
	}
}
