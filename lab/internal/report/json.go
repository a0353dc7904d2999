package report

import (
	"bytes"
	"encoding/json"
	"io"

	"github.com/cheapgo/cheap/internal/page/result"
)

// JSON writes the rows of a report, a list of objects, one in a line. Each is complete in itself: it
// has its machine, and lists that are not null. [result.Row] describes them.
func JSON(w io.Writer, r *result.Report) error {
	var lines [][]byte
	for _, row := range r.Rows {
		row.Machine = &r.Machine
		if row.Published == nil {
			row.Published = []result.Published{}
		}
		if row.Samples == nil {
			row.Samples = []float64{}
		}
		line, err := json.Marshal(&row)
		if err != nil {
			return err
		}
		lines = append(lines, line)
	}
	_, err := w.Write(append(append([]byte("[\n"), bytes.Join(lines, []byte(",\n"))...), "\n]\n"...))
	return err
}
