package inspect

import (
	"fmt"
	"io"
	"strconv"
	"text/tabwriter"

	"github.com/cheapgo/cheap/internal/figure"
	"github.com/cheapgo/cheap/internal/resident"
)

// A Table is metrics with the same labels, and their values. It is what the page shows.
type Table struct {
	Name    string     `json:"name"`   // in addresses: "heaps"
	Title   string     `json:"title"`  // for people
	About   string     `json:"about"`  // what the table has
	Labels  []string   `json:"labels"` // names of the labels
	Metrics []Heading  `json:"metrics"`
	Rows    []TableRow `json:"rows"`
	Note    string     `json:"note,omitempty"` // why there are no rows
}

// A Heading is a metric of a Table.
type Heading struct {
	Name string `json:"name"` // "" if it is no metric of [Metrics]
	Head string `json:"head"` // a short name, for the column
	Unit string `json:"unit"`
	Kind string `json:"kind"`
	Help string `json:"help"`
}

// A TableRow is a line of a Table.
type TableRow struct {
	Labels []string  `json:"labels"`
	Values []float64 `json:"values"` // of Table.Metrics
	Text   []string  `json:"text"`   // the values as people write them
}

// Tables returns the tables of the metrics, with the values of one read. See [Read]. The tables of
// the C heap are there if the program imports module cmem. It reads the list of mappings, which takes the
// kernel some milliseconds, in which nothing else can be mapped.
func Tables() []Table {
	list, _, _ := readTables(resident.ReadMappings())
	return list
}

// readTables makes the tables, of mappings that were read without the lock, because that takes a while.
func readTables(mappings *resident.Mappings) ([]Table, Verdict, *Overview) {
	reader.mu.Lock()
	defer reader.mu.Unlock()
	s := reader.read(mappings)
	if reader.sites = nil; s.verdict.About == resident.AboutCGrows {
		reader.sites = s.reading.C.Growing
	}
	list := make([]Table, 0, len(tableSpecs)+2)
	for _, t := range tableSpecs {
		has, why := t.has()
		if !has {
			continue
		}
		v := Table{Name: t.name, Title: t.title, About: t.about, Labels: append([]string{}, t.labels...), Rows: []TableRow{}, Note: why}
		for _, c := range t.columns {
			v.Metrics = append(v.Metrics, Heading{Name: c.Name, Head: c.head, Unit: c.Unit, Kind: c.Kind.String(), Help: c.Help})
		}
		t.rows(s, func(labels []string, r row) {
			r.all = s
			values := make([]float64, len(t.columns))
			for i := range t.columns {
				values[i] = t.columns[i].get(&r)
			}
			v.add(append([]string{}, labels...), values)
		})
		if v.Name == "resident" && s.parts.Resident > 0 {
			v.add([]string{inAll}, []float64{float64(s.parts.Resident), float64(s.parts.Swap)})
		}
		list = append(list, v)
	}
	return append(list, mappingsTable(mappings)), verdictOf(s.verdict), s.overview()
}

func (t *tableSpec) has() (has bool, why string) {
	if t.state == nil {
		return true, ""
	}
	return t.state()
}

// add adds a row.
func (t *Table) add(labels []string, values []float64) {
	text := make([]string, len(values))
	for i, v := range values {
		text[i] = write(v, t.Metrics[i].Unit)
	}
	t.Rows = append(t.Rows, TableRow{labels, values, text})
}

// write writes a value for people.
func write(v float64, unit string) string {
	switch {
	case unit == "seconds" && v == 0:
		return "0"
	case unit == "seconds":
		return figure.Duration(v * 1e9)
	case unit == "bytes" && (v >= 1024 || v <= -1024):
		return figure.Bytes(v)
	case unit == "bytes" && v != 0:
		return strconv.Itoa(int(v)) + " B"
	}
	return figure.Thousands(int(v))
}

// WriteText writes the table as text: a line that names the columns, and a line for each row,
// aligned, with the values as they are. If there are no labels, each metric has a line.
func (t *Table) WriteText(w io.Writer) error {
	fmt.Fprintf(w, "# %s\n", t.Title)
	if t.Note != "" {
		_, err := fmt.Fprintln(w, t.Note)
		return err
	}
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	if len(t.Labels) == 0 {
		for _, r := range t.Rows {
			for i, m := range t.Metrics {
				fmt.Fprintf(out, "%s\t%s\t\n", m.Head, exact(r.Values[i]))
			}
		}
		return out.Flush()
	}
	for _, name := range t.Labels {
		fmt.Fprintf(out, "%s\t", name)
	}
	for _, m := range t.Metrics {
		fmt.Fprintf(out, "%s\t", m.Head)
	}
	fmt.Fprintln(out)
	for _, r := range t.Rows {
		for _, label := range r.Labels {
			fmt.Fprintf(out, "%s\t", figure.Printable(label))
		}
		for _, v := range r.Values {
			fmt.Fprintf(out, "%s\t", exact(v))
		}
		fmt.Fprintln(out)
	}
	return out.Flush()
}

// exact writes a value with all its digits.
func exact(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }
