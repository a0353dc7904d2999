//go:build ignore

// What the allocator behind this package counts by itself. Each has functions for that which the others have not.

#define _GNU_SOURCE
#include "internal.h"

#include <dlfcn.h>

// find returns a function of the next allocator, or 0.
static void *find(const char *name) {
	void *f = dlsym(cmem_behind, name);
	return cmem_together(f, dlsym(cmem_behind, "malloc")) ? f : 0;
}

// What mallinfo2 of glibc returns, which came with glibc 2.33, and mallinfo, whose numbers go up to 4 GiB. By name they would
// need the version of glibc with which the program was built.
struct info2 {
	size_t arena, ordblks, smblks, hblks, hblkhd, usmblks, fsmblks, uordblks, fordblks, keepcost;
};
struct info {
	unsigned arena, ordblks, smblks, hblks, hblkhd, usmblks, fsmblks, uordblks, fordblks, keepcost;
};

static int (*mallctl)(const char *, void *, size_t *, void *, size_t); // of jemalloc
static int (*number)(const char *, size_t *);                          // of tcmalloc
static struct info2 (*info2)(void);
static struct info (*info)(void);

void cmem_unseen_start(void) {
	*(void **)&mallctl = find("mallctl");
	*(void **)&number = find("MallocExtension_GetNumericProperty");
	*(void **)&info2 = find("mallinfo2");
	*(void **)&info = find("mallinfo");
}

int64_t cmem_allocator_in_use(int *header) {
	size_t n = 0, size = sizeof n;
	*header = 0;
	if (mallctl) {
		uint64_t epoch = 1; // the statistics are those of the last call with one
		mallctl("epoch", 0, 0, &epoch, sizeof epoch);
		return mallctl("stats.allocated", &n, &size, 0, 0) == 0 ? (int64_t)n : -1;
	}
	if (number)
		return number("generic.current_allocated_bytes", &n) ? (int64_t)n : -1;
	*header = sizeof(size_t);
	if (info2) {
		struct info2 i = info2();
		return i.uordblks + i.hblkhd;
	}
	if (info && !cmem_late) { // a server that has grown may have more than 4 GiB
		struct info i = info();
		return (int64_t)i.uordblks + i.hblkhd;
	}
	return -1;
}
