package report

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cheapgo/cheap/internal/page/figure"
	"github.com/cheapgo/cheap/internal/page/result"
	"github.com/cheapgo/cheap/internal/page/result/resulttest"
	"github.com/cheapgo/cheap/internal/test/testcall"
)

var update = flag.Bool("update", false, "write the documents and the files of testdata anew")

// document returns the name of a file of the checkout, and its text.
func document(t *testing.T, name string) (path, text string) {
	t.Helper()
	path = filepath.Join("..", "..", "..", filepath.FromSlash(name))
	data, err := os.ReadFile(path)
	testcall.Must(t, err)
	return path, string(data)
}

func golden(t *testing.T, path, got string) {
	t.Helper()
	resulttest.Golden(t, path, got, *update)
}

// stored is the report from which the figures of documents are.
func stored(t *testing.T) *result.Report {
	return resulttest.Stored(t, filepath.Join("..", "..", "..", "docs", "reference", "report.json"))
}

// The table of README.md stands between these texts.
const (
	readmeHead = "| | with cheap | without it | |\n| --- | --- | --- | --- |\n"
	readmeFoot = "\n\nThe figures are those of "
	readmeEnd  = ".\n"
)

// TestReadmeFigures compares the table of README.md with the summary of the stored
// report, and the machine and the date under it with those of the report.
func TestReadmeFigures(t *testing.T) {
	r := stored(t)
	path, text := document(t, "README.md")
	before, rest, found := strings.Cut(text, readmeHead)
	_, rest, found2 := strings.Cut(rest, readmeFoot)
	_, after, found3 := strings.Cut(rest, readmeEnd)
	if !found || !found2 || !found3 {
		t.Fatal("README.md has no table of the stored report")
	}
	var lines []string
	for _, f := range headline(r) {
		lines = append(lines, fmt.Sprintf("| %s | %s | %s | %s |", f.What, f.Ours, f.Theirs, f.Gains))
		if f.Doubt {
			t.Errorf("%s: the stored report has a doubtful time", f.What)
		}
	}
	if len(lines) < 5 {
		t.Errorf("the stored report has %d findings", len(lines))
	}
	m := &r.Machine
	date, _, _ := strings.Cut(m.Date, "T")
	machine := fmt.Sprintf("[one run](docs/reference/report.json): %s, %s, %s/%s, %s, %s, %s", m.CPU, figure.Plural(m.Cores, "core"), m.OS, m.Arch, m.Go, m.Malloc, date)
	golden(t, path, before+readmeHead+strings.Join(lines, "\n")+readmeFoot+machine+readmeEnd+after)
}
