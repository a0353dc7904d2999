//go:build ignore

// The allocator that the process would call without this package:
//
//	the program is linked      the allocator behind is
//	dynamically                what dlsym(RTLD_NEXT) finds: that of the C library, or one that is preloaded
//	with a malloc of its own,  the program's functions, and those of the C library for what it has not
//	  or statically (glibc)
//	statically (musl)          __libc_malloc, the only one that has a name: blocks get a prefix

#define _GNU_SOURCE
#include "internal.h"

#include <dlfcn.h>
#include <errno.h>
#include <locale.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#if defined __GLIBC__ && !defined CMEM_SHARED
// These bring the malloc of the C library along where the program is linked statically. Some of
// its functions are weak there, too, and then those of this file are called.
extern void *__libc_malloc(size_t);
extern void __libc_free(void *);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);
extern void *__libc_valloc(size_t);
extern void *__libc_pvalloc(size_t);

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
	if (!p)
		return 0;
	size_t head = ((size_t *)p)[-1]; // a size and three flags; the second is set if the block is mapped
	return (head & ~(size_t)7) - (head & 2 ? 2 : 1) * sizeof(size_t);
}

// find_own takes for each function that of the program, or else that of the C library.
static struct next find_own(const struct next *ours) {
	struct next found = {0};
#define OWN(name, libc) found.name = (void *)name != (void *)ours->name ? name : libc
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
	return found;
}
#elif !defined __GLIBC__
// These musl has for itself, if the program is linked statically; no other symbol leads to its
// malloc then, because those that a program may replace are this file's. The two functions that are
// not weak bring them along. It has no realloc for itself, so blocks have a prefix.
extern void *__libc_malloc(size_t) __attribute__((weak));
extern void __libc_free(void *) __attribute__((weak));
__attribute__((used)) static const void *const bring[] = {newlocale, freelocale};

struct prefix {
	void *block; // what the C library knows
	size_t n;
};

static void *prefixed_memalign(size_t align, size_t n) {
	size_t all;
	if (align < sizeof(struct prefix))
		align = sizeof(struct prefix);
	if (__builtin_add_overflow(n, 2 * align, &all)) {
		errno = ENOMEM;
		return 0;
	}
	char *block = __libc_malloc(all);
	if (!block)
		return 0;
	struct prefix *h = (struct prefix *)(((uintptr_t)(block + 2 * align - 1) & -align) - sizeof *h);
	*h = (struct prefix){block, n};
	return h + 1;
}
static void *prefixed_malloc(size_t n) { return prefixed_memalign(sizeof(struct prefix), n); }
static void prefixed_free(void *p) {
	if (p)
		__libc_free(((struct prefix *)p)[-1].block);
}
static size_t prefixed_size(void *p) { return p ? ((struct prefix *)p)[-1].n : 0; }
static void *prefixed_calloc(size_t n, size_t size) {
	size_t all;
	if (__builtin_mul_overflow(n, size, &all)) {
		errno = ENOMEM;
		return 0;
	}
	void *p = prefixed_malloc(all);
	return p ? memset(p, 0, all) : 0;
}
static void *prefixed_realloc(void *p, size_t n) {
	void *q = prefixed_malloc(n);
	if (q && p) {
		memcpy(q, p, prefixed_size(p) < n ? prefixed_size(p) : n);
		prefixed_free(p);
	}
	return q;
}
static int prefixed_posix_memalign(void **p, size_t align, size_t n) {
	if (align < sizeof(void *) || (align & (align - 1)) != 0)
		return EINVAL;
	void *q = prefixed_memalign(align, n);
	if (!q)
		return ENOMEM;
	*p = q;
	return 0;
}
static void *prefixed_valloc(size_t n) { return prefixed_memalign(4096, n); }
static const struct next prefixed = {prefixed_malloc, prefixed_free, prefixed_calloc, prefixed_realloc,
	prefixed_memalign, prefixed_memalign, prefixed_posix_memalign, prefixed_valloc, prefixed_valloc, prefixed_size};
#endif

// For an allocator without valloc or pvalloc.
static void *(*memalign_behind)(size_t, size_t);
static void *valloc_behind(size_t n) { return memalign_behind(4096, n); }
#ifndef __GLIBC__
// calloc, memalign, posix_memalign and valloc of musl call malloc or one another by the names that this package has: a
// block would count twice. So others take their place.
static void *(*malloc_behind)(size_t);
static void *calloc_behind(size_t n, size_t size) {
	enum { page = 4096 };
	static const char zeros[page];
	size_t all;
	if (__builtin_mul_overflow(n, size, &all)) {
		errno = ENOMEM;
		return 0;
	}
	char *p = malloc_behind(all);
	for (size_t at = 0, k; p && at < all; at += k) {
		k = all - at < page ? all - at : page;
		if (k < page || memcmp(p + at, zeros, k) != 0) // a page that is fresh is only read, and takes no memory
			memset(p + at, 0, k);
	}
	return p;
}
static int posix_memalign_behind(void **p, size_t align, size_t n) {
	if (align < sizeof(void *))
		return EINVAL;
	void *q = memalign_behind(align, n);
	if (!q)
		return errno;
	*p = q;
	return 0;
}
#endif

int cmem_find_next(struct next *found, const struct next *ours) {
#if defined __GLIBC__ && !defined CMEM_SHARED
	if ((void *)malloc != (void *)ours->malloc) {
		*found = find_own(ours);
		return 0;
	}
#endif
#define FIND(name) *(void **)&found->name = dlsym(cmem_behind, #name)
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
#ifndef __GLIBC__
	if (!found->malloc && __libc_malloc && __libc_free) {
		*found = prefixed;
		return 0;
	}
#endif
	if (!found->malloc || !found->free || !found->calloc || !found->realloc || !found->memalign ||
		!found->aligned_alloc || !found->posix_memalign)
		abort(); // no allocator behind this one
#ifndef __GLIBC__
	malloc_behind = found->malloc;
	found->calloc = calloc_behind;
	found->memalign = found->aligned_alloc;
	found->posix_memalign = posix_memalign_behind;
	found->valloc = valloc_behind;
#endif
	memalign_behind = found->memalign;
	if (!found->valloc)
		found->valloc = valloc_behind;
	if (!found->pvalloc)
		found->pvalloc = valloc_behind;
	return 1;
}
