// Package resulttest helps tests of what shows a report.
package resulttest

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/cheapgo/cheap/internal/page/result"
)

// Golden compares a text with a file. With update it writes the file anew.
func Golden(t testing.TB, file, got string, update bool) {
	t.Helper()
	if update {
		if err := os.WriteFile(file, []byte(got), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	gotLines, wantLines := strings.Split(got, "\n"), strings.Split(string(want), "\n")
	for i := range min(len(gotLines), len(wantLines)) {
		if gotLines[i] != wantLines[i] {
			t.Fatalf("%s:%d is\n%s\nand should be\n%s\n(a flag of the test writes the file anew)", file, i+1, wantLines[i], gotLines[i])
		}
	}
	if len(gotLines) != len(wantLines) {
		t.Fatalf("%s has %d lines, and should have %d", file, len(wantLines), len(gotLines))
	}
}

// Stored reads a report in JSON. Its tables have only names.
func Stored(t testing.TB, file string) *result.Report {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	r := new(result.Report)
	if err := json.Unmarshal(text, &r.Rows); err != nil || len(r.Rows) == 0 {
		t.Fatalf("%s: %v", file, err)
	}
	r.Machine = *r.Rows[0].Machine
	for _, row := range r.Rows {
		if !slices.ContainsFunc(r.Tables, func(t result.Table) bool { return t.Name == row.Table }) {
			r.Tables = append(r.Tables, result.Table{Name: row.Table})
		}
	}
	return r
}
