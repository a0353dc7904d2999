//go:build cgo && unix

package tables

import "testing"

// TestLists makes some calls in each row, fewer and more than a list has.
func TestLists(t *testing.T) {
	table := Lists()
	wantNames(t, table, []string{"cgo", "list-1", "list-5", "list-16", "list-64", "list-1024",
		"reference-1", "reference-5", "reference-16", "reference-64", "reference-1024",
		"condition-1", "condition-5", "condition-16", "condition-64", "condition-1024",
		"eight-cgo", "eight-list-1", "eight-list-5", "eight-list-16", "eight-list-64", "eight-list-1024"})
	for _, row := range table.Rows {
		work, err := row.Open(1)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range []int{1, 3, 2500} {
			work.Run(n)
			if work.Check == nil {
				continue
			}
			if err := work.Check(n); err != nil {
				t.Errorf("%s: %v", row.Name, err)
			}
		}
		if work.Close != nil {
			work.Close()
		}
	}
}
