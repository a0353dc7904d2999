//go:build cgo && libgit2

// Package owned binds libgit2 with package own. Forgotten objects are freed after a
// collection, in batches, and always before their repository. Closed objects are
// freed immediately. Any goroutine may call Close at any time. The object is then
// freed after C calls in progress, and a repository after all objects that came from
// it.
package owned

import (
	"unsafe"

	"github.com/cheapgo/cheap/examples/git/internal/git"
	"github.com/cheapgo/cheap/examples/git/internal/raw"
	"github.com/cheapgo/cheap/libc"
	"github.com/cheapgo/cheap/own"
)

// Each of these types embeds the owner of an object of libgit2, and so has Close. A
// type from which other objects come has a field for the repository, which is the
// parent of all objects.
type (
	Repository struct{ own.Owner }
	Walk       struct{ own.Owner }
	Commit     struct {
		own.Owner
		repo *Repository
	}
	Tree struct {
		own.Owner
		repo *Repository
	}
	Entry struct{ own.Owner }
	Blob  struct{ own.Owner }
	Diff  struct{ own.Owner }
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
		Release: timed(libc.Destructor(raw.Destructor(k), libc.NoCallback), k),
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

// under makes o the owner of an object that C has made, to be freed before r. m and
// err are the results of the C call. If under returns an error, that of the call or its
// own, the object is freed already.
func (r *Repository) under(pool *own.Pool, k raw.Kind, o *own.Owner, m raw.Made, err error) error {
	if err != nil {
		return err
	}
	if err := pool.OwnUnder(o, &r.Owner, m.Object, m.Size); err != nil {
		raw.Free(k, m.Object)
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
	if err := repositories.Own(&r.Owner, m.Object, m.Size); err != nil {
		raw.Free(raw.Repository, m.Object)
		return nil, err
	}
	return r, nil
}

func (r *Repository) Walk() (git.Walk, error) {
	w := new(Walk)
	var err error
	r.Use(func(repo unsafe.Pointer) {
		m, e := raw.NewWalk(repo)
		err = r.under(walks, raw.Walk, &w.Owner, m, e)
	})
	if err != nil {
		return nil, err
	}
	return w, nil
}

func (r *Repository) Commit(id git.ID) (git.Commit, error) {
	c := &Commit{repo: r}
	var err error
	r.Use(func(repo unsafe.Pointer) {
		m, e := raw.LookupCommit(repo, id)
		err = r.under(commits, raw.Commit, &c.Owner, m, e)
	})
	if err != nil {
		return nil, err
	}
	return c, nil
}

func (r *Repository) Blob(id git.ID) (git.Blob, error) {
	b := new(Blob)
	var err error
	r.Use(func(repo unsafe.Pointer) {
		m, e := raw.LookupBlob(repo, id)
		err = r.under(blobs, raw.Blob, &b.Owner, m, e)
	})
	if err != nil {
		return nil, err
	}
	return b, nil
}

// Diff takes trees of this package.
func (r *Repository) Diff(old, new git.Tree) (git.Diff, error) {
	d := &Diff{}
	var err error
	compare := func(from unsafe.Pointer) {
		new.(*Tree).Use(func(to unsafe.Pointer) {
			r.Use(func(repo unsafe.Pointer) {
				m, e := raw.NewDiff(repo, from, to)
				err = r.under(diffs, raw.Diff, &d.Owner, m, e)
			})
		})
	}
	if old != nil {
		old.(*Tree).Use(compare)
	} else {
		compare(nil)
	}
	if err != nil {
		return nil, err
	}
	return d, nil
}

func (w *Walk) Next() (id git.ID, ok bool, err error) {
	w.Use(func(walk unsafe.Pointer) { id, ok, err = raw.Next(walk) })
	return id, ok, err
}

func (c *Commit) Parents() (n int) {
	c.Use(func(commit unsafe.Pointer) { n = raw.Parents(commit) })
	return n
}

func (c *Commit) Parent(n int) (git.Commit, error) {
	p := &Commit{repo: c.repo}
	var err error
	c.Use(func(commit unsafe.Pointer) {
		m, e := raw.Parent(commit, n)
		err = c.repo.under(commits, raw.Commit, &p.Owner, m, e)
	})
	if err != nil {
		return nil, err
	}
	return p, nil
}

func (c *Commit) Tree() (git.Tree, error) {
	t := &Tree{repo: c.repo}
	var err error
	c.Use(func(commit unsafe.Pointer) {
		m, e := raw.TreeOf(commit)
		err = c.repo.under(trees, raw.Tree, &t.Owner, m, e)
	})
	if err != nil {
		return nil, err
	}
	return t, nil
}

func (t *Tree) Entry(path string) (git.Entry, error) {
	entry := new(Entry)
	var err error
	t.Use(func(tree unsafe.Pointer) {
		m, e := raw.LookupEntry(tree, path)
		err = t.repo.under(entries, raw.Entry, &entry.Owner, m, e)
	})
	if err != nil {
		return nil, err
	}
	return entry, nil
}

func (e *Entry) ID() (id git.ID) {
	e.Use(func(entry unsafe.Pointer) { id = raw.EntryID(entry) })
	return id
}

func (e *Entry) IsBlob() (is bool) {
	e.Use(func(entry unsafe.Pointer) { is = raw.IsBlob(entry) })
	return is
}

func (b *Blob) Lines() (n int) {
	b.Use(func(blob unsafe.Pointer) { n = raw.Lines(blob) })
	return n
}

func (d *Diff) Len() (n int) {
	d.Use(func(diff unsafe.Pointer) { n = raw.Deltas(diff) })
	return n
}

func (d *Diff) Delta(n int) (delta git.Delta) {
	d.Use(func(diff unsafe.Pointer) { delta = raw.DeltaAt(diff, n) })
	return delta
}
