//go:build cgo && libgit2

// Package raw calls the part of libgit2 that walks a history. It has no owners. It
// counts live objects, in C, and measures the time that freeing takes.
//
// An Object is a pointer that libgit2 has returned. When it is no longer used, a
// binding frees it once, by Free or by the function that Destructor returns. Objects
// are freed before their repository. An object may be freed on any thread, also while
// others of the same repository are in use.
package raw

/*
// libgit2 calls no Go function, because it is given none, and keeps none of the
// arguments.
#cgo noescape raw_open
#cgo nocallback raw_open
#cgo noescape raw_walk
#cgo nocallback raw_walk
#cgo noescape raw_next
#cgo nocallback raw_next
#cgo noescape raw_commit
#cgo nocallback raw_commit
#cgo noescape raw_parent
#cgo nocallback raw_parent
#cgo noescape raw_tree
#cgo nocallback raw_tree
#cgo noescape raw_entry
#cgo nocallback raw_entry
#cgo noescape raw_blob
#cgo nocallback raw_blob
#cgo noescape raw_diff
#cgo nocallback raw_diff
#cgo noescape raw_delta_at
#cgo nocallback raw_delta_at
#cgo noescape raw_free
#cgo nocallback raw_free

#cgo pkg-config: libgit2
#include <stdlib.h>
#include "raw.h"
*/
import "C"

import (
	"bytes"
	"fmt"
	"sync"
	"unsafe"

	"github.com/cheapgo/cheap/examples/git/internal/git"
)

// The types of libgit2, with names that other packages can use.
type (
	GitRepo   = C.git_repository
	GitWalk   = C.git_revwalk
	GitCommit = C.git_commit
	GitTree   = C.git_tree
	GitEntry  = C.git_tree_entry
	GitBlob   = C.git_blob
	GitDiff   = C.git_diff
)

// An Object is a pointer to one of them.
type Object interface {
	*GitRepo | *GitWalk | *GitCommit | *GitTree | *GitEntry | *GitBlob | *GitDiff
}

// A Kind is the number of such a type.
type Kind int

const (
	Repository Kind = C.REPOSITORY
	Walk       Kind = C.WALK
	Commit     Kind = C.COMMIT
	Tree       Kind = C.TREE
	Entry      Kind = C.ENTRY
	Blob       Kind = C.BLOB
	Diff       Kind = C.DIFF
	Kinds      Kind = C.KINDS // number of kinds
)

// Made is a new object, which the caller must free.
type Made[P Object] struct {
	Object P
	Size   int // bytes of C memory that it keeps, about
}

// initialize initializes libgit2, once. It is never shut down.
var initialize = sync.OnceFunc(func() { C.raw_init() })

// Open opens the repository that contains dir.
func Open(dir string) (Made[*GitRepo], error) {
	initialize()
	return result[*GitRepo]("open "+dir, C.raw_open(cstring(dir)))
}

// NewWalk returns a walk of a repository that begins at HEAD.
func NewWalk(repo *GitRepo) (Made[*GitWalk], error) {
	return result[*GitWalk]("walk", C.raw_walk(repo))
}

// Next returns the next commit of a walk, or false after the last one.
func Next(walk *GitWalk) (id git.ID, ok bool, err error) {
	m := C.raw_next(walk, oid(&id))
	if m.code == C.GIT_ITEROVER {
		return git.ID{}, false, nil
	}
	_, err = result[*GitWalk]("walk", m)
	return id, err == nil, err
}

// LookupCommit returns a commit of a repository.
func LookupCommit(repo *GitRepo, id git.ID) (Made[*GitCommit], error) {
	return result[*GitCommit]("commit", C.raw_commit(repo, oid(&id)))
}

// Parents returns the number of parents of a commit.
func Parents(commit *GitCommit) int { return int(C.git_commit_parentcount(commit)) }

// Parent returns a parent of a commit.
func Parent(commit *GitCommit, n int) (Made[*GitCommit], error) {
	return result[*GitCommit]("parent", C.raw_parent(commit, C.uint(n)))
}

// TreeOf returns the tree of a commit.
func TreeOf(commit *GitCommit) (Made[*GitTree], error) {
	return result[*GitTree]("tree", C.raw_tree(commit))
}

// LookupEntry returns a copy of an entry of a tree or of one below it.
func LookupEntry(tree *GitTree, path string) (Made[*GitEntry], error) {
	return result[*GitEntry]("entry", C.raw_entry(tree, cstring(path)))
}

// EntryID returns the name of the object that an entry refers to.
func EntryID(entry *GitEntry) git.ID {
	id := C.git_tree_entry_id(entry)
	// A git_oid is an array of 20 bytes, and this one lives as long as the entry.
	return *(*git.ID)(unsafe.Pointer(id))
}

// IsBlob reports whether that object is a blob.
func IsBlob(entry *GitEntry) bool { return C.git_tree_entry_type(entry) == C.GIT_OBJECT_BLOB }

// LookupBlob returns a blob of a repository.
func LookupBlob(repo *GitRepo, id git.ID) (Made[*GitBlob], error) {
	return result[*GitBlob]("blob", C.raw_blob(repo, oid(&id)))
}

// Lines returns the number of line ends in a blob.
func Lines(blob *GitBlob) int {
	// The slice is the blob's memory, which does not change. It is used in this
	// function only, while the caller keeps the blob alive.
	data := unsafe.Slice((*byte)(C.git_blob_rawcontent(blob)), int(C.git_blob_rawsize(blob)))
	return bytes.Count(data, []byte{'\n'})
}

// NewDiff compares two trees. The first may be nil.
func NewDiff(repo *GitRepo, from, to *GitTree) (Made[*GitDiff], error) {
	return result[*GitDiff]("diff", C.raw_diff(repo, from, to))
}

// Deltas returns the number of changed files.
func Deltas(diff *GitDiff) int { return int(C.git_diff_num_deltas(diff)) }

// DeltaAt returns the changed file n, which is below Deltas.
func DeltaAt(diff *GitDiff, n int) git.Delta {
	d := C.raw_delta_at(diff, C.size_t(n))
	return git.Delta{Path: C.GoString(d.path), Deleted: d.deleted != 0}
}

// Destructor returns the C function, void (*)(void *), that frees an object of a
// kind.
func Destructor(k Kind) unsafe.Pointer { return C.raw_destructor(C.int(k)) }

// Live returns the number of objects of a kind that are made and not freed.
func Live(k Kind) int { return int(C.raw_live(C.int(k))) }

// result returns the object of a call, or its error. A raw_made has no type for the
// object: the caller knows it.
func result[P Object](what string, m C.raw_made) (Made[P], error) {
	if m.code >= 0 {
		return Made[P]{P(m.object), int(m.size)}, nil
	}
	if m.message == nil {
		return Made[P]{}, fmt.Errorf("%s: libgit2 error %d", what, int(m.code))
	}
	// The message was made by strdup.
	defer C.free(unsafe.Pointer(m.message))
	return Made[P]{}, fmt.Errorf("%s: %s", what, C.GoString(m.message))
}

// cstring returns a copy of s that ends with a zero, in Go memory. C reads it during
// the call only, so there is no need for C.CString and a free.
func cstring(s string) *C.char {
	b := make([]byte, len(s)+1)
	copy(b, s)
	return (*C.char)(unsafe.Pointer(&b[0])) // a byte is a char
}

// oid converts an ID, which has the layout of a git_oid: 20 bytes and nothing else.
func oid(id *git.ID) *C.git_oid { return (*C.git_oid)(unsafe.Pointer(id)) }

// The sizes are equal, as oid requires.
var _ [unsafe.Sizeof(C.git_oid{})]byte = git.ID{}
