package inspect

import (
	"bytes"
	"fmt"
	"strconv"
	"text/tabwriter"

	"github.com/cheapgo/cheap/internal/page/figure"
	"github.com/cheapgo/cheap/internal/page/pagejson"
)

// tables returns the tables of a snapshot.
func (s *snapshot) tables() []pagejson.Table {
	list := make([]pagejson.Table, 0, len(tableSpecs)+2)
	for _, t := range tableSpecs {
		has, why := t.has()
		if !has {
			continue
		}
		v := pagejson.Table{Name: t.name, Title: t.title, About: t.about, Labels: append([]string{}, t.labels...), Rows: []pagejson.TableRow{}, Note: why}
		for _, c := range t.columns {
			v.Metrics = append(v.Metrics, pagejson.Heading{Name: c.Name, Head: c.head, Unit: c.Unit, Kind: c.Kind.String(), Help: c.Help})
		}
		t.rows(s, func(labels []string, r row) {
			r.all = s
			values := make([]float64, len(t.columns))
			for i := range t.columns {
				values[i] = t.columns[i].get(&r)
			}
			addRow(&v, append([]string{}, labels...), values)
		})
		if v.Name == "resident" && s.parts.Resident > 0 {
			addRow(&v, []string{inAll}, []float64{float64(s.parts.Resident), float64(s.parts.Swap)})
		}
		list = append(list, v)
	}
	return append(list, mappingsTable(s.reading.Mappings))
}

func (t *tableSpec) has() (has bool, why string) {
	if t.state == nil {
		return true, ""
	}
	return t.state()
}

// addRow adds a row.
func addRow(t *pagejson.Table, labels []string, values []float64) {
	text := make([]string, len(values))
	for i, v := range values {
		text[i] = write(v, t.Metrics[i].Unit)
	}
	t.Rows = append(t.Rows, pagejson.TableRow{Labels: labels, Values: values, Text: text})
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

// writeTable writes the table as text: a line that names the columns, and a line for each row,
// aligned, with the values as they are. If there are no labels, each metric has a line.
func writeTable(w *bytes.Buffer, t *pagejson.Table) {
	fmt.Fprintf(w, "# %s\n", t.Title)
	if t.Note != "" {
		fmt.Fprintln(w, t.Note)
		return
	}
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	if len(t.Labels) == 0 {
		for _, r := range t.Rows {
			for i, m := range t.Metrics {
				fmt.Fprintf(out, "%s\t%s\t\n", m.Head, exact(r.Values[i]))
			}
		}
		_ = out.Flush() // a Buffer returns no error
		return
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
	_ = out.Flush() // likewise
}

// exact writes a value with all its digits.
func exact(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }
