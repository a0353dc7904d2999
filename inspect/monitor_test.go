package inspect

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/cheapgo/cheap/internal/mem/osmem"
	"github.com/cheapgo/cheap/internal/test/testcall"
	"github.com/cheapgo/cheap/internal/test/testchild"
	"github.com/cheapgo/cheap/internal/test/testenv"
	"github.com/cheapgo/cheap/internal/watch/guard"
)

// buildGuarded builds the program of docs/reference/attacks.md.
func buildGuarded(t *testing.T, flags ...string) (program string) {
	t.Helper()
	program = filepath.Join(t.TempDir(), "guarded.exe")
	testcall.Must(t, testchild.Build(program, nil, append(flags, "./testdata/guarded")...))
	return program
}

// runGuarded runs it with all blocks guarded.
func runGuarded(t *testing.T, program, mistake string) (output string, failed bool) {
	t.Helper()
	cmd := exec.Command(program, mistake)
	cmd.Env = append(os.Environ(), "CHEAP_GUARD=1")
	out, err := cmd.CombinedOutput() // until the monitor has ended, too
	return strings.ReplaceAll(string(out), "\r", ""), err != nil
}

// unmonitored reports whether the system has no monitor. Then Monitor has to say so.
func unmonitored(t *testing.T) bool {
	t.Helper()
	if runtime.GOOS != "windows" {
		return false
	}
	if err := Monitor(nil); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("Monitor: %v", err)
	}
	return true
}

// reported is what the monitor says of the mistakes of the program.
var reported = regexp.MustCompile(`(?m)^cheap: the block at 0x[0-9a-f]+ \(64 bytes\) was accessed after it was freed, at byte 8; .*
allocated by
	main\.open
		.*main\.go:\d+
	main\.main
		.*main\.go:\d+
freed by
	main\.\(\*session\)\.close
		.*main\.go:\d+
	main\.main
		.*main\.go:\d+$`)

var pie = flag.Bool("inspect.pie", false, "TestMonitor builds its program, and the standard library, for a place that the system chooses")

// TestMonitor has a program end in several ways. The monitor must say what a
// fault was, in Go and in C, also if the system places the code of each process elsewhere;
// and nothing of another end.
func TestMonitor(t *testing.T) {
	if osmem.GoBacked || unmonitored(t) {
		return // there are no guarded blocks
	}
	t.Setenv("TMPDIR", t.TempDir())
	var flags []string
	if *pie {
		flags = append(flags, "-buildmode=pie")
	}
	program := buildGuarded(t, flags...)
	for mistake, want := range map[string]bool{"monitor": true, "c": true, "panic": false, "none": false} {
		out, failed := runGuarded(t, program, mistake)
		if got := reported.MatchString(out); got != want && !strings.Contains(out, "invalid memory address") { // no C code without cgo
			t.Errorf("%s: reported %v, want %v:\n%s", mistake, got, want, out)
		}
		if failed != (mistake != "none") || !want && strings.Contains(out, "cheap:") {
			t.Errorf("%s: failed %v:\n%s", mistake, failed, out)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(os.TempDir(), "cheap-guard-*")); len(left) > 0 {
		t.Errorf("files are left: %v", left)
	}
}

// TestMonitorCalls has the monitor call a function.
func TestMonitorCalls(t *testing.T) {
	if osmem.GoBacked || unmonitored(t) {
		return
	}
	out, status := testchild.Run(t, func() {
		err := Monitor(func(c Crash) {
			if c.Fault != nil {
				fmt.Fprintf(os.Stderr, "REPORT of byte %d of %d, freed %v, %v %v\n", c.Fault.Offset(), c.Fault.Size, c.Fault.Freed,
					hasFrame(c.Fault.Allocation, "inspect.allocate"), strings.Contains(string(c.Text), "TestMonitorCalls"))
			}
		})
		testcall.Must(t, err)
		SetGuardRate(1)
		h := newHeap(t, "monitor")
		*(*byte)(unsafe.Add(guarded(t, h, 1024, true), 1024)) = 1
	})
	if !strings.Contains(out, "REPORT of byte 1024 of 1024, freed false, true true\n") || status == 0 {
		t.Errorf("status %d:\n%s", status, out)
	}
}

// TestMonitorEnvironment has a program that changes its environment before it calls Monitor,
// and a function that starts a program, which has no monitor.
func TestMonitorEnvironment(t *testing.T) {
	if osmem.GoBacked || testenv.Emulated() || unmonitored(t) {
		return
	}
	out, status := testchild.Run(t, func() {
		if os.Getenv("CHEAP_TEST_TWICE") != "" && !isMonitor {
			os.Exit(3) // and not a third process
		}
		os.Setenv("CHEAP_TEST_TWICE", "1")
		os.Unsetenv(monitorVariable)
		err := Monitor(func(c Crash) {
			sh, err := exec.Command("/bin/sh", "-c", `echo "guard=$CHEAP_GUARD monitor=$CHEAP_MONITOR"; kill -TERM $$; echo lives`).CombinedOutput()
			fmt.Fprintf(os.Stderr, "%s%v\n", sh, err)
		})
		testcall.Must(t, err)
		if err := Monitor(nil); err == nil {
			t.Error("a second call returns no error")
		}
		panic("of the test")
	}, "CHEAP_GUARD=77")
	if !strings.Contains(out, "guard=77 monitor=\nsignal: terminated\n") || strings.Contains(out, "lives") || status == 0 {
		t.Errorf("status %d:\n%s", status, out)
	}
}

// TestFaultIn reads addresses from what the runtime prints on several systems.
func TestFaultIn(t *testing.T) {
	for text, want := range map[string]string{
		"unexpected fault address 0x7f410401ffc8\nfatal error: fault\n[signal SIGSEGV: segmentation violation code=0x2 addr=0x7f410401ffc8 pc=0x617536]\n": "7f410401ffc8",
		"SIGSEGV: segmentation violation\nPC=0x660f23 m=0 sigcode=2 addr=0x7f369401ffc8\nsignal arrived during cgo execution\n":                            "7f369401ffc8",
		"panic: runtime error: invalid memory address or nil pointer dereference\n[signal SIGSEGV: segmentation violation code=0x1 addr=0x0 pc=0x1]\n":     "0",
		"panic: of the program\n":                           "",
		"panic: request failed: addr=0x7f410401ffc8\n":      "",
		"panic: two lines\n\t[signal addr=0x7f410401ffc8\n": "",
	} {
		got := ""
		if m := faultAddress.FindStringSubmatch(text); m != nil {
			got = m[1] + m[2]
		}
		if got != want {
			t.Errorf("the address is %q, want %q, in %s", got, want, text)
		}
		table, err := guard.ReadTable(strings.NewReader(""))
		if err != nil || faultIn([]byte(text), table) != nil {
			t.Errorf("an empty table has a fault: %v", err)
		}
	}
}

// TestGuardDocument compares the part of docs/reference/attacks.md about guard pages with the program
// that it shows, and with what that prints.
func TestGuardDocument(t *testing.T) {
	if osmem.GoBacked || unmonitored(t) {
		return
	}
	page, err := os.ReadFile("../docs/reference/attacks.md")
	testcall.Must(t, err)
	_, section, ok := strings.Cut(string(page), "\n## Guard pages\n")
	if !ok {
		t.Fatal("docs/reference/attacks.md has no part about guard pages")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	source, err := os.ReadFile("testdata/guarded/main.go")
	testcall.Must(t, err)
	address := regexp.MustCompile(`0x[0-9a-f]{6,}`)
	dir := regexp.MustCompile(`\S*/main\.go:`)
	same := func(s string) string { return dir.ReplaceAllString(address.ReplaceAllString(s, "0x…"), "main.go:") }
	program := buildGuarded(t)
	out, _ := runGuarded(t, program, "guard")
	printed := []string{same(strings.TrimSpace(out))}
	var shown []string
	for _, m := range regexp.MustCompile("(?ms)^```(\\w+)\n(.*?)^```$").FindAllStringSubmatch(section, -1) {
		switch lang, text := m[1], m[2]; lang {
		case "go":
			if !strings.Contains(string(source), text) {
				t.Errorf("the program has not\n%s", text)
			}
		case "text":
			shown = append(shown, same(strings.TrimSpace(text)))
		}
	}
	if !slices.Equal(shown, printed) {
		t.Errorf("docs/reference/attacks.md shows\n%s\nand the program prints\n%s", strings.Join(shown, "\n\n"), strings.Join(printed, "\n\n"))
	}
}
