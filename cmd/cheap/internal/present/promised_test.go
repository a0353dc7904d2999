package present

import (
	"strings"
	"testing"

	"github.com/cheapgo/cheap/internal/result"
)

// TestPromised shows a bar that is met, one that is missed, and a figure above its limit.
func TestPromised(t *testing.T) {
	row := result.Row{Table: "t", Row: "ours", Procs: 1, NsPerOp: 10, Bars: []result.Bar{
		{Figure: "time", To: "theirs", Value: 0.2512, Bar: 0.5, Limit: 0.6},
		{Figure: "processor time", To: "theirs", Value: 1.3, Bar: 1.25, Limit: 1.6},
		{Figure: "bytes of the Go heap", Value: 27, Bar: 20, Limit: 25},
	}}
	var b strings.Builder
	if err := Text(&b, &result.Report{Tables: []result.Table{{Name: "t"}}, Rows: []result.Row{row}}, Look{}); err != nil {
		t.Fatal(err)
	}
	text := strings.Join(strings.Fields(b.String()), " ")
	for _, want := range []string{
		"row figure of measured bar limit",
		"ours time theirs 0.251 0.5 met 0.6",
		"ours processor time theirs 1.3 1.25 missed 1.6",
		"ours bytes of the Go heap 27 20 above the limit 25",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the report has no %q:\n%s", want, b.String())
		}
	}
}
