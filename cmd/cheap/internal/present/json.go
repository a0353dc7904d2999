package present

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

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
	text, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	report := new(result.Report)
	if err := json.Unmarshal(text, &report.Rows); err != nil {
		return nil, fmt.Errorf("%w: %w", errForeign, err)
	}
	if len(report.Rows) == 0 {
		return nil, fmt.Errorf("%w: it has no rows", errForeign)
	}
	for i, row := range report.Rows {
		if row.Table == "" || row.Row == "" || row.Procs < 1 || row.Machine == nil {
			return nil, fmt.Errorf("%w: element %d has no table, row, number of processors or machine", errForeign, i+1)
		}
		if !slices.ContainsFunc(report.Tables, func(t result.Table) bool { return t.Name == row.Table }) {
			report.Tables = append(report.Tables, result.Table{Name: row.Table})
		}
	}
	report.Machine = *report.Rows[0].Machine
	return report, nil
}
