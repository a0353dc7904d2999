package tables

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/cheapgo/cheap/lab/internal/measure"
)

// wantNames fails unless a table's rows have these names, in this order.
func wantNames(t *testing.T, table measure.Table, want []string) {
	t.Helper()
	var got []string
	for _, row := range table.Rows {
		got = append(got, row.Name)
	}
	if !slices.Equal(got, want) {
		t.Errorf("the rows of %s are\n%v, want\n%v", table.Name, got, want)
	}
}

var rowName = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)

// TestAll holds every table to what the rest of the command takes for granted.
func TestAll(t *testing.T) {
	seen := make(map[string]bool)
	for _, table := range All() {
		if table.Name == "" || seen[table.Name] || table.Title == "" || table.About == "" || table.Unit == "" || table.Chart == "" {
			t.Errorf("table %q is incomplete or there twice: %+v", table.Name, table.Table)
		}
		seen[table.Name] = true
		sources := make(map[string]bool)
		for _, s := range table.Sources {
			if s.Name == "" || s.Title == "" || s.Machine == "" || sources[s.Name] {
				t.Errorf("table %s: a source is incomplete or there twice: %+v", table.Name, s)
			}
			sources[s.Name] = true
		}
		groups := make(map[string]string) // of each row
		for _, row := range table.Rows {
			if !rowName.MatchString(row.Name) {
				t.Errorf("%s: %q is no name of a row", table.Name, row.Name)
			}
			if _, twice := groups[row.Name]; twice {
				t.Errorf("%s: row %s is there twice", table.Name, row.Name)
			}
			groups[row.Name] = row.Group
		}
		for _, row := range table.Rows {
			if row.Versus == "" {
				continue
			}
			if group, ok := groups[row.Versus]; !ok || group != row.Group || row.Versus == row.Name {
				t.Errorf("%s: row %s is set beside %q, which takes no turns with it", table.Name, row.Name, row.Versus)
			}
		}
	}
}

// TestDocument checks that docs/figures.md has every table, and that what the headline of
// `cheap bench` says of the objects of the table resident is true.
func TestDocument(t *testing.T) {
	text, err := os.ReadFile(docs("figures.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, table := range All() {
		if !strings.Contains(string(text), "| `"+table.Name+"` |") {
			t.Errorf("docs/figures.md has nothing about table %s", table.Name)
		}
	}
	if LargeObjects != 512 || LargeBytes != 256<<10 {
		t.Error("the headline says: Forgetting 512 C objects of 256 KiB")
	}
}
