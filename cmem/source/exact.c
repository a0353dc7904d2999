//go:build ignore

// The bytes in use, exactly, with CHEAP_CMEM=exact in the environment: functions between those of
// hooks.c and the allocator, which ask for the size of each block when it is made and before it is
// freed. They are chosen when the program starts, so a program without the setting pays nothing.

#define _GNU_SOURCE
#include "internal.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

int cmem_exact;
static struct next below; // the allocator

// The allocator is that of glibc, with its sizes before the blocks.
static int glibc_sizes;

static inline int64_t size_of(void *p) {
#if defined(__x86_64__) && defined(__GLIBC__)
	// What malloc_usable_size of glibc returns, without the call: before the block is the size of the
	// chunk, with three flags. The chunk has its header, of one word. A chunk that is mapped by itself
	// (flag 2) has two. On other processors the header may have a tag of its own.
	if (likely(glibc_sizes)) {
		size_t head = ((const size_t *)p)[-1];
		return (head & ~(size_t)7) - (head & 2 ? 2 : 1) * sizeof(size_t);
	}
#endif
	return below.malloc_usable_size(p);
}

static inline void held(int64_t by) {
	struct thread *t = mine();
	if (unlikely(t == &cmem_none))
		__atomic_fetch_add(&t->held, by, __ATOMIC_RELAXED);
	else
		t->held += by;
}

static inline void *made(void *p) {
	if (likely(p != 0))
		held(size_of(p));
	return p;
}

// nallocx of jemalloc, or 0. It returns the size of the block that malloc would return, from a
// table, while malloc_usable_size has to find the block.
static size_t (*nallocx)(size_t n, int flags);

static void *exact_malloc(size_t n) { return made(below.malloc(n)); }

static void *jemalloc_malloc(size_t n) {
	void *p = below.malloc(n);
	if (unlikely(n == 0))
		return made(p);
	if (likely(p != 0))
		held(nallocx(n, 0));
	return p;
}

static void *exact_calloc(size_t n, size_t size) { return made(below.calloc(n, size)); }
static void *exact_memalign(size_t align, size_t n) { return made(below.memalign(align, n)); }
static void *exact_aligned_alloc(size_t align, size_t n) { return made(below.aligned_alloc(align, n)); }
static void *exact_valloc(size_t n) { return made(below.valloc(n)); }
static void *exact_pvalloc(size_t n) { return made(below.pvalloc(n)); }

static int exact_posix_memalign(void **p, size_t align, size_t n) {
	int r = below.posix_memalign(p, align, n);
	if (r == 0)
		made(*p);
	return r;
}

static void exact_free(void *p) {
	if (p)
		held(-size_of(p));
	below.free(p);
}

static void *exact_realloc(void *p, size_t n) {
	int64_t was = p ? size_of(p) : 0;
	void *q = below.realloc(p, n);
	if (q || n == 0) // 0 bytes may free the block
		held((q ? size_of(q) : 0) - was);
	return q;
}

int cmem_together(void *f, void *g) {
	Dl_info a, b;
	return f && g && dladdr(f, &a) && dladdr(g, &b) && a.dli_fbase == b.dli_fbase;
}

// Several threads may call it at a time, with the same functions.
void cmem_layer(struct next *next) {
	const char *e = getenv("CHEAP_CMEM");
	if (!e || strcmp(e, "exact") != 0 || !next->malloc_usable_size)
		return;
	below = *next;
	void *f = *(void **)&below.malloc, *of_jemalloc = dlsym(RTLD_NEXT, "nallocx");
	void *size = *(void **)&below.malloc_usable_size, *of_glibc = dlsym(RTLD_DEFAULT, "gnu_get_libc_version");
	glibc_sizes = cmem_together(f, of_glibc) && cmem_together(size, of_glibc);
	if (cmem_together(f, of_jemalloc) && cmem_together(size, of_jemalloc))
		*(void **)&nallocx = of_jemalloc;
#define LAYER(name) next->name = exact_##name
	LAYER(malloc);
	if (nallocx)
		next->malloc = jemalloc_malloc;
	LAYER(free);
	LAYER(calloc);
	LAYER(realloc);
	LAYER(memalign);
	LAYER(aligned_alloc);
	LAYER(posix_memalign);
	LAYER(valloc);
	LAYER(pvalloc);
	cmem_exact = 1;
}
