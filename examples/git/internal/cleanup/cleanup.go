//go:build cgo && libgit2

//cheapvet:ignore perobject this is what owners are compared with

// Package cleanup binds libgit2 with runtime.AddCleanup, once for each object.
// Close does nothing: an object is freed after a collection finds it unreachable.
//
// The order of cleanups is not defined, and a repository may be collected in the
// same cycle as the objects that came from it. So each object counts as a reference
// to the C repository, which is freed with the last one.
//
// Each method must keep its object alive with runtime.KeepAlive: after its last use
// in Go the object is unreachable, even while a call of its own method is in C.
package cleanup

import (
	"runtime"
	"sync/atomic"
	"unsafe"

	"github.com/cheapgo/cheap/examples/git/internal/git"
	"github.com/cheapgo/cheap/examples/git/internal/raw"
)

// Each of these types is an object, with the fields that its methods need.
type (
	Repository struct{ object[*raw.GitRepo] }
	Walk       struct{ object[*raw.GitWalk] }
	Commit     struct{ object[*raw.GitCommit] }
	Entry      struct{ object[*raw.GitEntry] }
	Tree       struct{ object[*raw.GitTree] }
	Blob       struct{ object[*raw.GitBlob] }
	Diff       struct{ object[*raw.GitDiff] }
)

// An object is an object of libgit2. The value that embeds it is registered with
// the collector.
type object[P raw.Object] struct {
	p    P
	repo *shared
}

func (*object[P]) Close() error { return nil }

// shared is a C repository. It is not registered itself, so the cleanups of other
// objects can refer to it.
type shared struct {
	p    *raw.GitRepo
	refs atomic.Int64 // objects that have not been freed, the repository among them
}

func (s *shared) release() {
	if s.refs.Add(-1) == 0 {
		raw.Free(raw.Repository, unsafe.Pointer(s.p))
	}
}

// resource is the argument of a cleanup.
type resource struct {
	p    unsafe.Pointer
	repo *shared
	kind raw.Kind
}

func (r resource) free() {
	raw.Free(r.kind, r.p)
	r.repo.release()
}

// registered has an object freed after value, which embeds it, becomes unreachable.
func registered[T any, P raw.Object](value *T, kind raw.Kind, o object[P]) *T {
	o.repo.refs.Add(1)
	runtime.AddCleanup(value, resource.free, resource{unsafe.Pointer(o.p), o.repo, kind})
	return value
}

// Open opens the repository that contains dir.
func Open(dir string) (git.Repository, error) {
	m, err := raw.Open(dir)
	if err != nil {
		return nil, err
	}
	s := &shared{p: m.Object}
	s.refs.Store(1)
	r := &Repository{object[*raw.GitRepo]{m.Object, s}}
	runtime.AddCleanup(r, (*shared).release, s)
	return r, nil
}

func (r *Repository) Walk() (git.Walk, error) {
	defer runtime.KeepAlive(r)
	m, err := raw.NewWalk(r.p)
	if err != nil {
		return nil, err
	}
	o := object[*raw.GitWalk]{m.Object, r.repo}
	return registered(&Walk{o}, raw.Walk, o), nil
}

func (r *Repository) Commit(id git.ID) (git.Commit, error) {
	defer runtime.KeepAlive(r)
	m, err := raw.LookupCommit(r.p, id)
	if err != nil {
		return nil, err
	}
	o := object[*raw.GitCommit]{m.Object, r.repo}
	return registered(&Commit{o}, raw.Commit, o), nil
}

func (r *Repository) Blob(id git.ID) (git.Blob, error) {
	defer runtime.KeepAlive(r)
	m, err := raw.LookupBlob(r.p, id)
	if err != nil {
		return nil, err
	}
	o := object[*raw.GitBlob]{m.Object, r.repo}
	return registered(&Blob{o}, raw.Blob, o), nil
}

// Diff takes trees of this package.
func (r *Repository) Diff(old, new git.Tree) (git.Diff, error) {
	defer runtime.KeepAlive(r)
	defer runtime.KeepAlive(old)
	defer runtime.KeepAlive(new)
	var from *raw.GitTree
	if old != nil {
		from = old.(*Tree).p
	}
	m, err := raw.NewDiff(r.p, from, new.(*Tree).p)
	if err != nil {
		return nil, err
	}
	o := object[*raw.GitDiff]{m.Object, r.repo}
	return registered(&Diff{o}, raw.Diff, o), nil
}

func (w *Walk) Next() (id git.ID, ok bool, err error) {
	defer runtime.KeepAlive(w)
	return raw.Next(w.p)
}

func (c *Commit) Parents() int {
	defer runtime.KeepAlive(c)
	return raw.Parents(c.p)
}

func (c *Commit) Parent(n int) (git.Commit, error) {
	defer runtime.KeepAlive(c)
	m, err := raw.Parent(c.p, n)
	if err != nil {
		return nil, err
	}
	o := object[*raw.GitCommit]{m.Object, c.repo}
	return registered(&Commit{o}, raw.Commit, o), nil
}

func (c *Commit) Tree() (git.Tree, error) {
	defer runtime.KeepAlive(c)
	m, err := raw.TreeOf(c.p)
	if err != nil {
		return nil, err
	}
	o := object[*raw.GitTree]{m.Object, c.repo}
	return registered(&Tree{o}, raw.Tree, o), nil
}

func (t *Tree) Entry(path string) (git.Entry, error) {
	defer runtime.KeepAlive(t)
	m, err := raw.LookupEntry(t.p, path)
	if err != nil {
		return nil, err
	}
	o := object[*raw.GitEntry]{m.Object, t.repo}
	return registered(&Entry{o}, raw.Entry, o), nil
}

func (e *Entry) ID() git.ID {
	defer runtime.KeepAlive(e)
	return raw.EntryID(e.p)
}

func (e *Entry) IsBlob() bool {
	defer runtime.KeepAlive(e)
	return raw.IsBlob(e.p)
}

func (b *Blob) Lines() int {
	defer runtime.KeepAlive(b)
	return raw.Lines(b.p)
}

func (d *Diff) Len() int {
	defer runtime.KeepAlive(d)
	return raw.Deltas(d.p)
}

func (d *Diff) Delta(n int) git.Delta {
	defer runtime.KeepAlive(d)
	return raw.DeltaAt(d.p, n)
}
