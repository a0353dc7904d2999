//go:build ignore

// malloc, free and their like. The linker exports them from the executable, and a symbol of the
// executable comes before those of shared libraries, so the whole process calls them. Each counts,
// and calls the function of the next allocator: cmem_next.
//
//	malloc(n)    n <= bytes left to the next sample: subtract n, count, call
//	             else (noted_malloc): call, then cmem_note
//	free(p)      the filter knows no sampled block like p: count, call
//	             else: cmem_forget, then call
//
// While nothing is counted, because the environment has CHEAP_CMEM=ready, both read waits, and call.
//
// They are weak: a program that is linked with an allocator of its own, or statically, keeps its
// functions, and cmem_off says so.
//
// cmem_next begins with functions that look for the next allocator when the first of them is called,
// which may be before any constructor has run.

#define _GNU_SOURCE
#include "internal.h"

#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

// dlsym, which finds the allocator, may allocate. Its blocks come from here, and are never freed: the
// filter knows them for ever, so cmem_free and cmem_realloc recognize them.
static char early[64 << 10] __attribute__((aligned(64)));
static size_t early_used;

// It is volatile because the compiler believes that dlsym calls nothing in this file.
static __thread volatile int resolving tls;

static int is_early(const void *p) { return (uintptr_t)p - (uintptr_t)early < sizeof early; }

static void *early_malloc(size_t n) {
	size_t whole = (n + 16 + 15) & ~(size_t)15;
	size_t at = sizeof early;
	if (whole >= n && whole <= sizeof early)
		at = __atomic_fetch_add(&early_used, whole, __ATOMIC_RELAXED);
	if (at >= sizeof early || at > sizeof early - whole) {
		errno = ENOMEM;
		return 0;
	}
	char *p = early + at + 16;
	*(size_t *)(p - 16) = n;
	cmem_filter[filter_of((uintptr_t)p)] = 255;
	return p;
}

int cmem_has_early(void) { return __atomic_load_n(&early_used, __ATOMIC_RELAXED) != 0; }

static size_t early_size(void *p) { return *(size_t *)((char *)p - 16); }

static void resolve(void);

static void *first_malloc(size_t n) {
	if (resolving)
		return early_malloc(n);
	resolve();
	return cmem_next.malloc(n);
}
static void *first_calloc(size_t n, size_t size) {
	size_t all;
	if (resolving)
		return __builtin_mul_overflow(n, size, &all) ? 0 : early_malloc(all);
	resolve();
	return cmem_next.calloc(n, size);
}
static void *first_realloc(void *p, size_t n) {
	if (resolving) {
		void *q = early_malloc(n);
		if (q && p)
			memcpy(q, p, early_size(p) < n ? early_size(p) : n);
		return q;
	}
	resolve();
	return cmem_next.realloc(p, n);
}
static void first_free(void *p) {
	if (resolving)
		return;
	resolve();
	cmem_next.free(p);
}
#define FIRST(ret, name, params, ...) \
	static ret first_##name params { \
		resolve(); \
		return cmem_next.name(__VA_ARGS__); \
	}
FIRST(void *, memalign, (size_t align, size_t n), align, n)
FIRST(void *, aligned_alloc, (size_t align, size_t n), align, n)
FIRST(int, posix_memalign, (void **p, size_t align, size_t n), p, align, n)
FIRST(void *, valloc, (size_t n), n)
FIRST(void *, pvalloc, (size_t n), n)
FIRST(size_t, malloc_usable_size, (void *p), p)

struct next cmem_next = {first_malloc, first_free, first_calloc, first_realloc, first_memalign, first_aligned_alloc,
	first_posix_memalign, first_valloc, first_pvalloc, first_malloc_usable_size};

EXPORT(void *, malloc, (size_t), cmem_malloc)
EXPORT(void, free, (void *), cmem_free)
EXPORT(void, cfree, (void *), cmem_free)
EXPORT(void *, calloc, (size_t, size_t), cmem_calloc)
EXPORT(void *, realloc, (void *, size_t), cmem_realloc)
EXPORT(void *, reallocarray, (void *, size_t, size_t), cmem_reallocarray)
EXPORT(void *, memalign, (size_t, size_t), cmem_memalign)
EXPORT(void *, aligned_alloc, (size_t, size_t), cmem_aligned_alloc)
EXPORT(int, posix_memalign, (void **, size_t, size_t), cmem_posix_memalign)
EXPORT(void *, valloc, (size_t), cmem_valloc)
EXPORT(void *, pvalloc, (size_t), cmem_pvalloc)
EXPORT(size_t, malloc_usable_size, (void *), cmem_malloc_usable_size)
EXPORT(void, free_sized, (void *, size_t), cmem_free_sized)
EXPORT(void, free_aligned_sized, (void *, size_t, size_t), cmem_free_aligned_sized)

// The functions of this file, in the order of struct next.
static const struct next ours = {cmem_malloc, cmem_free, cmem_calloc, cmem_realloc, cmem_memalign, cmem_aligned_alloc,
	cmem_posix_memalign, cmem_valloc, cmem_pvalloc, cmem_malloc_usable_size};

static int by_dlsym; // the next allocator was found by dlsym(RTLD_NEXT)

// resolve finds the next allocator. Several threads may do so at a time, and find the same.
static void resolve(void) {
	struct next found;
	resolving++;
	int dynamic = cmem_find_next(&found, &ours);
	if (dynamic && !cmem_late) // else the blocks from before would be missing
		cmem_layer(&found);
	resolving--;
	by_dlsym = dynamic;
	cmem_next = found;
	cmem_usable_size = found.malloc_usable_size;
}

int cmem_resolve(void) {
	if (cmem_next.malloc == first_malloc)
		resolve();
	return by_dlsym;
}

#define caller __builtin_return_address(0)

// The slow paths are functions of their own, so that the fast ones save no register.
static __attribute__((noinline)) void *noted_malloc(size_t n, void *from) {
	void *p = cmem_next.malloc(n);
	cmem_note(p, n, from);
	return p;
}

void *cmem_malloc(size_t n) { return waits() || counted(n) ? cmem_next.malloc(n) : noted_malloc(n, caller); }

void cmem_free(void *p) {
	if (!waits() && !freed(p)) {
		if (!p || is_early(p))
			return;
		cmem_forget(p);
	}
	cmem_next.free(p);
}

static __attribute__((noinline)) void *noted_calloc(size_t n, size_t size, void *from) {
	void *p = cmem_next.calloc(n, size);
	cmem_note(p, n * size, from);
	return p;
}

void *cmem_calloc(size_t n, size_t size) { // a product that overflows is refused
	return waits() || counted(n * size) ? cmem_next.calloc(n, size) : noted_calloc(n, size, caller);
}

// realloc_known is realloc of a block that the filter knows, or in a thread that has no record.
static __attribute__((noinline)) void *realloc_known(void *p, size_t n) {
	if (is_early(p)) {
		void *q = cmem_next.malloc(n);
		if (q)
			memcpy(q, p, early_size(p) < n ? early_size(p) : n);
		return q;
	}
	struct live was;
	cmem_count_free();
	int sampled = cmem_detach(p, &was);
	void *q = cmem_next.realloc(p, n);
	if (sampled) // 0 bytes free the block in glibc
		cmem_detached(&was, q || n == 0);
	return q;
}

static void *realloc_from(void *p, size_t n, void *from) {
	if (waits())
		return cmem_next.realloc(p, n);
	void *q = p && !freed(p) ? realloc_known(p, n) : cmem_next.realloc(p, n);
	if (!counted(n))
		cmem_note(q, n, from);
	return q;
}

void *cmem_realloc(void *p, size_t n) { return realloc_from(p, n, caller); }

void *cmem_reallocarray(void *p, size_t n, size_t size) {
	size_t all;
	if (__builtin_mul_overflow(n, size, &all)) {
		errno = ENOMEM;
		return 0;
	}
	return realloc_from(p, all, caller);
}

#define ALIGNED(name) \
	void *cmem_##name(size_t align, size_t n) { \
		void *p = cmem_next.name(align, n); \
		if (!waits() && !counted(n)) \
			cmem_note(p, n, caller); \
		return p; \
	}
ALIGNED(memalign)
ALIGNED(aligned_alloc)

int cmem_posix_memalign(void **p, size_t align, size_t n) {
	int r = cmem_next.posix_memalign(p, align, n);
	if (!waits() && !counted(n))
		cmem_note(r == 0 ? *p : 0, n, caller);
	return r;
}

#define PAGES(name) \
	void *cmem_##name(size_t n) { \
		void *p = cmem_next.name(n); \
		if (!waits() && !counted(n)) \
			cmem_note(p, n, caller); \
		return p; \
	}
PAGES(valloc)
PAGES(pvalloc)

size_t cmem_malloc_usable_size(void *p) { return is_early(p) ? early_size(p) : cmem_next.malloc_usable_size(p); }

void cmem_free_sized(void *p, size_t n) { cmem_free(p); }
void cmem_free_aligned_sized(void *p, size_t align, size_t n) { cmem_free(p); }

// In the library that is preloaded, the address of malloc may be that of a stub in the program, and so
// does not say whose malloc is called. A call of malloc shows it.
int cmem_is_called(void) {
#ifdef CMEM_SHARED
	uint64_t before = __atomic_load_n(&cmem_none.mallocs, __ATOMIC_RELAXED); // no thread has a record yet
	void *volatile p = malloc(1);
	free(p);
	return __atomic_load_n(&cmem_none.mallocs, __ATOMIC_RELAXED) != before;
#else
	return (void *)malloc == (void *)cmem_malloc;
#endif
}
