//go:build splice

package splice

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// verifying adds checks to the changed text of the runtime: a remembered special is
// in the list, and each search ends where a walk from the head of the list ends.
func verifying(t *testing.T, original, changed string) string {
	t.Helper()
	const name = "specialFindSplicePoint("
	slow := strings.Replace(originalWalk(t, original), name, "specialFindSlow(", 1)
	fast := strings.Replace(walk, name, "specialFindFast(", 1)
	checked := strings.Replace(changed, walk, fast, 1)
	const iter = "func newSpecialsIter(span *mspan) specialsIter {\n\t"
	keeping := strings.Replace(checked, iter+forget, iter+`if gogetenv("`+keep+`") == "" { `+forget+` }`, 1)
	if checked == changed || slow == originalWalk(t, original) || keeping == checked {
		t.Fatal("what is to be checked is not there")
	}
	return keeping + slow + `

func (span *mspan) specialFindSplicePoint(offset uintptr, kind byte) (**special, bool) {
	if span.specialPassed != nil && !span.specialInList(span.specialPassed) {
		throw("what is remembered is in the list no more")
	}
	at, found := span.specialFindFast(offset, kind)
	if slowAt, slowFound := span.specialFindSlow(offset, kind); at != slowAt || found != slowFound {
		throw("the search ends elsewhere than a walk")
	}
	if passed := span.specialPassed; passed != nil && (passed.offset >= offset || !span.specialInList(passed)) {
		throw("what is remembered may be unlinked")
	}
	return at, found
}

func (span *mspan) specialInList(wanted *special) bool {
	for s := span.specials; s != nil; s = s.next {
		if s == wanted {
			return true
		}
	}
	return false
}
`
}

// keep is an environment variable. If it is set, the sweep in a verifying runtime
// forgets nothing.
const keep = "SPLICE_TEST_KEEP"

// TestChangedRuntime runs the tests of specialstest in a runtime that is changed
// and checks itself.
func TestChangedRuntime(t *testing.T) {
	root, err := outsideCache(t.Context(), goroot(t), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	source, changed, err := rewrite(root)
	if err != nil {
		t.Fatal(err)
	}
	original, err := os.ReadFile(source)
	if err != nil {
		t.Fatal(err)
	}
	program := buildTests(t, root, source, verifying(t, string(original), string(changed)))
	if output, err := runTests(program); err != nil {
		t.Errorf("%v: %s", err, output)
	}
	output, err := runTests(program, keep+"=1")
	var exit *exec.ExitError
	if !errors.As(err, &exit) || !strings.Contains(output, "what is remembered is in the list no more") {
		t.Errorf("a sweep that does not forget is not found: %v: %s", err, output)
	}
}

// runTests runs a program of buildTests.
func runTests(program string, environ ...string) (output string, err error) {
	tests := exec.Command(program, "-test.timeout=2m")
	tests.Env = append(append(os.Environ(), "SPLICE_TEST_CHANGED=1"), environ...)
	text, err := tests.CombinedOutput()
	return string(text), err
}

// buildTests builds the tests of finalizers, cleanups and the like with a text instead
// of the runtime's file.
func buildTests(t *testing.T, root, source, text string) (program string) {
	t.Helper()
	out := t.TempDir()
	overlay, err := writeOverlay(out, source, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	program = filepath.Join(out, "specials.exe")
	build := exec.Command(filepath.Join(root, "bin", "go"), "test", "-c", "-vet=off", "-tags=splice", "-overlay", overlay, "-o", program, "./specialstest")
	build.Env = append(os.Environ(), "GOROOT="+root, "GOTOOLCHAIN=local", "CGO_ENABLED=0")
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	return program
}
