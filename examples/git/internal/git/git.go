// Package git has the interfaces of three bindings of libgit2: internal/owned,
// internal/cleanup and internal/manual. The bindings differ in where and when the C
// functions that free objects of libgit2 are called.
package git

import (
	"encoding/hex"
	"io"
)

// An ID is the name of an object: the SHA-1 of its contents.
type ID [20]byte

func (id ID) String() string { return hex.EncodeToString(id[:]) }

// An Open opens the repository that contains a directory.
type Open func(dir string) (Repository, error)

// libgit2 makes all objects below, and must free them. It depends on the binding
// whether the program has to call Close. An object must not be used after its Close,
// and a repository is closed last.
type (
	// A Repository is the object from which all others come.
	Repository interface {
		io.Closer
		// Walk returns the commits that HEAD can reach, in any order.
		Walk() (Walk, error)
		Commit(ID) (Commit, error)
		Blob(ID) (Blob, error)
		// Diff returns the changes from one tree to another. The old tree may be
		// nil, which stands for a tree without files.
		Diff(old, new Tree) (Diff, error)
	}

	// A Walk is an iteration over the history.
	Walk interface {
		io.Closer
		// Next returns the next commit, or false after the last one.
		Next() (id ID, ok bool, err error)
	}

	// A Commit is one commit of the history.
	Commit interface {
		io.Closer
		// Parents returns the number of parents: none for the first commit, more
		// than one for a merge.
		Parents() int
		Parent(n int) (Commit, error)
		Tree() (Tree, error)
	}

	// A Tree is a directory with its subdirectories.
	Tree interface {
		io.Closer
		// Entry returns the entry at a path with slashes.
		Entry(path string) (Entry, error)
	}

	// An Entry is one entry of a tree.
	Entry interface {
		io.Closer
		ID() ID
		// IsBlob reports whether the entry is a file, not a submodule or directory.
		IsBlob() bool
	}

	// A Blob is the contents of a file.
	Blob interface {
		io.Closer
		// Lines returns the number of line ends in the blob.
		Lines() int
	}

	// A Diff is a list of changed files.
	Diff interface {
		io.Closer
		Len() int
		Delta(n int) Delta
	}
)

// A Delta is one file of a Diff. It is Go memory, and needs no Close.
type Delta struct {
	Path    string
	Deleted bool // the file is not in the new tree
}
