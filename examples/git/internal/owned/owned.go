//go:build cgo && libgit2

// Package owned binds libgit2 with package own. What is forgotten is freed
// after a collection, in batches, and always before its repository; what is
// closed is freed at once. It may be closed by anybody at any time: the call of
// C that is in progress, and for a repository everything that came from it,
// comes first.
package owned

import (
	"unsafe"

	"github.com/cheapgo/cheap/examples/git/internal/git"
	"github.com/cheapgo/cheap/examples/git/internal/raw"
	"github.com/cheapgo/cheap/libc"
	"github.com/cheapgo/cheap/own"
)

// These embed their share in what libgit2 has made, and have their Close from
// there. Those from which others come know the repository, which is the parent
// of them all.
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

// Repositories of all programs' parts share these pools.
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
		Name:       name,
		Destructor: timed{libc.Destructor(raw.Destructor(k)), k},
		NoCallback: true,
		// What a walk makes dies soon and together, and a diff or a blob has
		// some kilobytes: 64 KiB, which one that lives on may keep by default,
		// would be batches of ten.
		Pinned: 1 << 20,
	})
}

// timed is a Destructor that a watch is held to. Without the watch
// libc.Destructor is all that it takes.
type timed struct {
	own.Destructor
	kind raw.Kind
}

func (t timed) ReleaseAll(resources []uintptr, words int, noCallback bool) {
	if len(resources) == 0 { // the pool asks whether words fit
		t.Destructor.ReleaseAll(nil, words, noCallback)
		return
	}
	raw.TimeRelease(t.kind, len(resources), func() { t.Destructor.ReleaseAll(resources, words, noCallback) })
}

// under puts what C has made into o, to be freed before r is. It takes the
// result of the call of C as it is, and returns its error, or its own; then
// nothing is left to be freed.
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

// Open opens the repository that dir is in.
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
