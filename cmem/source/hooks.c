//go:build ignore
// Package cmem includes it where it works.

// The functions of the C library that allocate and free. A symbol of the executable comes before
// those of shared libraries, so these are called in the whole process. Each counts, and calls the
// function that would have been called without it.
//
// They are weak: a program that is linked with an allocator of its own, or statically, keeps its
// functions, and cmem_off says so.

#define _GNU_SOURCE
#include "internal.h"

#include <dlfcn.h>
#include <errno.h>
#include <locale.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

// To find the allocator, dlsym may allocate. What it asks for comes from here, and stays: the
// filter knows these blocks for ever, so that they are told apart before they are freed.
static char early[64 << 10] __attribute__((aligned(64)));
static size_t early_used;

// It is volatile because the compiler believes that dlsym calls nothing in this file.
static __thread volatile int resolving __attribute__((tls_model("initial-exec")));

static int is_early(const void *p) { return (uintptr_t)p - (uintptr_t)early < sizeof early; }

static void *early_malloc(size_t n) {
	size_t whole = (n + 16 + 15) & ~(size_t)15;
	size_t at = whole < n || whole > sizeof early ? sizeof early : __atomic_fetch_add(&early_used, whole, __ATOMIC_RELAXED);
	if (at >= sizeof early || at > sizeof early - whole) {
		errno = ENOMEM;
		return 0;
	}
	char *p = early + at + 16;
	*(size_t *)(p - 16) = n;
	cmem_filter[filter_of((uintptr_t)p)] = 255;
	return p;
}

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
#define FIRST(ret, name, params, ...)     \
	static ret first_##name params {      \
		resolve();                        \
		return cmem_next.name(__VA_ARGS__); \
	}
FIRST(void *, memalign, (size_t align, size_t n), align, n)
FIRST(void *, aligned_alloc, (size_t align, size_t n), align, n)
FIRST(int, posix_memalign, (void **p, size_t align, size_t n), p, align, n)
FIRST(void *, valloc, (size_t n), n)
FIRST(void *, pvalloc, (size_t n), n)
FIRST(size_t, malloc_usable_size, (void *p), p)

struct next cmem_next = {
	first_malloc, first_free, first_calloc, first_realloc, first_memalign, first_aligned_alloc,
	first_posix_memalign, first_valloc, first_pvalloc, first_malloc_usable_size,
};

void *cmem_malloc(size_t), *cmem_calloc(size_t, size_t), *cmem_realloc(void *, size_t), *cmem_reallocarray(void *, size_t, size_t);
void *cmem_memalign(size_t, size_t), *cmem_aligned_alloc(size_t, size_t), *cmem_valloc(size_t), *cmem_pvalloc(size_t);
void cmem_free_sized(void *, size_t), cmem_free_aligned_sized(void *, size_t, size_t);
int cmem_posix_memalign(void **, size_t, size_t);
size_t cmem_malloc_usable_size(void *);
int cmem_dlclose(void *);

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
EXPORT(int, dlclose, (void *), cmem_dlclose)

static void *no_valloc(size_t n) { return cmem_next.memalign(4096, n); }

#if defined __GLIBC__ && !defined CMEM_SHARED
// These bring the malloc of the C library along where the program is linked statically. Some of
// its functions are weak there, too, and then those of this file are called.
extern void *__libc_malloc(size_t), __libc_free(void *), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t), *__libc_valloc(size_t), *__libc_pvalloc(size_t);

static int libc_posix_memalign(void **p, size_t align, size_t n) {
	if (align < sizeof(void *) || (align & (align - 1)) != 0)
		return EINVAL;
	void *q = __libc_memalign(align, n);
	if (!q)
		return ENOMEM;
	*p = q;
	return 0;
}

static size_t libc_malloc_usable_size(void *p) {
	size_t head = p ? ((size_t *)p)[-1] : 0; // a size and three flags, of which the second says that the block is mapped
	return p ? (head & ~(size_t)7) - (head & 2 ? 2 : 1) * sizeof(size_t) : 0;
}

// resolve_own takes for each function that of the program, or else that of the C library.
static void resolve_own(void) {
	struct next found = {0};
#define OWN(name, libc) found.name = (void *)name != (void *)cmem_##name ? name : libc
	OWN(malloc, __libc_malloc);
	OWN(free, __libc_free);
	OWN(calloc, __libc_calloc);
	OWN(realloc, __libc_realloc);
	OWN(memalign, __libc_memalign);
	OWN(aligned_alloc, __libc_memalign);
	OWN(posix_memalign, libc_posix_memalign);
	OWN(valloc, __libc_valloc);
	OWN(pvalloc, __libc_pvalloc);
	OWN(malloc_usable_size, libc_malloc_usable_size);
	cmem_next = found;
}
#elif !defined __GLIBC__
// These musl has for itself, if the program is linked statically; no other symbol leads to its
// malloc then, because those that a program may replace are this file's. The two functions that are
// not weak bring them along. It has no realloc for itself, so blocks have a header of their own.
extern void *__libc_malloc(size_t) __attribute__((weak)), __libc_free(void *) __attribute__((weak));
__attribute__((used)) static const void *const bring[] = {newlocale, freelocale};

struct header {
	void *block; // what the C library knows
	size_t n;
};

static void *headed_memalign(size_t align, size_t n) {
	size_t all;
	if (align < sizeof(struct header))
		align = sizeof(struct header);
	if (__builtin_add_overflow(n, 2 * align, &all)) {
		errno = ENOMEM;
		return 0;
	}
	char *block = __libc_malloc(all);
	if (!block)
		return 0;
	struct header *h = (struct header *)(((uintptr_t)(block + 2 * align - 1) & -align) - sizeof *h);
	*h = (struct header){block, n};
	return h + 1;
}
static void *headed_malloc(size_t n) { return headed_memalign(sizeof(struct header), n); }
static void headed_free(void *p) {
	if (p)
		__libc_free(((struct header *)p)[-1].block);
}
static size_t headed_size(void *p) { return p ? ((struct header *)p)[-1].n : 0; }
static void *headed_calloc(size_t n, size_t size) {
	size_t all;
	if (__builtin_mul_overflow(n, size, &all)) {
		errno = ENOMEM;
		return 0;
	}
	void *p = headed_malloc(all);
	return p ? memset(p, 0, all) : 0;
}
static void *headed_realloc(void *p, size_t n) {
	void *q = headed_malloc(n);
	if (q && p) {
		memcpy(q, p, headed_size(p) < n ? headed_size(p) : n);
		headed_free(p);
	}
	return q;
}
static int headed_posix_memalign(void **p, size_t align, size_t n) {
	if (align < sizeof(void *) || (align & (align - 1)) != 0)
		return EINVAL;
	void *q = headed_memalign(align, n);
	if (!q)
		return ENOMEM;
	*p = q;
	return 0;
}
static const struct next headed = {
	headed_malloc, headed_free, headed_calloc, headed_realloc, headed_memalign, headed_memalign,
	headed_posix_memalign, no_valloc, no_valloc, headed_size,
};
#endif

// resolve finds the next allocator. Several threads may do so at a time, and find the same.
static void resolve(void) {
	struct next found;
#if defined __GLIBC__ && !defined CMEM_SHARED
	if ((void *)malloc != (void *)cmem_malloc) {
		resolve_own();
		return;
	}
#endif
	resolving++;
#define FIND(name) *(void **)&found.name = dlsym(RTLD_NEXT, #name)
	FIND(malloc);
	FIND(free);
	FIND(calloc);
	FIND(realloc);
	FIND(memalign);
	FIND(aligned_alloc);
	FIND(posix_memalign);
	FIND(valloc);
	FIND(pvalloc);
	FIND(malloc_usable_size);
	if (!found.valloc)
		found.valloc = no_valloc;
	if (!found.pvalloc)
		found.pvalloc = no_valloc;
	if (found.malloc)
		cmem_layer(&found);
	resolving--;
#ifndef __GLIBC__
	if (!found.malloc && __libc_malloc && __libc_free) {
		cmem_next = headed;
		return;
	}
#endif
	if (!found.malloc || !found.free || !found.calloc || !found.realloc || !found.memalign || !found.aligned_alloc || !found.posix_memalign)
		abort(); // no allocator behind this one
	cmem_next = found;
	cmem_operators();
}

// freed counts a free, and reports whether that is all. Else nothing is counted, and the block may
// be sampled.
static inline int freed(void *p) {
	struct thread *t = cmem_mine;
	if (unlikely(t->filter[filter_of((uintptr_t)p)] != 0))
		return 0;
	t->frees++;
	return 1;
}

#define caller __builtin_return_address(0)

// The slow ways are functions of their own, so that the others save no register.
static __attribute__((noinline)) void *noted_malloc(size_t n, void *from) {
	void *p = cmem_next.malloc(n);
	cmem_note(p, n, from);
	return p;
}

void *cmem_malloc(size_t n) { return counted(n) ? cmem_next.malloc(n) : noted_malloc(n, caller); }

void cmem_free(void *p) {
	if (!p)
		return;
	if (!freed(p)) {
		if (is_early(p))
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
	return counted(n * size) ? cmem_next.calloc(n, size) : noted_calloc(n, size, caller);
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
	int sampled = cmem_detach(p, &was); // it counts the free
	void *q = cmem_next.realloc(p, n);
	if (sampled) // 0 bytes free the block in glibc
		cmem_detached(&was, q || n == 0);
	return q;
}

static void *realloc_from(void *p, size_t n, void *from) {
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

#define ALIGNED(name)                                 \
	void *cmem_##name(size_t align, size_t n) {       \
		void *p = cmem_next.name(align, n);           \
		if (!counted(n))                    \
			cmem_note(p, n, caller);                  \
		return p;                                     \
	}
ALIGNED(memalign)
ALIGNED(aligned_alloc)

int cmem_posix_memalign(void **p, size_t align, size_t n) {
	int r = cmem_next.posix_memalign(p, align, n);
	if (!counted(n))
		cmem_note(r == 0 ? *p : 0, n, caller);
	return r;
}

#define PAGES(name)                         \
	void *cmem_##name(size_t n) {           \
		void *p = cmem_next.name(n);        \
		if (!counted(n))          \
			cmem_note(p, n, caller);        \
		return p;                           \
	}
PAGES(valloc)
PAGES(pvalloc)

size_t cmem_malloc_usable_size(void *p) {
	return is_early(p) ? early_size(p) : cmem_next.malloc_usable_size(p);
}

void cmem_free_sized(void *p, size_t n) { cmem_free(p); }
void cmem_free_aligned_sized(void *p, size_t align, size_t n) { cmem_free(p); }

// A library that is unloaded makes its addresses free for the next one. It is counted before and
// after: a stack that was seen earlier, or meanwhile, is not named by the library that is there now.
in_shared uint32_t cmem_closed;
uint32_t cmem_unloaded(void) { return __atomic_load_n(&cmem_closed, __ATOMIC_SEQ_CST); }
int cmem_dlclose(void *handle) {
	static int (*next)(void *);
	int (*f)(void *) = __atomic_load_n(&next, __ATOMIC_RELAXED);
	if (!f) {
		*(void **)&f = dlsym(RTLD_NEXT, "dlclose");
		__atomic_store_n(&next, f, __ATOMIC_RELAXED);
	}
	__atomic_fetch_add(&cmem_closed, 1, __ATOMIC_SEQ_CST);
	int r = f ? f(handle) : -1;
	__atomic_fetch_add(&cmem_closed, 1, __ATOMIC_SEQ_CST);
	return r;
}

// is_called reports whether the program has no malloc of its own. In a library that is preloaded,
// the address does not say it: where a program takes the address of malloc, that is of a stub of
// the program, which calls the malloc of this library. So a call shows it.
static int is_called(void) {
#ifdef CMEM_SHARED
	uint64_t before = __atomic_load_n(&cmem_none.mallocs, __ATOMIC_RELAXED); // no thread has a record yet
	void *volatile p = malloc(1);
	free(p);
	return __atomic_load_n(&cmem_none.mallocs, __ATOMIC_RELAXED) != before;
#else
	return (void *)malloc == (void *)cmem_malloc;
#endif
}

static const char *off = "the program has not started";

const char *cmem_off(void) { return off; }

// start runs before the constructors of the program.
__attribute__((constructor(101))) static void start(void) {
	const char *e = getenv("CHEAPCMEM");
	if (cmem_next.malloc == first_malloc)
		resolve();
	if (!is_called() || dlsym(RTLD_NEXT, "malloc") == 0)
		off = "the program is linked with a malloc of its own, or statically";
#ifndef CMEM_SHARED
	else if (dlsym(RTLD_DEFAULT, "malloc") != (void *)cmem_malloc)
		off = "the process calls another malloc: the program that has loaded this library does not have the package";
#endif
	else if (e && strcmp(e, "off") == 0)
		off = "CHEAPCMEM is off in the environment";
	else if (!dlsym(RTLD_DEFAULT, "_dl_find_object"))
		off = "the unwinder takes a lock with this C library, which is not glibc 2.35 or newer";
	else if (!cmem_unwinder())
		off = "the unwinder is linked into the program, and is older than that of GCC 13: it allocates with a lock held that it needs to look at a stack";
	else
		off = "";
}
