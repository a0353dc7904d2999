package cfree_test

import (
	"testing"

	"github.com/cheapgo/cheap/vet/cfree"
	"github.com/cheapgo/cheap/vet/internal/vettest"
)

var data = vettest.Open()

func Test(t *testing.T) {
	t.Parallel()
	data.Run(t, cfree.Analyzer, "a", "lib", "user", "twice", "twiceuser", "beside", "besideuser", "right", "defined", "made")
}

func TestFix(t *testing.T) {
	t.Parallel()
	data.Fix(t, cfree.Analyzer, "fix", "fixheaders")
}
