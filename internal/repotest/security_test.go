package repotest

import (
	"fmt"
	"strings"
	"testing"
)

// TestSecurity compares the sums of SECURITY.md with the table of docs/attacks.md.
func TestSecurity(t *testing.T) {
	t.Parallel()
	builds := []string{"default", "race and cheap_gomem", "default, with CHEAP_CHECK=stacks", "default, with CHEAP_GUARD=1"}
	columns := map[string]int{"now": 0, "nil": 0, "fault": 0, "later": 1, "no": 2, "crash": 3}
	sums := make([][4]int, len(builds))
	_, table, _ := strings.Cut(read(t, "docs/attacks.md"), "\n| attack | ")
	table, _, _ = strings.Cut(table, "\n\n")
	rows := 0
	for line := range strings.Lines(table) {
		cells := strings.Split(strings.Trim(line, "| \n"), " | ")
		if len(cells) < 1+3*len(builds) || strings.HasPrefix(cells[0], "-") || cells[0] == "default: 16 B" {
			continue
		}
		rows++
		for i, word := range cells[1 : 1+3*len(builds)] {
			column, ok := columns[word]
			if !ok {
				t.Fatalf("docs/attacks.md has the word %q", word)
			}
			sums[i/3][column]++
		}
	}
	if rows < 50 {
		t.Fatalf("docs/attacks.md has %d attacks", rows)
	}
	text := read(t, "SECURITY.md")
	for i, build := range builds {
		want := fmt.Sprintf("| %s | %d | %d | %d | %d |\n", build, sums[i][0], sums[i][1], sums[i][2], sums[i][3])
		if !strings.Contains(text, want) {
			t.Errorf("SECURITY.md has no line %s", want)
		}
	}
}
