#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

// The workloads of the Go files, in the same order of operations, on the malloc of the
// process. The constants have the same names there.
enum {
	simple_least = 16,
	simple_most = 512,
	simple_batch = 25,
	simple_places = 1600,

	alloc_test_places = 1 << 16,
	alloc_test_least = 8,
	alloc_test_doublings = 1 << 6,

	sh_third = 1 << 15,
	sh_least = 8,
	sh_most = 1000,

	mixture_places = 10000,
	mixture_align = 64,
	mixture_reallocs = 20,
	mixture_mallocs = 85,
	mixture_callocs = 95,

	tooth_bytes = 16 << 20,
	tooth_least = 32,
	tooth_most = 512,
	tooth_places = tooth_bytes / tooth_least + 1,
	tooth_survivors = 50,
	kept_places = 1 << 15,

	large_places = 4,
	large_least = 5 << 20,
	large_most = 25 << 20,
	large_page = 4096,

	larson_places = 5000,
	larson_life = 100000,
	larson_least = 8,
	larson_most = 1000,

	rp_places = 1000,
	rp_least = 16,
	rp_most = 16000,
	rp_loop = 100,
	rp_batch = 25,
	rp_batch_bytes = rp_batch * 8,

	xmalloc_batch = 4096,
	xmalloc_queue = 4,
	xmalloc_least = 16,
	xmalloc_doublings = 6,

	scratch_size = 8,
	scratch_writes = 100,

	stress_blocks = 5000,
	stress_kept = 2500,
	stress_transfer = 1000,
	stress_doublings = 5,
	kept_doublings = 7,
	stress_large = 1000,
	stress_large_times = 100,
	stress_drops = 66,
	stress_swaps = 25,
	stress_places = stress_blocks + stress_kept,
	word_bytes = 8,
};

// What a run has done, as Tally.
struct workload_tally {
	uint64_t blocks, frees, bytes, sum, asked, freed;
};

typedef uintptr_t *workload_table;

// A run of n operations. The table is as large as that of the Go version, and is 0.
struct workload_tally workload_simple(workload_table s, uint32_t n);
struct workload_tally workload_alloc_test(workload_table s, uint32_t n);
struct workload_tally workload_sh(workload_table s, uint32_t n);
struct workload_tally workload_mixture(workload_table s, uint32_t n);
struct workload_tally workload_sawtooth(workload_table s, uint32_t n);
struct workload_tally workload_large(workload_table s, uint32_t n);

// The same by several threads, which are created for the run.
struct workload_tally workload_larson(workload_table s, uint32_t n, int threads);
struct workload_tally workload_rptest(workload_table s, uint32_t n, int threads);
struct workload_tally workload_xmalloc(workload_table s, uint32_t n, int threads);
struct workload_tally workload_cache_scratch(workload_table s, uint32_t n, int threads);
struct workload_tally workload_mstress(workload_table s, uint32_t n, int threads);

// The rest is for the C files.

typedef uint64_t workload_random;

static inline workload_random new_random(int thread) {
	return ((uint64_t)thread + 1) * 0x9e3779b97f4a7c15u | 1;
}

static inline uint32_t next(workload_random *r) {
	uint64_t x = *r;
	x ^= x >> 12;
	x ^= x << 25;
	x ^= x >> 27;
	*r = x;
	return (uint32_t)((x * 0x2545f4914f6cdd1du) >> 32);
}

static inline uint32_t below(workload_random *r, uint32_t n) {
	return (uint32_t)(((uint64_t)next(r) * n) >> 32);
}

// fail ends the process: a library without memory is not measured.
static inline void fail(const char *why) {
	fprintf(stderr, "%s\n", why);
	exit(1);
}

// The accesses are volatile, because a compiler that knows malloc may leave out a
// block that is only written to.
static inline void put(struct workload_tally *t, void *block, uint32_t size, uint32_t number) {
	if (block == NULL) {
		fail("there is no memory");
	}
	t->blocks++;
	t->bytes += size;
	t->asked = (t->asked << 1 | t->asked >> 63) + size;
	((volatile uint8_t *)block)[size - 1] = (uint8_t)size;
	*(volatile uint64_t *)block = (uint64_t)number << 32 | size;
}

static inline void take(struct workload_tally *t, void *block) {
	t->frees++;
	uint64_t word = *(volatile uint64_t *)block;
	t->sum += word + ((volatile uint8_t *)block)[(uint32_t)word - 1];
	t->freed = (t->freed << 1 | t->freed >> 63) + word;
}

static inline void *at(workload_table s, uint32_t i) { return (void *)s[i]; }
static inline void set(workload_table s, uint32_t i, void *block) { s[i] = (uintptr_t)block; }

static inline void free_all(workload_table s, uint32_t places, struct workload_tally *t) {
	for (uint32_t i = 0; i < places; i++) {
		void *block = at(s, i);
		if (block != NULL) {
			take(t, block);
			free(block);
			set(s, i, NULL);
		}
	}
}

static inline uint32_t least(uint32_t a, uint32_t b) { return a < b ? a : b; }
