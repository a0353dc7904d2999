//go:build linux && cgo

package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestMain runs the command if this program is its child process.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && strings.HasPrefix(os.Args[1], "-variant=") {
		os.Exit(run(context.Background(), os.Args[1:], os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

func TestRun(t *testing.T) {
	file := filepath.Join(t.TempDir(), "chart.svg")
	var stdout, stderr strings.Builder
	if code := run(t.Context(), []string{"-n=4", "-seconds=0.2", file}, &stdout, &stderr); code != 0 {
		t.Fatalf("status %d: %s", code, stderr.String())
	}
	for _, v := range variants {
		if !strings.Contains(stdout.String(), "\n"+v.name+" ") {
			t.Errorf("no %s in %s", v.name, stdout.String())
		}
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range variants {
		if !strings.Contains(string(text), v.title) {
			t.Errorf("no %q in the chart", v.title)
		}
	}
}

func TestWrongArguments(t *testing.T) {
	for _, c := range []struct {
		args []string
		code int
	}{
		{[]string{"-n=0"}, 2}, {[]string{"-seconds=0"}, 2}, {[]string{"-none"}, 2}, {[]string{"a", "b"}, 2},
		{[]string{"-variant=none"}, 1}, {[]string{"-h"}, 0},
	} {
		var stdout, stderr strings.Builder
		if code := run(t.Context(), c.args, &stdout, &stderr); code != c.code || stderr.String() == "" {
			t.Errorf("%v: status %d, %q; want %d", c.args, code, stderr.String(), c.code)
		}
	}
}

// TestMeasure serves each way in this process, which is the child's part of the work.
func TestMeasure(t *testing.T) {
	for _, v := range variants {
		m, err := v.measure(4, 300*time.Millisecond)
		if err != nil {
			t.Fatal(err)
		}
		if m.Requests < 4 || len(m.Points) < 2 || m.peak() < 64<<10 || m.Waits > 0 && !v.pace {
			t.Errorf("%s: %d requests, %d samples, at most %d bytes, %d waits", v.name, m.Requests, len(m.Points), m.peak(), m.Waits)
		}
	}
}
