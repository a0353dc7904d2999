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

// TestPipesInCI looks for pipes to a command that stops reading before its input ends. The command
// that writes then ends by SIGPIPE, now and then, and pipefail takes that for a failure.
func TestPipesInCI(t *testing.T) {
	t.Parallel()
	stops := regexp.MustCompile(`\| *(head|grep +-\w*q\w*|sed +(-n +)?'?\d*q)\b.*`)
	for _, script := range files(t) {
		if path.Dir(script) != ".ci" {
			continue
		}
		for _, pipe := range stops.FindAllString(read(t, script), -1) {
			t.Errorf("%s has a pipe that ends early: %s", script, pipe)
		}
	}
}
