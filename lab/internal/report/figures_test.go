package report

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/cheapgo/cheap/internal/page/figure"
	"github.com/cheapgo/cheap/internal/page/result"
	"github.com/cheapgo/cheap/internal/page/result/resulttest"
)

var update = flag.Bool("update", false, "write the documents and the files of testdata anew")

// document returns the name of a file of the checkout, and its text.
func document(t *testing.T, name string) (path, text string) {
	t.Helper()
	path = filepath.Join("..", "..", "..", filepath.FromSlash(name))
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
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

	pricesHead = "| | with cheap | without it |\n| --- | --- | --- |\n"
	pricesFoot = "\n\nWhat the program forgets"
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
	between, rest, found := strings.Cut(after, pricesHead)
	_, after, found2 = strings.Cut(rest, pricesFoot)
	if !found || !found2 {
		t.Fatal("README.md has no table of prices")
	}
	golden(t, path, before+readmeHead+strings.Join(lines, "\n")+readmeFoot+machine+readmeEnd+
		between+pricesHead+strings.Join(prices(t, r), "\n")+pricesFoot+after)
}

// prices returns the lines of README.md that say what this module costs.
func prices(t *testing.T, r *result.Report) []string {
	row := func(table, name string, procs int) *result.Row {
		for i := range r.Rows {
			if row := &r.Rows[i]; row.Table == table && row.Row == name && row.Procs == procs {
				return row
			}
		}
		t.Fatalf("the stored report has no row %s/%s", table, name)
		return nil
	}
	hand := figure.Duration(row("release", "manual-object", 1).NsPerOp) + " by hand"
	return []string{
		fmt.Sprintf("| Making a C object and closing it | %s | %s |", figure.Duration(row("release", "own-close", 1).NsPerOp), hand),
		fmt.Sprintf("| Making one and forgetting it | %s | %s |", figure.Duration(row("release", "own-forget", 1).NsPerOp), hand),
		fmt.Sprintf("| C memory held, if one object in ten is kept and the others are forgotten | %s× what is in use | %s× with runtime.AddCleanup |",
			figure.Exact(row("survivors", "own-10", 1).Held), figure.Exact(row("survivors", "addcleanup-10", 1).Held)),
		fmt.Sprintf("| Processor time of a server's request that closes nothing | %s with pace | %s closed by hand |",
			figure.Duration(row("server", "own-pace", 2).CPUNsPerOp), figure.Duration(row("server", "close", 2).CPUNsPerOp)),
	}
}

// What docs/tools.md shows of the stored report stands between these texts.
const (
	toolsHead = "these are of the stored [report](reference/report.json):\n\n```text\n"
	toolsFoot = "```\n"
)

// TestToolsFigures compares the last lines of the stored report with those that docs/tools.md shows.
func TestToolsFigures(t *testing.T) {
	r := stored(t)
	path, page := document(t, "docs/tools.md")
	before, rest, found := strings.Cut(page, toolsHead)
	_, after, found2 := strings.Cut(rest, toolsFoot)
	if !found || !found2 {
		t.Fatal("docs/tools.md shows nothing of the stored report")
	}
	var last text
	last.headlines(r)
	golden(t, path, before+toolsHead+strings.TrimPrefix(last.String(), "\n")+toolsFoot+after)
}

// figureLine is a line of a table with a row of the report and its time, or a dash.
var figureLine = regexp.MustCompile(`(?m)^(\|[^|]+\| (\w+) ([a-z0-9-]+) \| )([0-9.]+ [a-zµ]+|–)( \|)`)

// TestAlternatives compares the processor times of docs/reference/alternatives.md with those of the stored
// report. A row that this report does not have has a dash.
func TestAlternatives(t *testing.T) {
	r := stored(t)
	path, text := document(t, "docs/reference/alternatives.md")
	lines, without := 0, 0
	want := figureLine.ReplaceAllStringFunc(text, func(line string) string {
		lines++
		m := figureLine.FindStringSubmatch(line)
		for _, row := range r.Rows {
			if row.Table == m[2] && row.Row == m[3] && row.Procs == 1 {
				ns := row.CPUNsPerOp
				if ns == 0 { // it is unknown
					ns = row.NsPerOp
				}
				return m[1] + figure.Duration(ns) + m[5]
			}
		}
		without++
		return m[1] + figure.Missing + m[5]
	})
	// A dash is for rows that came since.
	if lines-without < 17 {
		t.Errorf("%s has %d times, and %d rows that the stored report does not have", path, lines-without, without)
	}
	golden(t, path, want)
}
