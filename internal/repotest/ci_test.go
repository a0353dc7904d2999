package repotest

import (
	"regexp"
	"strings"
	"testing"
)

var (
	testName     = regexp.MustCompile(`\bTest[A-Z]\w*`)
	declaredTest = regexp.MustCompile(`(?m)^func (Test[A-Z]\w*)\(`)
)

// TestNamesInCI looks for the tests that .ci/run names, which it leaves out, lets skip or
// runs alone. A name that is wrong would do nothing there.
func TestNamesInCI(t *testing.T) {
	declared := map[string]bool{}
	for _, name := range files(t) {
		if strings.HasSuffix(name, "_test.go") {
			for _, m := range declaredTest.FindAllStringSubmatch(read(t, name), -1) {
				declared[m[1]] = true
			}
		}
	}
	for _, name := range testName.FindAllString(read(t, ".ci/run"), -1) {
		if !declared[name] {
			t.Errorf(".ci/run names %s, which is no test", name)
		}
	}
}
