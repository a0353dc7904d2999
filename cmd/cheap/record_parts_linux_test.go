//go:build amd64 || arm64

package main

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
)

// TestParts looks at this process, and at one that has ended.
func TestParts(t *testing.T) {
	t.Parallel()
	held := make([]byte, 64<<20)
	for i := 0; i < len(held); i += 1 << 10 {
		held[i] = 1
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := &parts{pid: os.Getpid(), program: program, isGo: true, live: func() (int64, int64, bool) { return 1 << 20, 0, true }, began: func() bool { return false }}
	p.look()
	runtime.KeepAlive(held)
	var b strings.Builder
	line := func(label, format string, args ...any) {
		fmt.Fprintf(&b, "%s|%s\n", label, fmt.Sprintf(format, args...))
	}
	v, _ := p.verdict(grew{})
	reportVerdict(v, "the profile", line)
	p.report(line, 999<<20)
	for _, want := range []string{"resident|999 MiB at most; when it was ", "  Go heap\n", "  the program\n", "verdict|", "is the Go heap"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the report has no %q:\n%s", want, &b)
		}
	}
	if table := p.peak.Table(); table.Resident < 64<<20 {
		t.Errorf("%+v", table)
	}

	gone := exec.Command("true")
	if err := gone.Run(); err != nil {
		return // there is no such program
	}
	over := make(chan struct{})
	close(over)
	p = &parts{pid: gone.Process.Pid, live: p.live}
	p.watch(over)
	b.Reset()
	p.report(line, 1<<20)
	if v, ok := p.verdict(grew{}); ok || b.Len() > 0 {
		t.Errorf("of a program that has ended: %v\n%s", v, &b)
	}
}
