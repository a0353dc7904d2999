//go:build cgo && linux

// Work whose blocks are counted by the allocator as well.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { slots = 4096 };
static void *slot[slots]; // threads free what others have made

struct churn {
	uint64_t random;
	int calls;
};

static uint64_t next(uint64_t *x) { return *x ^= *x << 13, *x ^= *x >> 7, *x ^= *x << 17; }

static void *churn(void *arg) {
	struct churn *c = arg;
	for (int i = 0; i < c->calls;) {
		uint64_t r = next(&c->random);
		size_t n = r >> 32 & ((16u << (r >> 8 & 7)) - 1);
		if ((r >> 11 & 1023) == 0)
			n *= 100;
		void **at = &slot[r >> 52], *p = __atomic_exchange_n(at, 0, __ATOMIC_ACQUIRE), *q = 0;
		switch (r & 7) {
		case 0: q = calloc(2, n); break;
		case 1: q = aligned_alloc(64, n); break;
		case 2: q = realloc(p, n + 1), p = 0; break;
		case 3: if (posix_memalign(&q, 256, n) != 0) abort(); break;
		default: q = malloc(n);
		}
		i++;
		if (p)
			free(p), i++;
		p = __atomic_exchange_n(at, q, __ATOMIC_ACQ_REL);
		if (p)
			free(p), i++;
	}
	return 0;
}

void cwork_churn(int threads, int rounds, int calls) {
	struct churn c[64];
	pthread_t t[64];
	for (int round = 0; round < rounds; round++) {
		for (int i = 0; i < threads; i++) {
			c[i] = (struct churn){(uint64_t)(round * threads + i + 1) * 0x9E3779B97F4A7C15u, calls};
			pthread_create(&t[i], 0, churn, &c[i]);
		}
		for (int i = 0; i < threads; i++)
			pthread_join(t[i], 0);
	}
}

// cwork_used returns the bytes that the allocator says are in use: with jemalloc those of blocks,
// with glibc those of chunks.
int64_t cwork_used(int *jemalloc) {
	int (*mallctl)(const char *, void *, size_t *, void *, size_t);
	*(void **)&mallctl = dlsym(RTLD_DEFAULT, "mallctl");
	*jemalloc = mallctl != 0;
	if (mallctl) {
		uint64_t epoch = 1;
		size_t n = 0, size = sizeof n;
		mallctl("epoch", 0, 0, &epoch, sizeof epoch);
		mallctl("stats.allocated", &n, &size, 0, 0);
		return n;
	}
#ifndef __GLIBC__
	return -1;
#elif __GLIBC_PREREQ(2, 33)
	struct mallinfo2 m = mallinfo2();
	return m.uordblks + m.hblkhd;
#else
	struct mallinfo m = mallinfo(); // of numbers up to 2 GiB
	return (int64_t)m.uordblks + m.hblkhd;
#endif
}
