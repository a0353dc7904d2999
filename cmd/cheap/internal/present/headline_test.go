package present

import (
	"strings"
	"testing"

	"github.com/cheapgo/cheap/cmd/cheap/internal/headline"
	"github.com/cheapgo/cheap/internal/result"
)

// TestHeadlinesFirst has a report with all that a reader should know: the summary is before it, and
// once more behind the last table.
func TestHeadlinesFirst(t *testing.T) {
	r := stored(t)
	r.Partial, r.Warnings = true, []string{"Most rows are missing."}
	r.Rows[0].Doubts = []result.Doubt{result.Waited}
	text := written(t, asText(r, Terminal{}))
	if !strings.HasPrefix(text, "━━ in short") || strings.LastIndex(text, "━━ in short") == 0 {
		t.Errorf("the report does not begin and end with the summary:\n%.500s", text)
	}
	found := headline.Of(r)
	end := strings.Index(text, found[len(found)-1].What)
	for _, later := range []string{"The run was interrupted", "Most rows are missing", "doubtful (!)", r.Machine.CPU} {
		if i := strings.Index(text, later); i < end {
			t.Errorf("%q is at %d, the summary ends behind %d", later, i, end)
		}
	}
}
