//go:build cgo && libgit2

// The part of libgit2 that walks a history, in functions for cgo: one call for each
// step, which returns the object, its size and the error.

#ifndef RAW_H
#define RAW_H

#include <git2.h>
#include <stddef.h>
#include <stdint.h>

enum raw_kind { REPOSITORY, WALK, COMMIT, TREE, ENTRY, BLOB, DIFF, KINDS };

// The object that a function has made, or its error.
typedef struct {
	void *object;  // NULL after an error
	size_t size;   // about, in bytes of C memory
	char *message; // of an error, to be freed; may be NULL
	int code;      // of libgit2; below 0 is an error
} raw_made;

typedef struct {
	const char *path; // the diff's
	int deleted;
} raw_delta;

void raw_init(void);
raw_made raw_open(const char *dir);
raw_made raw_walk(git_repository *);
raw_made raw_next(git_revwalk *, git_oid *);
raw_made raw_commit(git_repository *, const git_oid *);
raw_made raw_parent(git_commit *, unsigned n);
raw_made raw_tree(git_commit *);
raw_made raw_entry(git_tree *, const char *path);
raw_made raw_blob(git_repository *, const git_oid *);
raw_made raw_diff(git_repository *, git_tree *from, git_tree *to);
raw_delta raw_delta_at(git_diff *, size_t n);

// Frees an object.
void raw_free(int kind, void *object);

// The function that frees objects of a kind: void (*)(void *).
void *raw_destructor(int kind);

// The number of objects of a kind that are made and not freed.
int64_t raw_live(int kind);

#endif
