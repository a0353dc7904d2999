package cfree_test

import (
	"testing"

	"golang.org/x/tools/go/analysis/analysistest"

	"github.com/cheapgo/cheap/vet/cfree"
)

func Test(t *testing.T) {
	analysistest.Run(t, analysistest.TestData(), cfree.Analyzer, "a", "lib", "user")
}

func TestFix(t *testing.T) {
	analysistest.RunWithSuggestedFixes(t, analysistest.TestData(), cfree.Analyzer, "fix")
}
