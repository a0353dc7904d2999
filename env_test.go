package cheap

import (
	"strings"
	"testing"

	"github.com/cheapgo/cheap/internal/mem/osmem"
	"github.com/cheapgo/cheap/internal/test/testchild"
)

// TestEnvironment starts programs with variables that have no effect. Each says so, in one line;
// those with right values say nothing.
func TestEnvironment(t *testing.T) {
	noPages := ""
	if osmem.GoBacked {
		noPages = `cheap: CHEAP_GUARD is "7"; with the build tag cheap_gomem no block can be guarded`
	}
	for _, row := range []struct{ name, variable, want string }{
		{"a number", "CHEAP_GUARD=7", noPages},
		{"none", "CHEAP_GUARD=0", ""},
		{"no number", "CHEAP_GUARD=often", `cheap: CHEAP_GUARD is "often"; it may be a number of blocks, such as 10000`},
		{"negative", "CHEAP_GUARD=-1", `cheap: CHEAP_GUARD is "-1"; it may be a number of blocks, such as 10000`},
		{"level", "CHEAP_CHECK=blocks", ""},
		{"no level", "CHEAP_CHECK=all", `cheap: CHEAP_CHECK is "all"; it may be blocks or stacks`},
	} {
		t.Run(row.name, func(t *testing.T) {
			output, status := testchild.Run(t, func() { Free(Malloc(100)) }, row.variable)
			if got := strings.TrimSuffix(output, "\n"); got != row.want || status != 0 {
				t.Errorf("with %s the program says %q, status %d; want %q", row.variable, output, status, row.want)
			}
		})
	}
}
