//go:build cgo && linux

// Threads that come and go, and count themselves what they allocate.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct counted {
	uint64_t mallocs, frees, bytes;
};
enum { slots = 4096 };
static void *blocks[slots]; // threads exchange them: who frees a block has perhaps not made it
static struct counted total;
static int64_t left;

static void *counts(void *seed) {
	struct counted c = {0};
	uint64_t x = (uintptr_t)seed;
	for (int i = 0; i < 20000 && __atomic_sub_fetch(&left, 2, __ATOMIC_RELAXED) >= 0; i++) {
		x = x * 6364136223846793005u + 1442695040888963407u;
		size_t n = (x >> 33) % ((x >> 20) % 64 ? 200 : 100000);
		void *p = 0, *was;
		c.mallocs++;
		c.bytes += n;
		switch ((x >> 50) % 8) {
		case 0:
			p = calloc(1, n);
			break;
		case 1:
			p = memalign(64, n);
			break;
		case 2:
			if (posix_memalign(&p, 32, n) != 0)
				abort();
			break;
		case 3:
			p = __atomic_exchange_n(&blocks[(x >> 24) % slots], 0, __ATOMIC_ACQ_REL);
			c.frees += p != 0;
			c.bytes += n == 0;
			n += n == 0; // 0 would free it
			p = realloc(p, n);
			break;
		default:
			p = malloc(n);
		}
		was = __atomic_exchange_n(&blocks[(x >> 40) % slots], p, __ATOMIC_ACQ_REL);
		c.frees += was != 0;
		free(was);
	}
	__atomic_fetch_add(&total.mallocs, c.mallocs, __ATOMIC_RELAXED);
	__atomic_fetch_add(&total.frees, c.frees, __ATOMIC_RELAXED);
	__atomic_fetch_add(&total.bytes, c.bytes, __ATOMIC_RELAXED);
	return 0;
}

// cwork_counts makes so many calls in eight threads at a time, each of which ends after 20,000 blocks,
// and writes what they have counted to to[0], to[1] and to[2]: blocks made, blocks freed, bytes. It
// returns how many threads there were.
int cwork_counts(int64_t calls, uint64_t to[3]) {
	enum { width = 8 };
	pthread_t t[width];
	int n = 0;
	total = (struct counted){0};
	left = calls;
	for (; __atomic_load_n(&left, __ATOMIC_RELAXED) > 0 || n < width; n++) {
		if (n >= width)
			pthread_join(t[n % width], 0);
		pthread_create(&t[n % width], 0, counts, (void *)(uintptr_t)(n + 1));
	}
	for (int i = 0; i < width; i++)
		pthread_join(t[(n + i) % width], 0);
	for (int i = 0; i < slots; i++) {
		total.frees += blocks[i] != 0;
		free(blocks[i]);
		blocks[i] = 0;
	}
	to[0] = total.mallocs;
	to[1] = total.frees;
	to[2] = total.bytes;
	return n;
}

// cwork_jemalloc writes how many blocks jemalloc has made and freed, and returns 0 if it is not there.
int cwork_jemalloc(uint64_t to[2]) {
	static const char *const names[] = {"nmalloc", "ndalloc"};
	int (*mallctl)(const char *, void *, size_t *, void *, size_t) = dlsym(RTLD_DEFAULT, "mallctl");
	uint64_t epoch = 1;
	size_t size = sizeof epoch;
	if (!mallctl || mallctl("epoch", &epoch, &size, &epoch, size) != 0)
		return 0;
	for (int i = 0; i < 2; i++) {
		to[i] = 0;
		for (int large = 0; large < 2; large++) {
			char name[100] = "stats.arenas.4096."; // all of them
			uint64_t n = 0;
			strcat(strcat(name, large ? "large." : "small."), names[i]);
			size = sizeof n;
			if (mallctl(name, &n, &size, 0, 0) != 0)
				return 0;
			to[i] += n;
		}
	}
	return 1;
}
