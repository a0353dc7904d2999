package cfree_test

import (
	"testing"

	"golang.org/x/tools/go/analysis/analysistest"

	"github.com/cheapgo/cheap/vet/cfree"
)

func Test(t *testing.T) {
	t.Setenv("CGO_ENABLED", "1") // go list leaves packages with cgo out without it
	analysistest.Run(t, analysistest.TestData(), cfree.Analyzer, "a", "lib", "user")
}

func TestFix(t *testing.T) {
	t.Setenv("CGO_ENABLED", "1") // go list leaves packages with cgo out without it
	analysistest.RunWithSuggestedFixes(t, analysistest.TestData(), cfree.Analyzer, "fix")
}
