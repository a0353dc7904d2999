//go:build cgo && libgit2

package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/cheapgo/cheap/examples/git/internal/churn"
	"github.com/cheapgo/cheap/examples/git/internal/fastimport"
	"github.com/cheapgo/cheap/examples/git/internal/raw"
	"github.com/cheapgo/cheap/internal/test/testcall"
)

// A made history is a repository and the counts that a walk must return.
type made struct {
	dir  string
	want churn.Report
}

var histories struct {
	sync.Mutex
	made map[int]made // by the number of commits
}

func TestMain(m *testing.M) {
	code := m.Run()
	for _, h := range histories.made {
		os.RemoveAll(h.dir)
	}
	os.Exit(code)
}

// long is the number of commits of the long history.
func long() int {
	if testing.Short() {
		return 500
	}
	return 4000
}

// history returns a repository with so many commits, which all tests share.
func history(tb testing.TB, commits int) made {
	tb.Helper()
	histories.Lock()
	defer histories.Unlock()
	if h, ok := histories.made[commits]; ok {
		return h
	}
	dir, err := os.MkdirTemp("", "history")
	testcall.Must(tb, err)
	want, err := fastimport.Make(tb.Context(), dir, commits)
	if err != nil {
		os.RemoveAll(dir)
		tb.Fatal(err)
	}
	if histories.made == nil {
		histories.made = make(map[int]made)
	}
	h := made{dir, want}
	histories.made[commits] = h
	return h
}

// counted counts in another goroutine, so that the caller's stack has no reference to
// a forgotten object.
func counted(tb testing.TB, v variant, dir string) churn.Report {
	tb.Helper()
	var report churn.Report
	var err error
	testcall.Aside(func() { report, err = v.count(tb.Context(), dir) })
	testcall.Must(tb, err)
	return report
}

// settled waits until all objects are freed.
func settled(tb testing.TB) {
	tb.Helper()
	ctx := tb.Context()
	if t, ok := tb.(*testing.T); ok {
		if end, ok := t.Deadline(); ok {
			var cancel context.CancelFunc
			ctx, cancel = context.WithDeadline(ctx, end.Add(-5*time.Second)) // to say what is live
			defer cancel()
		}
	}
	testcall.Want(tb, settle(ctx))
	for k := range raw.Kinds {
		if n := raw.Live(k); n != 0 {
			tb.Errorf("%d objects of kind %d are live, want 0", n, k)
		}
	}
}

func TestAllBindingsCountTheSame(t *testing.T) {
	h := history(t, long())
	if h.want.Commits < long() || len(h.want.Files) < 100 {
		t.Fatalf("a history of %d commits and %d files", h.want.Commits, len(h.want.Files))
	}
	for _, v := range variants {
		t.Run(v.name, func(t *testing.T) { compare(t, counted(t, v, h.dir), h.want) })
	}
}

// compare compares a report with the expected one, and names the first difference.
func compare(t *testing.T, got, want churn.Report) {
	t.Helper()
	if got.Commits != want.Commits {
		t.Errorf("%d commits, want %d", got.Commits, want.Commits)
	}
	for i := range min(len(got.Files), len(want.Files)) {
		if got.Files[i] != want.Files[i] {
			t.Fatalf("file %d is %+v, want %+v", i, got.Files[i], want.Files[i])
		}
	}
	if len(got.Files) != len(want.Files) {
		t.Errorf("%d files, want %d", len(got.Files), len(want.Files))
	}
}

// TestGitCountsTheSame compares with the changes that git itself sees.
func TestGitCountsTheSame(t *testing.T) {
	h := history(t, long())
	cmd := exec.CommandContext(t.Context(), "git", "-C", h.dir, "log", "-z", "--no-merges", "--no-renames", "--name-only", "--format=")
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1")
	out, err := cmd.Output()
	testcall.Must(t, err)
	got, want := make(map[string]int), make(map[string]int)
	for name := range bytes.SplitSeq(out, []byte{0}) {
		// Between commits there is a line break or an empty name.
		if name = bytes.TrimLeft(name, "\n"); len(name) > 0 {
			got[string(name)]++
		}
	}
	for _, f := range h.want.Files {
		want[f.Path] = f.Changes
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("git counts %v\nwant %v", got, want)
	}
}

func TestForgettingEveryCloseLeaksNothing(t *testing.T) {
	h := history(t, long())
	settled(t)
	for _, v := range variants {
		t.Run(v.name, func(t *testing.T) {
			for range 3 {
				counted(t, v, h.dir)
			}
			if n := live(); !v.forget && n != 0 {
				t.Errorf("%d objects are live, and all were closed", n)
			}
			settled(t)
		})
	}
}

// TestHammerRepositories has a repository for each goroutine. They share the library, the
// pools and the collector.
func TestHammerRepositories(t *testing.T) {
	h := history(t, 500)
	var wg sync.WaitGroup
	for _, v := range variants {
		for range 2 {
			wg.Go(func() {
				got, err := v.count(t.Context(), h.dir)
				if err != nil {
					t.Error(err)
				} else if !reflect.DeepEqual(got, h.want) {
					t.Errorf("%s counts otherwise beside others", v.name)
				}
			})
		}
	}
	wg.Wait()
	settled(t)
}

// TestCountStopsWithItsContext ends a walk early, after which all objects are freed.
func TestCountStopsWithItsContext(t *testing.T) {
	h := history(t, 500)
	for _, v := range variants {
		t.Run(v.name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if _, err := v.count(ctx, h.dir); err != context.Canceled {
				t.Errorf("error %v, want %v", err, context.Canceled)
			}
			settled(t)
		})
	}
}
