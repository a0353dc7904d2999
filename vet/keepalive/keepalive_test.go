package keepalive_test

import (
	"testing"

	"github.com/cheapgo/cheap/vet/internal/vettest"
	"github.com/cheapgo/cheap/vet/keepalive"
)

var data = vettest.Open()

func Test(t *testing.T) {
	t.Parallel()
	data.Run(t, keepalive.Analyzer, "a", "lib", "user", "group")
}

func TestFix(t *testing.T) {
	t.Parallel()
	data.Fix(t, keepalive.Analyzer, "fix")
}
