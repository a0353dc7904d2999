package itest

import (
	"testing"

	"github.com/cheapgo/cheap/internal/test/testchild"
)

// inChild runs f, as part of the calling test, in a child process, so that nothing
// of cheap has been used there before. The test fails if the child does. It runs beside
// others that have children.
func inChild(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	if !testchild.Is() {
		t.Parallel()
	}
	if output, passed := testchild.Test(t, f); !passed {
		t.Errorf("in the child:\n%s", output)
	}
}
