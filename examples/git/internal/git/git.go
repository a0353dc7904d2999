// Package git is the border that three bindings of libgit2 share: internal/owned,
// internal/cleanup and internal/manual. They differ in who calls the C
// functions that free what libgit2 has made, and when.
package git

import (
	"encoding/hex"
	"io"
)

// An ID is the name of an object: the SHA-1 of what it holds.
type ID [20]byte

func (id ID) String() string { return hex.EncodeToString(id[:]) }

// An Open opens the repository that a directory is in.
type Open func(dir string) (Repository, error)

// Everything below is made by libgit2 and has to be freed by it. Whether Close
// has to be called for that depends on the binding. Nothing is used after its
// Close, and a repository is closed last.
type (
	// A Repository is where the other objects come from.
	Repository interface {
		io.Closer
		// Walk returns the commits that HEAD is made of, in no certain order.
		Walk() (Walk, error)
		Commit(ID) (Commit, error)
		Blob(ID) (Blob, error)
		// Diff says how one tree became another one. The old tree may be nil,
		// which stands for one without files.
		Diff(old, new Tree) (Diff, error)
	}

	// A Walk is on its way through the history.
	Walk interface {
		io.Closer
		// Next returns the next commit, or false behind the last.
		Next() (id ID, ok bool, err error)
	}

	// A Commit is one step of the history.
	Commit interface {
		io.Closer
		// Parents returns how many parents the commit has: none if it is the
		// first one, more than one if it is a merge.
		Parents() int
		Parent(n int) (Commit, error)
		Tree() (Tree, error)
	}

	// A Tree is a directory, with those in it.
	Tree interface {
		io.Closer
		// Entry finds what is called path, with slashes.
		Entry(path string) (Entry, error)
	}

	// An Entry is a line of a tree.
	Entry interface {
		io.Closer
		ID() ID
		// IsBlob tells files from submodules and directories.
		IsBlob() bool
	}

	// A Blob is what a file holds.
	Blob interface {
		io.Closer
		// Lines returns how many lines end in the blob.
		Lines() int
	}

	// A Diff is a list of files that differ.
	Diff interface {
		io.Closer
		Len() int
		Delta(n int) Delta
	}
)

// A Delta is one file of a Diff. It is all Go: nothing has to be freed.
type Delta struct {
	Path    string
	Deleted bool // it is not in the new tree
}
