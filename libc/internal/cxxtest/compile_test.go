//go:build cgo && cxx

package cxxtest_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/cheapgo/cheap/internal/test/testcall"
)

// compile compiles a file by the compiler that cgo uses, and returns what it prints.
func compile(t *testing.T, file string, flags ...string) (output string, err error) {
	t.Helper()
	cxx, err := exec.CommandContext(t.Context(), "go", "env", "CXX").Output()
	testcall.Must(t, err)
	args := append(strings.Fields(string(cxx)), "-c", "-o", "/dev/null", "-O2", "-fPIC", "-I.", "-I../../../internal/cxxheader",
		"-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wnon-virtual-dtor", "-Werror")
	args = append(append(args, flags...), file)
	out, err := exec.CommandContext(t.Context(), args[0], args[1:]...).CombinedOutput()
	return string(out), err
}

// TestWarnings compiles the C++ of this package, and that of a binding without exceptions,
// by each standard. There must be no warning.
func TestWarnings(t *testing.T) {
	for _, std := range []string{"c++11", "c++14", "c++17", "c++20"} {
		for _, args := range [][]string{
			{"cxxtest.cc"},
			{"broken.cc"},
			{"testdata/quiet.cc", "-fno-exceptions", "-fno-rtti"},
		} {
			if out, err := compile(t, args[0], append(args[1:], "-std="+std)...); err != nil || out != "" {
				t.Errorf("%s with %s: %v\n%s", args, std, err, out)
			}
		}
	}
}

// TestIncomplete compiles what would delete an object without its destructor.
func TestIncomplete(t *testing.T) {
	out, err := compile(t, "testdata/incomplete.cc", "-std=c++11", "-w") // the compilers would warn, too
	if err == nil || !strings.Contains(out, "image") || !strings.Contains(out, "incomplete") {
		t.Errorf("%v\n%s", err, out)
	}
}
