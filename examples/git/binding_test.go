//go:build cgo && libgit2

package main

import (
	"errors"
	"runtime"
	"testing"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/examples/git/internal/git"
	"github.com/cheapgo/cheap/examples/git/internal/owned"
	"github.com/cheapgo/cheap/examples/git/internal/raw"
	"github.com/cheapgo/cheap/internal/test/testcall"
	"github.com/cheapgo/cheap/own"
)

// head returns HEAD of a repository and its tree.
func head(tb testing.TB, r git.Repository) (git.Commit, git.Tree) {
	tb.Helper()
	w, err := r.Walk()
	testcall.Must(tb, err)
	defer w.Close()
	id, ok, err := w.Next()
	if err != nil || !ok {
		tb.Fatal(ok, err)
	}
	c, err := r.Commit(id)
	testcall.Must(tb, err)
	t, err := c.Tree()
	testcall.Must(tb, err)
	return c, t
}

func TestErrorsSayWhatIsMissingAndMakeNothing(t *testing.T) {
	h := history(t, 500)
	for _, v := range variants {
		t.Run(v.name, func(t *testing.T) {
			if _, err := v.open(t.TempDir()); err == nil {
				t.Error("a directory without a repository was opened")
			}
			func() {
				r, err := v.open(h.dir)
				testcall.Must(t, err)
				defer r.Close()
				c, tree := head(t, r)
				defer c.Close()
				defer tree.Close()
				before := live()
				if _, err := r.Commit(git.ID{1}); err == nil {
					t.Error("found a commit that does not exist")
				}
				if _, err := r.Blob(git.ID{1}); err == nil {
					t.Error("found a blob that does not exist")
				}
				if _, err := tree.Entry("no/such/file"); err == nil {
					t.Error("found an entry that does not exist")
				}
				if _, err := c.Parent(7); err == nil {
					t.Error("found an eighth parent")
				}
				if n := live(); n > before {
					t.Errorf("%d objects are live, %d were before the errors", n, before)
				}
				runtime.KeepAlive(tree)
			}()
			settled(t)
		})
	}
}

// TestRepositoryOutlivesWhatCameFromIt uses objects of a repository that was forgotten,
// or closed if the binding takes care of the order.
func TestRepositoryOutlivesWhatCameFromIt(t *testing.T) {
	h := history(t, 500)
	for _, v := range variants {
		if v.name == "manual" {
			continue // there the order is the caller's to keep
		}
		t.Run(v.name, func(t *testing.T) {
			settled(t)
			var tree git.Tree
			testcall.Aside(func() {
				r, err := v.open(h.dir)
				if err != nil {
					t.Error(err)
					return
				}
				_, tree = head(t, r)
				if !v.forget {
					r.Close()
				}
			})
			if t.Failed() {
				return
			}
			for range 3 {
				runtime.GC()
				testcall.Must(t, own.Flush(t.Context()))
			}
			if n := raw.Live(raw.Repository); n != 1 {
				t.Fatalf("%d repositories are live, want 1", n)
			}
			if _, err := tree.Entry("file 0.txt"); err != nil && v.forget {
				t.Error(err)
			} else if !v.forget && !errors.Is(err, own.ErrClosed) {
				t.Errorf("an entry under a closed repository: error %v, want %v", err, own.ErrClosed)
			}
			runtime.KeepAlive(tree)
			tree = nil
			settled(t)
		})
	}
}

func TestUseAfterCloseIsCaught(t *testing.T) {
	h := history(t, 500)
	r, err := owned.Open(h.dir)
	testcall.Must(t, err)
	defer r.Close()
	c, tree := head(t, r)
	defer tree.Close()
	c.Close()
	c.Close() // does nothing
	if _, err := c.Tree(); err != own.ErrClosed {
		t.Errorf("the tree of a closed commit: error %v, want %v", err, own.ErrClosed)
	}
	defer func() {
		var misuse *cheap.MisuseError
		if err, ok := recover().(error); !ok || !errors.As(err, &misuse) {
			t.Errorf("recovered %v, want a MisuseError", err)
		}
	}()
	c.Parents()
	t.Error("a closed commit has parents")
}
