package present

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"

	"github.com/cheapgo/cheap/internal/result"
)

// JSON writes the rows of a report, a list of objects, one in a line.
// docs/json.md describes them.
func JSON(w io.Writer, r *result.Report) error {
	out := bufio.NewWriter(w)
	out.WriteString("[")
	between := "\n"
	for i := range r.Rows {
		line, err := encodeRow(r, r.Rows[i])
		if err != nil {
			return fmt.Errorf("row %s of table %s: %w", r.Rows[i].Row, r.Rows[i].Table, err)
		}
		out.WriteString(between)
		out.Write(line)
		between = ",\n"
	}
	out.WriteString("\n]\n")
	return out.Flush() // which has the error of the writes before it
}

// encodeRow writes a row complete in itself: with its machine, and with lists
// that are not null.
func encodeRow(r *result.Report, row result.Row) ([]byte, error) {
	if r.Replay {
		return json.Marshal(newReplayedRow(&row))
	}
	if row.Machine == nil {
		row.Machine = &r.Machine
	}
	if row.Published == nil {
		row.Published = []result.Published{}
	}
	if row.Samples == nil {
		row.Samples = []float64{}
	}
	return json.Marshal(&row)
}

// errForeign says that JSON did not write a file.
var errForeign = errors.New("not a report of cheap bench")

// ReadJSON reads what JSON has written. For anything else it returns an error of
// one line. The tables have only names, because rows do not describe them.
func ReadJSON(r io.Reader) (*result.Report, error) {
	d := json.NewDecoder(r)
	if start, err := d.Token(); err != nil || start != json.Delim('[') {
		return nil, foreign(err, "it is not a list")
	}
	report := new(result.Report)
	seen := make(map[rowKey]bool)
	for d.More() {
		row, err := decodeRow(d)
		if err != nil {
			return nil, fmt.Errorf("element %d: %w", len(report.Rows)+1, err)
		}
		if seen[keyOf(row)] {
			return nil, fmt.Errorf("%w: it has row %s of table %s twice", errForeign, row.Row, row.Table)
		}
		seen[keyOf(row)] = true
		report.Rows = append(report.Rows, *row)
	}
	if _, err := d.Token(); err != nil {
		return nil, foreign(err, "its list has no end")
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, foreign(nil, "something follows the list")
	}
	if len(report.Rows) == 0 {
		return nil, foreign(nil, "it has no rows")
	}
	report.Machine = *report.Rows[0].Machine
	for _, row := range report.Rows {
		if !slices.ContainsFunc(report.Tables, func(t result.Table) bool { return t.Name == row.Table }) {
			report.Tables = append(report.Tables, result.Table{Name: row.Table})
		}
	}
	return report, nil
}

// foreign says why a file is refused. It passes on an error of the reader itself.
func foreign(err error, why string) error {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case err == nil, errors.As(err, &kind), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("%w: %s", errForeign, why)
	case errors.As(err, &syntax):
		return fmt.Errorf("%w: it is not JSON (%v, at byte %d)", errForeign, syntax, syntax.Offset)
	}
	return err
}

// A wireRow is a row as it is read, with a pointer for each required field. An
// unknown field is of a later version.
type wireRow struct {
	result.Row
	Table     *string             `json:"table"`
	Name      *string             `json:"row"`
	Procs     *int                `json:"procs"`
	NsPerOp   *float64            `json:"ns_per_op"`
	Samples   *[]float64          `json:"samples_ns"`
	Published *[]result.Published `json:"published"`
	Machine   *result.Machine     `json:"machine"`
}

func decodeRow(d *json.Decoder) (*result.Row, error) {
	var w wireRow
	if err := d.Decode(&w); err != nil {
		return nil, foreign(err, "it is not a row")
	}
	for name, lacks := range map[string]bool{
		"table": w.Table == nil, "row": w.Name == nil, "procs": w.Procs == nil, "ns_per_op": w.NsPerOp == nil,
		"samples_ns": w.Samples == nil, "published": w.Published == nil, "machine": w.Machine == nil,
	} {
		if lacks {
			return nil, foreign(nil, "it has no "+name)
		}
	}
	row := w.Row
	row.Table, row.Row, row.Procs, row.NsPerOp = *w.Table, *w.Name, *w.Procs, *w.NsPerOp
	row.Samples, row.Published, row.Machine = *w.Samples, *w.Published, w.Machine
	return &row, validate(&row)
}

// mostNs is longer than any measurement: some decades.
const mostNs = 1e18

// validate refuses figures that no measurement has, and names that would break a
// line on a terminal.
func validate(row *result.Row) error {
	if row.Table == "" || row.Row == "" {
		return foreign(nil, "its table or row has no name")
	}
	m := row.Machine
	for _, text := range []string{row.Table, row.Row, m.Go, m.OS, m.Arch, m.CPU, m.GOGC, m.Malloc, m.HugePages, m.Date} {
		if strings.ContainsFunc(text, func(c rune) bool { return !unicode.IsPrint(c) }) {
			return foreign(nil, fmt.Sprintf("%q has unprintable characters", text))
		}
	}
	if row.Procs < 1 {
		return foreign(nil, fmt.Sprintf("its number of processors is %d", row.Procs))
	}
	for _, ns := range append([]float64{row.NsPerOp}, row.Samples...) {
		if ns < 0 || ns > mostNs {
			return foreign(nil, fmt.Sprintf("it has a time of %v ns", ns))
		}
	}
	return nil
}

// A rowKey tells the rows of a report apart.
type rowKey struct {
	table, row string
	procs      int
}

func keyOf(row *result.Row) rowKey { return rowKey{row.Table, row.Row, row.Procs} }
