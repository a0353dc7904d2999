package present

import (
	"strings"
	"testing"
)

// TestHeadlinesFirst looks for the summary before the first table and behind the last one.
func TestHeadlinesFirst(t *testing.T) {
	text := written(t, asText(stored(t), Terminal{}))
	first, last := strings.Index(text, "━━ in short"), strings.LastIndex(text, "━━ in short")
	if table := strings.Index(text, "━━ "); first < 0 || first != table || first == last {
		t.Errorf("the summary is at %d and %d, the first table or summary at %d", first, last, table)
	}
}
