//go:build cgo

#define _GNU_SOURCE
#include "cmalloc.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef __GLIBC__
#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>

// The malloc of a program is glibc's, or that of a library that was preloaded or linked. Each malloc
// has functions that the others have not; they are NULL here unless the program's malloc has them.
static struct {
	int (*mallctl)(const char *, void *, size_t *, void *, size_t); // jemalloc
	void (*mi_collect)(_Bool);                                      // mimalloc
	void (*tc_release)(void);                                       // tcmalloc
	int (*tc_number)(const char *, size_t *);                       // tcmalloc
} of;

static char here; // its address lies in the file with this code

// same reports whether a and b are in the same file.
static int same(void *a, void *b) {
	Dl_info of_a, of_b;
	return a && b && dladdr(a, &of_a) && dladdr(b, &of_b) && of_a.dli_fbase == of_b.dli_fbase;
}

// from reports whether f is in the library whose malloc the program calls: a library with f may be loaded
// without that. With package cmem the first malloc is in the program itself, and calls the next one. That is
// found by the address of here, and not by a weak symbol of package cmem: Go's own linker has no weak symbols.
static int from(void *f) {
	void *first = dlsym(RTLD_DEFAULT, "malloc");
	return same(f, first) || (same(first, &here) && same(f, dlsym(RTLD_NEXT, "malloc")));
}

static void *find(const char *name) {
	void *f = dlsym(RTLD_DEFAULT, name);
	return from(f) ? f : NULL;
}

static enum cheap_malloc is;

static void look(void) {
	void *f;
	if ((f = find("mallctl"))) {
		*(void **)&of.mallctl = f;
		is = cheap_jemalloc;
	} else if ((f = find("mi_collect"))) {
		*(void **)&of.mi_collect = f;
		is = cheap_mimalloc;
	} else if ((f = find("MallocExtension_ReleaseFreeMemory"))) {
		*(void **)&of.tc_release = f;
		*(void **)&of.tc_number = find("MallocExtension_GetNumericProperty");
		is = cheap_tcmalloc;
	} else if (find("malloc_trim")) {
		is = cheap_glibc;
	}
}

enum cheap_malloc cheap_malloc_is(void) {
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	pthread_once(&once, look);
	return is;
}

static size_t jemalloc_number(const char *name) {
	size_t n = 0, size = sizeof n;
	return of.mallctl(name, &n, &size, NULL, 0) == 0 ? n : 0;
}

int cheap_malloc_read(size_t *used, size_t *unused) {
	*used = *unused = 0;
	switch (cheap_malloc_is()) {
	case cheap_glibc: {
#if __GLIBC_PREREQ(2, 33)
		struct mallinfo2 m = mallinfo2();
		*used = m.uordblks + m.hblkhd;
		*unused = m.fordblks;
#else
		struct mallinfo m = mallinfo(); // modulo 4 GiB
		*used = (size_t)(unsigned)m.uordblks + (unsigned)m.hblkhd;
		*unused = (unsigned)m.fordblks;
#endif
		return *used != 0; // 0: the program has a malloc of its own, which does not call glibc's
	}
	case cheap_jemalloc: {
		uint64_t epoch = 1;
		size_t size = sizeof epoch;
		of.mallctl("epoch", &epoch, &size, &epoch, size);
		size_t all = jemalloc_number("stats.resident");
		*used = jemalloc_number("stats.allocated");
		*unused = all > *used ? all - *used : 0;
		return all != 0;
	}
	case cheap_tcmalloc:
		return of.tc_number && of.tc_number("generic.current_allocated_bytes", used) &&
			of.tc_number("tcmalloc.pageheap_free_bytes", unused);
	default: return 0;
	}
}

void cheap_malloc_trim(void) {
	switch (cheap_malloc_is()) {
	case cheap_glibc: malloc_trim(0); break;
	case cheap_jemalloc:
		of.mallctl("arena.4096.purge", NULL, NULL, NULL, 0); // MALLCTL_ARENAS_ALL
		break;
	case cheap_mimalloc: of.mi_collect(1); break;
	case cheap_tcmalloc: of.tc_release(); break;
	default: break;
	}
}

void cheap_malloc_keep(size_t n) {
	if (cheap_malloc_is() != cheap_glibc)
		return;
	// mallopt ends the adjustment of both thresholds, so the first one is what it becomes at most.
	mallopt(M_MMAP_THRESHOLD, sizeof(long) == 8 ? 32 << 20 : 512 << 10);
	mallopt(M_TRIM_THRESHOLD, n != 0 ? n : 8 << 20);
}

char *cheap_malloc_info(void) {
	if (cheap_malloc_is() != cheap_glibc)
		return NULL;
	char *text = NULL;
	size_t size = 0;
	FILE *f = open_memstream(&text, &size);
	if (f == NULL)
		return NULL;
	int failed = malloc_info(0, f);
	if (fclose(f) == 0 && !failed)
		return text;
	free(text);
	return NULL;
}

// jemalloc_arenas is cheap_malloc_each. An arena that was never used has no statistics.
static int jemalloc_arenas(struct cheap_arena *to, int most) {
	uint64_t epoch = 1;
	size_t size = sizeof epoch;
	of.mallctl("epoch", &epoch, &size, &epoch, size);
	unsigned all = 0;
	size = sizeof all;
	of.mallctl("arenas.narenas", &all, &size, NULL, 0);
	int n = 0;
	for (unsigned i = 0; i < all && n < most; i++) {
		const char *parts[] = {"resident", "small.allocated", "large.allocated"};
		size_t numbers[3];
		for (int k = 0; k < 3; k++) {
			char name[64];
			snprintf(name, sizeof name, "stats.arenas.%u.%s", i, parts[k]);
			numbers[k] = jemalloc_number(name);
		}
		size_t used = numbers[1] + numbers[2];
		if (numbers[0] != 0)
			to[n++] = (struct cheap_arena){numbers[0], numbers[0] > used ? numbers[0] - used : 0};
	}
	return n;
}

int cheap_malloc_each(struct cheap_arena *to, int most) {
	size_t heap = 0, unmapped = 0, used = 0;
	switch (cheap_malloc_is()) {
	case cheap_jemalloc: return jemalloc_arenas(to, most);
	case cheap_tcmalloc: // which has one page heap for all threads
		if (most < 1 || !of.tc_number || !of.tc_number("generic.heap_size", &heap) ||
			!of.tc_number("tcmalloc.pageheap_unmapped_bytes", &unmapped) ||
			!of.tc_number("generic.current_allocated_bytes", &used) || heap < unmapped)
			return 0;
		heap -= unmapped;
		*to = (struct cheap_arena){heap, heap > used ? heap - used : 0};
		return 1;
	default: return 0;
	}
}

int cheap_malloc_arenas(void) {
	int n = 0;
	char *text = cheap_malloc_info();
	if (text == NULL)
		return 0;
	for (const char *at = text; (at = strstr(at, "<heap nr=")) != NULL; at++)
		n++;
	free(text);
	return n;
}
#else
enum cheap_malloc cheap_malloc_is(void) { return cheap_unknown; }
int cheap_malloc_read(size_t *used, size_t *unused) {
	*used = *unused = 0;
	return 0;
}
void cheap_malloc_trim(void) {}
void cheap_malloc_keep(size_t n) { (void)n; }
int cheap_malloc_arenas(void) { return 0; }
char *cheap_malloc_info(void) { return NULL; }
int cheap_malloc_each(struct cheap_arena *to, int most) {
	(void)to, (void)most;
	return 0;
}
#endif
