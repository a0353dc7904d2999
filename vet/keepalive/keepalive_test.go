package keepalive_test

import (
	"testing"

	"golang.org/x/tools/go/analysis/analysistest"

	"github.com/cheapgo/cheap/vet/keepalive"
)

func Test(t *testing.T) {
	analysistest.Run(t, analysistest.TestData(), keepalive.Analyzer, "a", "lib", "user", "group")
}

func TestFix(t *testing.T) {
	analysistest.RunWithSuggestedFixes(t, analysistest.TestData(), keepalive.Analyzer, "fix")
}
