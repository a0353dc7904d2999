// Package churn counts, for each file of a repository, the commits that have
// changed it. It uses the interfaces of internal/git, and so works with all
// bindings.
package churn

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"

	"github.com/cheapgo/cheap/examples/git/internal/git"
)

// A File has the counts of one path.
type File struct {
	Path    string
	Changes int // commits that added, changed or deleted it
	Lines   int // of its longest version; 0 for a submodule
}

// A Report is the result of Count.
type Report struct {
	Commits int
	Files   []File // the one with the most changes first
}

// NewReport returns a report of files in any order.
func NewReport(commits int, files iter.Seq[*File]) Report {
	r := Report{Commits: commits}
	for f := range files {
		r.Files = append(r.Files, *f)
	}
	slices.SortFunc(r.Files, func(a, b File) int {
		return cmp.Or(cmp.Compare(b.Changes, a.Changes), cmp.Compare(a.Path, b.Path))
	})
	return r
}

// Count walks all commits that HEAD can reach. A commit with one parent is compared
// with its parent, the first commit with nothing. Merges are counted and compared
// with nothing, as git log does.
//
// With forget, Count calls no Close, and the binding must free objects that are no
// longer used. Without forget, Count closes all objects but the repository, which
// belongs to the caller.
func Count(ctx context.Context, repo git.Repository, forget bool) (Report, error) {
	c := counter{repo: repo, files: make(map[string]*File), done: func(o io.Closer) { o.Close() }}
	if forget {
		c.done = func(io.Closer) {}
	}
	commits, err := c.history(ctx)
	if err != nil {
		return Report{}, err
	}
	return NewReport(commits, maps.Values(c.files)), nil
}

type counter struct {
	repo  git.Repository
	done  func(io.Closer) // called for each object that is no longer needed
	files map[string]*File
}

func (c *counter) history(ctx context.Context) (commits int, err error) {
	walk, err := c.repo.Walk()
	if err != nil {
		return 0, err
	}
	defer c.done(walk)
	for ; ; commits++ {
		if err := ctx.Err(); err != nil {
			return commits, err
		}
		id, ok, err := walk.Next()
		if err != nil || !ok {
			return commits, err
		}
		if err := c.commit(id); err != nil {
			return commits, fmt.Errorf("commit %v: %w", id, err)
		}
	}
}

func (c *counter) commit(id git.ID) error {
	commit, err := c.repo.Commit(id)
	if err != nil {
		return err
	}
	defer c.done(commit)
	parents := commit.Parents()
	if parents > 1 {
		return nil
	}
	tree, err := commit.Tree()
	if err != nil {
		return err
	}
	defer c.done(tree)
	if parents == 0 {
		return c.compare(nil, tree)
	}
	parent, err := commit.Parent(0)
	if err != nil {
		return err
	}
	defer c.done(parent)
	old, err := parent.Tree()
	if err != nil {
		return err
	}
	defer c.done(old)
	return c.compare(old, tree)
}

func (c *counter) compare(old, tree git.Tree) error {
	diff, err := c.repo.Diff(old, tree)
	if err != nil {
		return err
	}
	defer c.done(diff)
	for n := range diff.Len() {
		d := diff.Delta(n)
		f := c.files[d.Path]
		if f == nil {
			f = &File{Path: d.Path}
			c.files[d.Path] = f
		}
		f.Changes++
		if d.Deleted {
			continue
		}
		lines, err := c.lines(tree, d.Path)
		if err != nil {
			return fmt.Errorf("%s: %w", d.Path, err)
		}
		f.Lines = max(f.Lines, lines)
	}
	return nil
}

// lines returns how many lines a file has in a tree.
func (c *counter) lines(tree git.Tree, path string) (int, error) {
	entry, err := tree.Entry(path)
	if err != nil {
		return 0, err
	}
	defer c.done(entry)
	if !entry.IsBlob() {
		return 0, nil
	}
	blob, err := c.repo.Blob(entry.ID())
	if err != nil {
		return 0, err
	}
	defer c.done(blob)
	return blob.Lines(), nil
}
