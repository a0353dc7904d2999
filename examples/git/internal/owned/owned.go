//go:build cgo && libgit2

// Package owned binds libgit2 with package own. Forgotten objects are freed after a
// collection, in batches, and always before their repository. Closed objects are
// freed immediately. Any goroutine may call Close at any time. The object is then
// freed after C calls in progress, and a repository after all objects that came from
// it.
//
// A method of a closed object returns [own.ErrClosed], or panics if it returns no
// error.
package owned

import (
	"unsafe"

	"github.com/cheapgo/cheap/examples/git/internal/git"
	"github.com/cheapgo/cheap/examples/git/internal/raw"
	"github.com/cheapgo/cheap/libc"
	"github.com/cheapgo/cheap/own"
)

// Each of these types has the Handle of an object of libgit2 in a field that is not
// exported. A program sees Close and the methods of internal/git. A type from which
// other objects come has a field for the repository, which is the parent of all
// objects.
type (
	Repository struct{ h own.Handle[*raw.GitRepo] }
	Walk       struct{ h own.Handle[*raw.GitWalk] }
	Commit     struct {
		h    own.Handle[*raw.GitCommit]
		repo *Repository
	}
	Tree struct {
		h    own.Handle[*raw.GitTree]
		repo *Repository
	}
	Entry struct{ h own.Handle[*raw.GitEntry] }
	Blob  struct{ h own.Handle[*raw.GitBlob] }
	Diff  struct{ h own.Handle[*raw.GitDiff] }
)

// All repositories of the program share these pools.
var (
	repositories = newPool("git.Repository", raw.Repository)
	walks        = newPool("git.Walk", raw.Walk)
	commits      = newPool("git.Commit", raw.Commit)
	trees        = newPool("git.Tree", raw.Tree)
	entries      = newPool("git.Entry", raw.Entry)
	blobs        = newPool("git.Blob", raw.Blob)
	diffs        = newPool("git.Diff", raw.Diff)
)

func newPool(name string, k raw.Kind) *own.Pool {
	return own.NewPool(own.Options{
		Name:    name,
		CHeap:   true, // malloc's, which package cmem does not count twice then
		Release: timed(libc.Destructor(raw.Destructor(k)), k),
		// The objects of a walk become unreachable soon and together, and a diff
		// or a blob has some kilobytes. With the default of 64 KiB a batch would
		// have about ten of them.
		Pinned: 1 << 20,
	})
}

// timed measures the time of the calls of a release function. Without that,
// libc.Destructor alone is enough.
func timed(release func(any, []uintptr) error, k raw.Kind) func(any, []uintptr) error {
	return func(state any, resources []uintptr) (err error) {
		raw.TimeRelease(k, len(resources), func() { err = release(state, resources) })
		return err
	}
}

// under makes h the owner of an object that C has made, to be freed before r. m and
// err are the results of the C call. If under returns an error, that of the call or its
// own, the object is freed already.
func under[P raw.Object](r *Repository, pool *own.Pool, k raw.Kind, h *own.Handle[P], m raw.Made[P], err error) error {
	if err != nil {
		return err
	}
	if err := h.OwnWith(pool, m.Object, own.With{Size: m.Size, Parent: r.h.Owner()}); err != nil {
		raw.Free(k, unsafe.Pointer(m.Object))
		return err
	}
	return nil
}

// Open opens the repository that contains dir.
func Open(dir string) (git.Repository, error) {
	m, err := raw.Open(dir)
	if err != nil {
		return nil, err
	}
	r := new(Repository)
	if err := r.h.Own(repositories, m.Object, m.Size); err != nil {
		raw.Free(raw.Repository, unsafe.Pointer(m.Object))
		return nil, err
	}
	return r, nil
}

// Close frees the repository when the last object that came from it is freed.
func (r *Repository) Close() error { return r.h.Close() }

func (r *Repository) Walk() (git.Walk, error) {
	w := new(Walk)
	err := r.h.TryUse(func(repo *raw.GitRepo) error {
		m, err := raw.NewWalk(repo)
		return under(r, walks, raw.Walk, &w.h, m, err)
	})
	if err != nil {
		return nil, err
	}
	return w, nil
}

func (r *Repository) Commit(id git.ID) (git.Commit, error) {
	c := &Commit{repo: r}
	err := r.h.TryUse(func(repo *raw.GitRepo) error {
		m, err := raw.LookupCommit(repo, id)
		return under(r, commits, raw.Commit, &c.h, m, err)
	})
	if err != nil {
		return nil, err
	}
	return c, nil
}

func (r *Repository) Blob(id git.ID) (git.Blob, error) {
	b := new(Blob)
	err := r.h.TryUse(func(repo *raw.GitRepo) error {
		m, err := raw.LookupBlob(repo, id)
		return under(r, blobs, raw.Blob, &b.h, m, err)
	})
	if err != nil {
		return nil, err
	}
	return b, nil
}

// Diff takes trees of this package.
func (r *Repository) Diff(old, new git.Tree) (git.Diff, error) {
	d := &Diff{}
	compare := func(from *raw.GitTree) error {
		return new.(*Tree).h.TryUse(func(to *raw.GitTree) error {
			return r.h.TryUse(func(repo *raw.GitRepo) error {
				m, err := raw.NewDiff(repo, from, to)
				return under(r, diffs, raw.Diff, &d.h, m, err)
			})
		})
	}
	var err error
	if old != nil {
		err = old.(*Tree).h.TryUse(compare)
	} else {
		err = compare(nil)
	}
	if err != nil {
		return nil, err
	}
	return d, nil
}

func (w *Walk) Close() error { return w.h.Close() }

func (w *Walk) Next() (id git.ID, ok bool, err error) {
	err = w.h.TryUse(func(walk *raw.GitWalk) (err error) {
		id, ok, err = raw.Next(walk)
		return err
	})
	return id, ok, err
}

func (c *Commit) Close() error { return c.h.Close() }

func (c *Commit) Parents() (n int) {
	c.h.Use(func(commit *raw.GitCommit) { n = raw.Parents(commit) })
	return n
}

func (c *Commit) Parent(n int) (git.Commit, error) {
	p := &Commit{repo: c.repo}
	err := c.h.TryUse(func(commit *raw.GitCommit) error {
		m, err := raw.Parent(commit, n)
		return under(c.repo, commits, raw.Commit, &p.h, m, err)
	})
	if err != nil {
		return nil, err
	}
	return p, nil
}

func (c *Commit) Tree() (git.Tree, error) {
	t := &Tree{repo: c.repo}
	err := c.h.TryUse(func(commit *raw.GitCommit) error {
		m, err := raw.TreeOf(commit)
		return under(c.repo, trees, raw.Tree, &t.h, m, err)
	})
	if err != nil {
		return nil, err
	}
	return t, nil
}

func (t *Tree) Close() error { return t.h.Close() }

func (t *Tree) Entry(path string) (git.Entry, error) {
	e := new(Entry)
	err := t.h.TryUse(func(tree *raw.GitTree) error {
		m, err := raw.LookupEntry(tree, path)
		return under(t.repo, entries, raw.Entry, &e.h, m, err)
	})
	if err != nil {
		return nil, err
	}
	return e, nil
}

func (e *Entry) Close() error { return e.h.Close() }

func (e *Entry) ID() (id git.ID) {
	e.h.Use(func(entry *raw.GitEntry) { id = raw.EntryID(entry) })
	return id
}

func (e *Entry) IsBlob() (is bool) {
	e.h.Use(func(entry *raw.GitEntry) { is = raw.IsBlob(entry) })
	return is
}

func (b *Blob) Close() error { return b.h.Close() }

func (b *Blob) Lines() (n int) {
	b.h.Use(func(blob *raw.GitBlob) { n = raw.Lines(blob) })
	return n
}

func (d *Diff) Close() error { return d.h.Close() }

func (d *Diff) Len() (n int) {
	d.h.Use(func(diff *raw.GitDiff) { n = raw.Deltas(diff) })
	return n
}

func (d *Diff) Delta(n int) (delta git.Delta) {
	d.h.Use(func(diff *raw.GitDiff) { delta = raw.DeltaAt(diff, n) })
	return delta
}
