package keepalive_test

import (
	"testing"

	"golang.org/x/tools/go/analysis/analysistest"

	"github.com/cheapgo/cheap/vet/keepalive"
)

func Test(t *testing.T) {
	t.Setenv("CGO_ENABLED", "1") // go list leaves packages with cgo out without it
	analysistest.Run(t, analysistest.TestData(), keepalive.Analyzer, "a", "lib", "user", "group")
}

func TestFix(t *testing.T) {
	t.Setenv("CGO_ENABLED", "1") // go list leaves packages with cgo out without it
	analysistest.RunWithSuggestedFixes(t, analysistest.TestData(), keepalive.Analyzer, "fix")
}
