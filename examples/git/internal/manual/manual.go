//go:build cgo && libgit2

// Package manual binds libgit2 without any automatic release: an object that is not
// closed leaks. The program must close a repository last, must not use an object
// after its Close, and must not close one in two goroutines at once. The package does
// not check any of that.
package manual

import (
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

// An object is an object of libgit2.
type object[P raw.Object] struct {
	p    P // nil when closed
	kind raw.Kind
}

// Close frees the object. A second Close does nothing.
func (o *object[P]) Close() error {
	if o.p != nil {
		raw.Free(o.kind, unsafe.Pointer(o.p))
		o.p = nil
	}
	return nil
}

// Open opens the repository that contains dir.
func Open(dir string) (git.Repository, error) {
	m, err := raw.Open(dir)
	if err != nil {
		return nil, err
	}
	return &Repository{object[*raw.GitRepo]{m.Object, raw.Repository}}, nil
}

func (r *Repository) Walk() (git.Walk, error) {
	m, err := raw.NewWalk(r.p)
	if err != nil {
		return nil, err
	}
	return &Walk{object[*raw.GitWalk]{m.Object, raw.Walk}}, nil
}

func (r *Repository) Commit(id git.ID) (git.Commit, error) {
	m, err := raw.LookupCommit(r.p, id)
	if err != nil {
		return nil, err
	}
	return &Commit{object[*raw.GitCommit]{m.Object, raw.Commit}}, nil
}

func (r *Repository) Blob(id git.ID) (git.Blob, error) {
	m, err := raw.LookupBlob(r.p, id)
	if err != nil {
		return nil, err
	}
	return &Blob{object[*raw.GitBlob]{m.Object, raw.Blob}}, nil
}

// Diff takes trees of this package.
func (r *Repository) Diff(old, new git.Tree) (git.Diff, error) {
	var from *raw.GitTree
	if old != nil {
		from = old.(*Tree).p
	}
	m, err := raw.NewDiff(r.p, from, new.(*Tree).p)
	if err != nil {
		return nil, err
	}
	return &Diff{object[*raw.GitDiff]{m.Object, raw.Diff}}, nil
}

func (w *Walk) Next() (id git.ID, ok bool, err error) { return raw.Next(w.p) }

func (c *Commit) Parents() int { return raw.Parents(c.p) }

func (c *Commit) Parent(n int) (git.Commit, error) {
	m, err := raw.Parent(c.p, n)
	if err != nil {
		return nil, err
	}
	return &Commit{object[*raw.GitCommit]{m.Object, raw.Commit}}, nil
}

func (c *Commit) Tree() (git.Tree, error) {
	m, err := raw.TreeOf(c.p)
	if err != nil {
		return nil, err
	}
	return &Tree{object[*raw.GitTree]{m.Object, raw.Tree}}, nil
}

func (t *Tree) Entry(path string) (git.Entry, error) {
	m, err := raw.LookupEntry(t.p, path)
	if err != nil {
		return nil, err
	}
	return &Entry{object[*raw.GitEntry]{m.Object, raw.Entry}}, nil
}

func (e *Entry) ID() git.ID { return raw.EntryID(e.p) }

func (e *Entry) IsBlob() bool { return raw.IsBlob(e.p) }

func (b *Blob) Lines() int { return raw.Lines(b.p) }

func (d *Diff) Len() int { return raw.Deltas(d.p) }

func (d *Diff) Delta(n int) git.Delta { return raw.DeltaAt(d.p, n) }
