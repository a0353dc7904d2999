// Package testenv has tests say where they cannot pass.
//
// Only tests import it.
package testenv

import (
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
)

// Skip skips the test in each of the places, which are words parted by spaces, for a reason:
//
//	race, asan, msan  the test binary was built with that flag
//	emulator          the binary is another processor's, and runs by the command in CHEAP_TEST_EXEC
//	musl              CC is a compiler for that C library
//	debian11          the system is that version of Debian
//	nonlinux          the system is another one than Linux
//
// A step of .ci fails if a test is skipped in another way.
func Skip(t testing.TB, places, reason string) {
	t.Helper()
	for _, place := range strings.Fields(places) {
		if is(t, place) {
			t.Skipf("testenv: not with %s: %s", place, reason)
		}
	}
}

// Emulated reports whether the tests run under a command that emulates a processor.
func Emulated() bool { return os.Getenv("CHEAP_TEST_EXEC") != "" }

// NoGo reports whether there is no go command because the tests run under Wine. Elsewhere a test that
// needs one fails without it.
func NoGo() bool {
	_, err := exec.LookPath("go")
	return err != nil && runtime.GOOS == "windows"
}

func is(t testing.TB, place string) bool {
	t.Helper()
	switch place {
	case "race", "asan", "msan":
		return Built("-" + place)
	case "emulator":
		return Emulated()
	case "musl":
		return strings.Contains(os.Getenv("CC"), place)
	case "debian11":
		version, err := os.ReadFile("/etc/debian_version")
		return err == nil && strings.HasPrefix(string(version), "11.")
	case "nonlinux":
		return runtime.GOOS != "linux"
	}
	t.Fatalf("testenv: there is no place %q", place)
	return false
}

// Built reports whether the test binary was built with a flag, such as -race.
func Built(flag string) bool {
	info, ok := debug.ReadBuildInfo()
	return ok && slices.Contains(info.Settings, debug.BuildSetting{Key: flag, Value: "true"})
}
