//go:build ignore

// mmap, mremap and munmap. The C library calls its own by names that are not exported, so the memory of malloc and the
// stacks of threads do not come here. The runtime of Go calls mmap by way of x_cgo_mmap of package runtime/cgo, on some
// systems; these calls are left out.
//
//	mmap      the call; then what was there has ended, and the mapping may be sampled
//	munmap    the filter knows no sampled mapping there: the call
//	          else: what is sampled there is taken out of the table, the call, and back if it has failed
//	mremap    as munmap; then what was taken out goes to where the mapping is now, and what it has grown by is a
//	          mapping of its own
//
// What is unmapped is taken out before the call, because another thread may get the address a moment later. Nothing here
// allocates, or waits for a lock of the program: mmap may be called in the handler of a signal, and by an allocator.

#define _GNU_SOURCE
#include "internal.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#undef mmap64 // older versions of musl have a macro
#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif

EXPORT(void *, mmap, (void *, size_t, int, int, int, off_t), cmem_mmap)
EXPORT(void *, mmap64, (void *, size_t, int, int, int, int64_t), cmem_mmap64)
EXPORT(int, munmap, (void *, size_t), cmem_munmap)
EXPORT(void *, mremap, (void *, size_t, size_t, int, ...), cmem_mremap)

// Those that would be called without this package; 0 before the program starts: then the system is called.
static struct {
	void *(*mmap)(void *, size_t, int, int, int, off_t);
	void *(*mmap64)(void *, size_t, int, int, int, int64_t);
	int (*munmap)(void *, size_t);
	void *(*mremap)(void *, size_t, size_t, int, ...);
} next;

#define caller __builtin_return_address(0)

static uintptr_t page_mask = 4095;

void cmem_mmap_start(void) {
	page_mask = sysconf(_SC_PAGESIZE) - 1;
#define FIND(name) *(void **)&next.name = dlsym(cmem_behind, #name)
	FIND(mmap);
	FIND(mmap64);
	FIND(munmap);
	FIND(mremap);
}

// of_runtime reports whether the function that returns to ra is x_cgo_mmap or x_cgo_munmap, which lie side by side.
// The library that is preloaded into a program tells by the stack.
static int of_runtime(void *ra) {
#ifndef CMEM_SHARED
	extern char x_cgo_mmap[] __attribute__((weak)), x_cgo_munmap[] __attribute__((weak));
	enum { both = 512, one = 128 };
	uintptr_t first = (uintptr_t)x_cgo_mmap, second = (uintptr_t)x_cgo_munmap, at = (uintptr_t)ra;
	if (first > second) {
		second = first;
		first = (uintptr_t)x_cgo_munmap;
	}
	return first != 0 && second - first < both && at >= first && at < second + one;
#else
	return 0;
#endif
}

static struct range *take(uintptr_t from, uintptr_t to) {
	sigset_t old;
	if (likely(!cmem_ranges_any(from, to)))
		return 0;
	cmem_lock(&old);
	struct range *all = cmem_ranges_take(from, to);
	cmem_unlock(&old);
	return all;
}

static void end(struct range *all) {
	sigset_t old;
	if (!all)
		return;
	cmem_lock(&old);
	cmem_ranges_end(all);
	cmem_unlock(&old);
}

static void put(struct range *all, uintptr_t by, uintptr_t last) {
	sigset_t old;
	if (!all)
		return;
	cmem_lock(&old);
	cmem_ranges_put(all, by, last);
	cmem_unlock(&old);
}

static size_t whole_pages(size_t n) { return (n + page_mask) & ~page_mask; }

// mapped counts a mapping of n bytes at p, which may be MAP_FAILED.
static void *mapped(void *p, size_t n, void *from) {
	uintptr_t at = (uintptr_t)p;
	if (unlikely(p == MAP_FAILED))
		return p;
	n = whole_pages(n);
	end(take(at, at + n)); // by MAP_FIXED, or unmapped by another way
	if (!of_runtime(from))
		cmem_note_mapping(at, n, from);
	return p;
}

void *cmem_mmap(void *at, size_t n, int prot, int flags, int fd, off_t offset) {
	void *p = next.mmap ? next.mmap(at, n, prot, flags, fd, offset) : cmem_system_mmap(at, n, prot, flags, fd, offset);
	return mapped(p, n, caller);
}

void *cmem_mmap64(void *at, size_t n, int prot, int flags, int fd, int64_t offset) {
	void *p =
		next.mmap64 ? next.mmap64(at, n, prot, flags, fd, offset) : cmem_system_mmap(at, n, prot, flags, fd, offset);
	return mapped(p, n, caller);
}

int cmem_munmap(void *p, size_t n) {
	uintptr_t at = (uintptr_t)p;
	struct range *taken = take(at, at + whole_pages(n));
	int r = next.munmap ? next.munmap(p, n) : cmem_system_munmap(p, n);
	if (r == 0 && !of_runtime(caller))
		cmem_count_munmap();
	if (unlikely(taken != 0)) {
		int saved = errno;
		if (r == 0)
			end(taken);
		else
			put(taken, 0, UINTPTR_MAX);
		errno = saved;
	}
	return r;
}

void *cmem_mremap(void *old, size_t was, size_t n, int flags, ...) {
	va_list rest;
	va_start(rest, flags);
	void *to = flags & MREMAP_FIXED || flags & MREMAP_DONTUNMAP ? va_arg(rest, void *) : 0;
	va_end(rest);
	uintptr_t from = (uintptr_t)old, old_n = whole_pages(was), new_n = whole_pages(n);
	int moves = old_n != 0 && !(flags & MREMAP_DONTUNMAP); // else what was there stays
	struct range *taken = moves ? take(from, from + old_n) : 0;
	void *p = next.mremap ? next.mremap(old, was, n, flags, to) : (void *)syscall(SYS_mremap, old, was, n, flags, to);
	int saved = errno;
	uintptr_t at = (uintptr_t)p;
	if (p == MAP_FAILED) {
		put(taken, 0, UINTPTR_MAX);
		errno = saved;
		return p;
	}
	if (!moves || at != from)
		end(take(at, at + new_n));
	put(taken, at - from, at + new_n);
	if (!moves) {
		mapped(p, n, caller);
	} else if (new_n > old_n && !of_runtime(caller)) {
		end(take(at + old_n, at + new_n)); // of an address that was unmapped by another way
		cmem_note_mapping(at + old_n, new_n - old_n, caller);
	}
	errno = saved;
	return p;
}
