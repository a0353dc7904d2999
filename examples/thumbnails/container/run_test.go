//go:build linux && cgo

package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cheapgo/cheap/internal/test/testcall"
)

// TestMain runs the command if this program is its child process.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "-child" {
		os.Exit(run(context.Background(), os.Args[1:], os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

// TestRun draws the chart, where a cgroup can be made. runtime.AddCleanup is killed, the others live.
func TestRun(t *testing.T) {
	g, err := makeCgroup(64 * mib)
	if err != nil {
		t.Log(err)
		return
	}
	testcall.Must(t, g.remove())
	file := filepath.Join(t.TempDir(), "chart.svg")
	var stdout, stderr strings.Builder
	if code := run(t.Context(), []string{"-n=8", "-seconds=1", file}, &stdout, &stderr); code != 0 {
		t.Fatalf("status %d: %s", code, stderr.String())
	}
	killed := 0
	for line := range strings.Lines(stdout.String()) {
		if strings.Contains(line, "killed") {
			killed++
			if !strings.Contains(line, " cleanup ") {
				t.Error(line)
			}
		}
	}
	if killed != 1 {
		t.Errorf("%d are killed, want runtime.AddCleanup:\n%s", killed, stdout.String())
	}
	text, err := os.ReadFile(file)
	testcall.Must(t, err)
	for _, title := range []string{"runtime.AddCleanup (killed)", "closed by hand", "own and pace"} {
		if !strings.Contains(string(text), title) {
			t.Errorf("no %q in the chart", title)
		}
	}
}

func TestWrongArguments(t *testing.T) {
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"-n=0"}, "-n and -seconds"}, {[]string{"-seconds=0"}, "-n and -seconds"}, {[]string{"-warm=5"}, "-n and -seconds"}, {[]string{"-none"}, "-none"},
		{[]string{"a", "b"}, "one chart"}, {[]string{"-table", "a"}, "one chart"}, {[]string{"-ways=none"}, "-ways none"},
		{[]string{"-program=none"}, "-program none"}, {[]string{"-n=3"}, "give -limit"},
	} {
		var stdout, stderr strings.Builder
		if code := run(t.Context(), c.args, &stdout, &stderr); code != 2 || !strings.Contains(stderr.String(), c.says) {
			t.Errorf("%v: status %d, %q; want 2 and %q", c.args, code, stderr.String(), c.says)
		}
	}
	var stdout, stderr strings.Builder
	if code := run(t.Context(), []string{"-h"}, &stdout, &stderr); code != 0 || !strings.Contains(stdout.String(), "way reserve:") {
		t.Errorf("-h: status %d, %q", code, stdout.String())
	}
}
