//go:build cgo && linux

// C code that maps memory.
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

// cwork_map maps below that many frames of C.
__attribute__((noinline)) void *cwork_map(int depth, void *at, size_t n, int prot, int flags) {
	void *volatile p = depth > 0 ? cwork_map(depth - 1, at, n, prot, flags)
								 : mmap(at, n, prot, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
	return p == MAP_FAILED ? 0 : p;
}

// cwork_remap moves a mapping if at is not 0, to there.
__attribute__((noinline)) void *cwork_remap(int depth, void *old, size_t was, size_t n, void *at) {
	int flags = at ? MREMAP_MAYMOVE | MREMAP_FIXED : MREMAP_MAYMOVE;
	void *volatile p = depth > 0 ? cwork_remap(depth - 1, old, was, n, at) : mremap(old, was, n, flags, at);
	return p == MAP_FAILED ? 0 : p;
}

struct all {
	void **p;
	const size_t *n;
	int count;
};

static void *map_all(void *arg) {
	struct all *a = arg;
	for (int i = 0; i < a->count; i++)
		a->p[i] = cwork_map(0, 0, a->n[i], PROT_READ | PROT_WRITE, 0);
	return 0;
}

// cwork_map_all makes mappings of these sizes in a thread that has made none before.
void cwork_map_all(void **p, const size_t *n, int count) {
	struct all a = {p, n, count};
	pthread_t t;
	if (pthread_create(&t, 0, map_all, &a) == 0)
		pthread_join(t, 0);
}

int cwork_unmap(void *p, size_t n) { return munmap(p, n); }

// The name is one that a library with jemalloc has.
__attribute__((noinline)) void *cwork_je_pages_map(size_t n) {
	void *volatile p = mmap(0, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return p;
}

// cwork_map_pairs makes and ends mappings, by the C library or by the system. It returns the nanoseconds of processor
// time.
int64_t cwork_map_pairs(int pairs, size_t n, int by_system, int touched) {
	struct timespec from, to;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &from);
	for (int i = 0; i < pairs; i++) {
		int prot = PROT_READ | PROT_WRITE, flags = MAP_PRIVATE | MAP_ANONYMOUS;
		char *p = by_system ? (char *)syscall(SYS_mmap, 0, n, prot, flags, -1, 0) : mmap(0, n, prot, flags, -1, 0);
		for (size_t at = 0; touched && at < n; at += 4096)
			p[at] = 1;
		if (by_system)
			syscall(SYS_munmap, p, n);
		else
			munmap(p, n);
	}
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &to);
	return (to.tv_sec - from.tv_sec) * 1000000000 + to.tv_nsec - from.tv_nsec;
}

// cwork_mappings makes, cuts, moves and ends mappings of its own, whose pages have their numbers. It returns how many
// pages were wrong.
int cwork_mappings(int rounds, uint32_t random) {
	enum { slots = 8, most = 64 };
	size_t page = sysconf(_SC_PAGESIZE);
	struct {
		char *p;
		size_t n; // pages
	} all[slots] = {0};
	int wrong = 0;
	for (int i = 0; i < rounds; i++) {
		random = random * 1664525 + 1013904223;
		uint32_t r = random >> 8, k = r % slots;
		size_t n = 1 + (r >> 3) % most;
		char *p = all[k].p;
		for (size_t at = 0; p && at < all[k].n; at++)
			wrong += *(uint32_t *)(p + at * page) != k;
		switch (p ? (r >> 10) % 4 : 4) {
		case 0: // a part is unmapped
			n = n < all[k].n ? n : all[k].n;
			wrong += munmap(p + (all[k].n - n) * page, n * page) != 0;
			if ((all[k].n -= n) == 0)
				all[k].p = 0;
			continue;
		case 1: // a part gets a new mapping
			n = n < all[k].n ? n : all[k].n;
			wrong += mmap(p, n * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != p;
			break;
		case 2: // all is moved: to where the system likes, or over another
		case 3: {
			int fixed = (r >> 10) % 4 == 3;
			char *to = fixed ? mmap(0, n * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) : 0;
			int flags = fixed ? MREMAP_MAYMOVE | MREMAP_FIXED : MREMAP_MAYMOVE;
			char *moved = mremap(p, all[k].n * page, n * page, flags, to);
			if (moved == MAP_FAILED) { // the part with a new mapping is one of its own for the system: EFAULT
				wrong += errno != EFAULT || munmap(p, all[k].n * page) != 0;
				if (fixed)
					munmap(to, n * page); // perhaps it is gone
				all[k].p = 0;
				continue;
			}
			wrong += fixed && moved != to;
			all[k].p = moved;
			all[k].n = n;
			break;
		}
		case 4:
			p = mmap(0, n * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
			all[k].p = p == MAP_FAILED ? 0 : p;
			all[k].n = n;
		}
		for (size_t at = 0; all[k].p && at < all[k].n; at++)
			*(uint32_t *)(all[k].p + at * page) = k;
	}
	for (int k = 0; k < slots; k++)
		if (all[k].p)
			wrong += munmap(all[k].p, all[k].n * page) != 0;
	return wrong;
}
