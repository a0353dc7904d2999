//go:build cgo && libgit2

#include "raw.h"

#include <string.h>

// Objects that are live, by kind. The bindings differ in which thread frees.
static int64_t live[KINDS];

// The sizes are from mallinfo2 before and after each call, without libgit2's
// cache, on the history of a repository of Go files (libgit2 1.5): a commit
// 588 bytes; a tree 82 for each entry, its text and its index together; a diff
// 4 KiB for its first page of strings and 320 for each delta; a copied entry
// 81; a blob what its file has and some 200. An open repository had 13 KiB,
// before it has opened a pack; a walk 200 for each commit, which it knows only
// when it is at its end.
enum {
	REPOSITORY_SIZE = 64 << 10,
	WALK_SIZE = 64 << 10,
	COMMIT_SIZE = 600,
	TREE_SIZE = 200, TREE_ENTRY_SIZE = 80,
	ENTRY_SIZE = 80,
	BLOB_SIZE = 200,
	DIFF_SIZE = 4096, DELTA_SIZE = 320,
};

// failed describes an error. libgit2 keeps the text for each thread, and the next
// call from Go may come from another thread.
static raw_made failed(int code)
{
	raw_made m = {.code = code};
	const git_error *e = git_error_last();
	if (e != NULL && e->message != NULL)
		m.message = strdup(e->message);
	return m;
}

static raw_made made(enum raw_kind kind, void *object, size_t size)
{
	__atomic_fetch_add(&live[kind], 1, __ATOMIC_RELAXED);
	return (raw_made){.object = object, .size = size};
}

void raw_init(void) { git_libgit2_init(); }

raw_made raw_open(const char *dir)
{
	git_repository *r;
	int code = git_repository_open_ext(&r, dir, 0, NULL);
	return code < 0 ? failed(code) : made(REPOSITORY, r, REPOSITORY_SIZE);
}

raw_made raw_walk(git_repository *r)
{
	git_revwalk *w;
	int code = git_revwalk_new(&w, r);
	if (code < 0)
		return failed(code);
	code = git_revwalk_push_head(w);
	if (code < 0) {
		raw_made m = failed(code);
		git_revwalk_free(w);
		return m;
	}
	return made(WALK, w, WALK_SIZE);
}

raw_made raw_next(git_revwalk *w, git_oid *id)
{
	int code = git_revwalk_next(id, w);
	if (code < 0 && code != GIT_ITEROVER)
		return failed(code);
	return (raw_made){.code = code};
}

raw_made raw_commit(git_repository *r, const git_oid *id)
{
	git_commit *c;
	int code = git_commit_lookup(&c, r, id);
	return code < 0 ? failed(code) : made(COMMIT, c, COMMIT_SIZE);
}

raw_made raw_parent(git_commit *child, unsigned n)
{
	git_commit *c;
	int code = git_commit_parent(&c, child, n);
	return code < 0 ? failed(code) : made(COMMIT, c, COMMIT_SIZE);
}

raw_made raw_tree(git_commit *c)
{
	git_tree *t;
	int code = git_commit_tree(&t, c);
	return code < 0 ? failed(code) : made(TREE, t, TREE_SIZE + TREE_ENTRY_SIZE * git_tree_entrycount(t));
}

raw_made raw_entry(git_tree *t, const char *path)
{
	git_tree_entry *e;
	int code = git_tree_entry_bypath(&e, t, path);
	return code < 0 ? failed(code) : made(ENTRY, e, ENTRY_SIZE);
}

raw_made raw_blob(git_repository *r, const git_oid *id)
{
	git_blob *b;
	int code = git_blob_lookup(&b, r, id);
	return code < 0 ? failed(code) : made(BLOB, b, BLOB_SIZE + git_blob_rawsize(b));
}

raw_made raw_diff(git_repository *r, git_tree *from, git_tree *to)
{
	git_diff_options o = GIT_DIFF_OPTIONS_INIT;
	git_diff *d;
	// A file that becomes a link is one change, not two.
	o.flags |= GIT_DIFF_INCLUDE_TYPECHANGE;
	int code = git_diff_tree_to_tree(&d, r, from, to, &o);
	return code < 0 ? failed(code) : made(DIFF, d, DIFF_SIZE + DELTA_SIZE * git_diff_num_deltas(d));
}

raw_delta raw_delta_at(git_diff *d, size_t n)
{
	const git_diff_delta *delta = git_diff_get_delta(d, n);
	return (raw_delta){.path = delta->new_file.path, .deleted = delta->status == GIT_DELTA_DELETED};
}

// Each kind has a function of its own that frees an object, as in libgit2. These
// functions only add the counting.
#define DESTRUCTOR(kind, name, free)                                  \
	static void name(void *object)                                \
	{                                                             \
		free(object);                                         \
		__atomic_fetch_sub(&live[kind], 1, __ATOMIC_RELAXED); \
	}

DESTRUCTOR(REPOSITORY, free_repository, git_repository_free)
DESTRUCTOR(WALK, free_walk, git_revwalk_free)
DESTRUCTOR(COMMIT, free_commit, git_commit_free)
DESTRUCTOR(TREE, free_tree, git_tree_free)
DESTRUCTOR(ENTRY, free_entry, git_tree_entry_free)
DESTRUCTOR(BLOB, free_blob, git_blob_free)
DESTRUCTOR(DIFF, free_diff, git_diff_free)

static void (*const destructors[KINDS])(void *) = {
	[REPOSITORY] = free_repository,
	[WALK] = free_walk,
	[COMMIT] = free_commit,
	[TREE] = free_tree,
	[ENTRY] = free_entry,
	[BLOB] = free_blob,
	[DIFF] = free_diff,
};

void raw_free(int kind, void *object) { destructors[kind](object); }

void *raw_destructor(int kind) { return (void *)destructors[kind]; }

int64_t raw_live(int kind) { return __atomic_load_n(&live[kind], __ATOMIC_RELAXED); }
