package repotest

import (
	"path"
	"regexp"
	"testing"
)

// TestNamesInCI looks for the tests that the scripts in .ci name, which they leave out, let skip or
// run alone. A name that is wrong would do nothing there.
func TestNamesInCI(t *testing.T) {
	t.Parallel()
	testName := regexp.MustCompile(`\bTest[A-Z]\w*`)
	declared := declaredTests(t)
	scripts := 0
	for _, script := range files(t) {
		if path.Dir(script) != ".ci" {
			continue
		}
		scripts++
		for _, name := range testName.FindAllString(read(t, script), -1) {
			if !declared[name] {
				t.Errorf("%s names %s, which is no test", script, name)
			}
		}
	}
	if scripts == 0 {
		t.Error("there is no script in .ci")
	}
}
