package present

import (
	"fmt"
	"strings"

	"github.com/cheapgo/cheap/internal/result"
)

// profiles writes where the processor time of profiled rows went: the shares of at
// least one percent.
func (t *texter) profiles(rows []result.Row) {
	width := 0
	for _, row := range rows {
		if len(row.Profile) > 0 {
			width = max(width, length(rowAndProcs(&row, rows)))
		}
	}
	if width == 0 {
		return
	}
	t.out.WriteString("\nWhere the processor time went, by a CPU profile:\n")
	for _, row := range rows {
		if len(row.Profile) == 0 {
			continue
		}
		var shares []string
		for _, s := range row.Profile {
			if s.Share >= 0.01 {
				shares = append(shares, fmt.Sprintf("%.0f%% %s;", 100*s.Share, s.Function))
			}
		}
		name := rowAndProcs(&row, rows)
		lead := name + strings.Repeat(" ", width-length(name)) + gap
		text := t.hangWords(lead, strings.Repeat(" ", width+len(gap)), shares)
		t.out.WriteString(strings.TrimSuffix(text, ";\n") + "\n")
	}
}

// rowAndProcs names a row, and its number of processors if rows differ in that.
func rowAndProcs(row *result.Row, rows []result.Row) string {
	if result.MixesProcs(rows) {
		return fmt.Sprintf("%s on %d", row.Row, row.Procs)
	}
	return row.Row
}
