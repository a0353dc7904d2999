//go:build cgo

package tables

import (
	"bytes"
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"text/template"

	numbers "github.com/cheapgo/cheap/internal/page/figure"
	"github.com/cheapgo/cheap/internal/page/result"
	"github.com/cheapgo/cheap/internal/page/result/resulttest"
	"github.com/cheapgo/cheap/internal/test/testcall"
)

var updateFigures = flag.Bool("figures.update", false, "write docs/reference/figures.md anew")

// TestFiguresPage compares docs/reference/figures.md with what its template in testdata and the stored report
// make. With -figures.update the page is written anew.
func TestFiguresPage(t *testing.T) {
	text, err := os.ReadFile(docs("reference/report.json"))
	testcall.Must(t, err)
	r := new(result.Report)
	if err := json.Unmarshal(text, &r.Rows); err != nil || len(r.Rows) == 0 {
		t.Fatalf("docs/reference/report.json: %v", err)
	}
	r.Machine = *r.Rows[0].Machine
	page, err := template.New("figures.md").Funcs(template.FuncMap{
		"time":     func(table, row string) (string, error) { return processorTime(r, table, row) },
		"times":    func(table, row, to string) (string, error) { return ratio(r, table, row, to) },
		"clock":    func(row string, procs int) (string, error) { return atProcs(r, row, procs) },
		"tables":   func() string { return storedTables(r) },
		"promises": document,
		"machine":  func() string { return machineOf(r) },
	}).ParseFiles(filepath.Join("testdata", "figures.md"))
	testcall.Must(t, err)
	var want bytes.Buffer
	testcall.Must(t, page.Execute(&want, nil))
	resulttest.Golden(t, docs("reference/figures.md"), want.String(), *updateFigures)
}

// machineOf says where and when the report was measured.
func machineOf(r *result.Report) string {
	m := &r.Machine
	date, _, _ := strings.Cut(m.Date, "T")
	return fmt.Sprintf("%s, %s, %s/%s, %s, %s, GOGC=%s, %s", m.CPU, numbers.Plural(m.Cores, "core"), m.OS, m.Arch, m.Go, m.Malloc, m.GOGC, date)
}

// rowOf returns a row of the report, on so many processors.
func rowOf(r *result.Report, table, name string, procs int) (*result.Row, error) {
	i := slices.IndexFunc(r.Rows, func(row result.Row) bool {
		return row.Table == table && row.Row == name && row.Procs == procs
	})
	if i < 0 {
		return nil, fmt.Errorf("the stored report has no row %s of table %s with GOMAXPROCS=%d", name, table, procs)
	}
	return &r.Rows[i], nil
}

// processor is the processor time of a row, in nanoseconds.
func processor(row *result.Row) float64 {
	if row.CPUNsPerOp == 0 { // it is unknown
		return row.NsPerOp
	}
	return row.CPUNsPerOp
}

func processorTime(r *result.Report, table, name string) (string, error) {
	row, err := rowOf(r, table, name, 1)
	if err != nil {
		return "", err
	}
	return numbers.Duration(processor(row)), nil
}

// ratio divides the processor time of a row by that of another.
func ratio(r *result.Report, table, name, to string) (string, error) {
	row, err := rowOf(r, table, name, 1)
	if err != nil {
		return "", err
	}
	other, err := rowOf(r, table, to, 1)
	if err != nil {
		return "", err
	}
	return strings.TrimSuffix(numbers.Times(processor(row)/processor(other)), "×"), nil
}

// atProcs divides the time by the clock of a row of the table scaling on so many processors by that
// on one.
func atProcs(r *result.Report, name string, procs int) (string, error) {
	row, err := rowOf(r, "scaling", name, procs)
	if err != nil {
		return "", err
	}
	one, err := rowOf(r, "scaling", name, 1)
	if err != nil {
		return "", err
	}
	return strings.TrimSuffix(numbers.Times(row.NsPerOp/one.NsPerOp), "×"), nil
}

// storedTables writes all rows of the report, a table in Markdown for each table.
func storedTables(r *result.Report) string {
	var b strings.Builder
	for _, table := range All() {
		rows := r.RowsOf(table.Name)
		if len(rows) == 0 {
			continue
		}
		fmt.Fprintf(&b, "\n### %s\n\n%s. %s Times are for one %s.\n\n", table.Name, table.Title, table.About, table.Unit)
		columns := usedColumns(rows)
		for _, c := range columns {
			fmt.Fprintf(&b, "| %s ", c.title)
		}
		b.WriteString("|\n" + strings.Repeat("| --- ", len(columns)) + "|\n")
		for i := range rows {
			for _, c := range columns {
				fmt.Fprintf(&b, "| %s ", c.of(&rows[i]))
			}
			b.WriteString("|\n")
		}
		for _, note := range result.Notes(rows) {
			fmt.Fprintf(&b, "\n- %s: %s", note.Rows, note.Text)
		}
		if len(result.Notes(rows)) > 0 {
			b.WriteString("\n")
		}
		for i, s := range table.Sources {
			if i == 0 {
				b.WriteString("\nPublished figures:\n\n")
			}
			author, date := cmp.Or(s.Author, "author unknown"), cmp.Or(s.Date, "date unknown")
			fmt.Fprintf(&b, "- %s: %s, %s (%s); %s. %s\n", s.Name, author, s.Title, date, s.Machine, s.URL)
		}
	}
	return strings.TrimPrefix(b.String(), "\n")
}

// A column of a table.
type column struct {
	title string
	of    func(*result.Row) string
}

// usedColumns returns the columns in which a table's rows have something.
func usedColumns(rows []result.Row) []column {
	number := func(of func(*result.Row) float64, write func(float64) string) func(*result.Row) string {
		return func(row *result.Row) string {
			if text := write(of(row)); of(row) != 0 && text != "0" {
				return text
			}
			return ""
		}
	}
	all := []column{
		{"row", func(row *result.Row) string { return row.Row }},
		{"GOMAXPROCS", func(row *result.Row) string {
			if !result.MixesProcs(rows) {
				return ""
			}
			return fmt.Sprint(row.Procs)
		}},
		{"time", func(row *result.Row) string {
			text := numbers.Duration(row.NsPerOp)
			if len(row.Doubts) > 0 {
				text += " !"
			}
			return text
		}},
		{"processor time", number(func(row *result.Row) float64 { return row.CPUNsPerOp }, numbers.Duration)},
		{"allocations", number(func(row *result.Row) float64 { return row.AllocsPerOp }, numbers.Count)},
		{"bytes of the Go heap", number(func(row *result.Row) float64 { return row.GoBytesPerOp }, numbers.Count)},
		{"resident", number(func(row *result.Row) float64 { return row.Resident }, numbers.Bytes)},
		{"held", number(func(row *result.Row) float64 { return row.Held }, numbers.Count)},
		{"99 of 100 below", number(func(row *result.Row) float64 { return row.P99 }, numbers.Duration)},
		{"ratio", func(row *result.Row) string {
			v := row.Versus
			if v == nil {
				return ""
			}
			text := numbers.Times(v.Ratio) + " of " + v.To
			if v.Noisy {
				text += " ~"
			}
			return text
		}},
		{"published", func(row *result.Row) string {
			var figures []string
			for _, p := range row.Published {
				figures = append(figures, numbers.Duration(p.Ns)+" "+p.Source)
			}
			return strings.Join(figures, "; ")
		}},
	}
	return slices.DeleteFunc(all, func(c column) bool {
		return !slices.ContainsFunc(rows, func(row result.Row) bool { return c.of(&row) != "" })
	})
}
