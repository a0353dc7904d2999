//go:build cgo && unix

#include "native.h"

struct workload_tally workload_simple(workload_table s, uint32_t n) {
	struct workload_tally t = {0};
	uint32_t left = n;
	for (;;) {
		for (uint32_t size = simple_least; size <= simple_most; size *= 2) {
			for (uint32_t batch = simple_batch; batch <= simple_places; batch *= 4) {
				for (uint32_t k = 0; k < simple_places / batch; k++) {
					uint32_t b = least(batch, left);
					left -= b;
					for (uint32_t i = 0; i < b; i++) {
						void *block = malloc(size);
						put(&t, block, size, i);
						set(s, i, block);
					}
					for (uint32_t i = 0; i < b / 2; i++) {
						take(&t, at(s, i));
						free(at(s, i));
					}
					for (uint32_t i = b; i > b / 2; i--) {
						take(&t, at(s, i - 1));
						free(at(s, i - 1));
					}
					if (left == 0) {
						return t;
					}
				}
			}
		}
	}
}

static uint32_t alloc_test_place(workload_random *r) {
	enum { few = alloc_test_places / 5 };
	if (next(r) % 5 < 4) {
		return below(r, few);
	}
	return few + below(r, alloc_test_places - few);
}

struct workload_tally workload_alloc_test(workload_table s, uint32_t n) {
	struct workload_tally t = {0};
	workload_random r = new_random(0);
	for (uint32_t left = n; left > 0;) {
		uint32_t i = alloc_test_place(&r);
		void *block = at(s, i);
		if (block != NULL) {
			take(&t, block);
			free(block);
			set(s, i, NULL);
			continue;
		}
		uint32_t x = next(&r);
		uint32_t base = (uint32_t)alloc_test_least << __builtin_ctz(x | alloc_test_doublings);
		uint32_t size = base + ((x >> 8) & (base - 1));
		block = malloc(size);
		put(&t, block, size, x);
		set(s, i, block);
		left--;
	}
	free_all(s, alloc_test_places, &t);
	return t;
}

static uint32_t sh_run(uint32_t size) { return 1 + 2000 / size; }

struct workload_tally workload_sh(workload_table s, uint32_t n) {
	struct workload_tally t = {0};
	uint32_t size = sh_least, run = sh_run(sh_least);
	for (uint32_t pass = 0;; pass++) {
		for (uint32_t i = 0; i < 3 * sh_third; i++) {
			if (at(s, i) != NULL) {
				continue;
			}
			void *block = malloc(size);
			put(&t, block, size, i);
			set(s, i, block);
			if (--n == 0) {
				free_all(s, 3 * sh_third, &t);
				return t;
			}
			if (--run == 0) {
				size += size / 4 + 4;
				if (size > sh_most) {
					size = sh_least;
				}
				run = sh_run(size);
			}
		}
		uint32_t from = (pass + 1) % 3 * sh_third;
		for (uint32_t i = from; i < from + sh_third; i++) {
			take(&t, at(s, i));
			free(at(s, i));
			set(s, i, NULL);
		}
		from = (pass + 2) % 3 * sh_third;
		for (uint32_t i = from + sh_third; i > from; i--) {
			take(&t, at(s, i - 1));
			free(at(s, i - 1));
			set(s, i - 1, NULL);
		}
	}
}

static uint32_t mixture_size(workload_random *r) {
	uint32_t x = below(r, 1000);
	if (x < 800) {
		return 16 + below(r, 240);
	}
	if (x < 950) {
		return 256 + below(r, 3840);
	}
	if (x < 995) {
		return 4096 + below(r, 28 << 10);
	}
	return (32 << 10) + below(r, 224 << 10);
}

struct workload_tally workload_mixture(workload_table s, uint32_t n) {
	struct workload_tally t = {0};
	workload_random r = new_random(0);
	for (; n > 0; n--) {
		uint32_t i = below(&r, mixture_places);
		uint32_t kind = below(&r, 100);
		uint32_t size = mixture_size(&r);
		void *block = at(s, i);
		if (block != NULL) {
			take(&t, block);
			if (kind < mixture_reallocs) {
				block = realloc(block, size);
				if (block == NULL) {
					fail("there is no memory");
				}
				t.sum += *(volatile uint64_t *)block;
				put(&t, block, size, i);
				set(s, i, block);
				continue;
			}
			free(block);
		}
		if (kind < mixture_mallocs) {
			block = malloc(size);
		} else if (kind < mixture_callocs) {
			block = calloc(1, size);
			if (block != NULL) {
				t.sum += *(volatile uint64_t *)block;
			}
		} else {
			if (posix_memalign(&block, mixture_align, size) != 0) {
				block = NULL;
			}
			t.sum += (uintptr_t)block % mixture_align;
		}
		put(&t, block, size, i);
		set(s, i, block);
	}
	free_all(s, mixture_places, &t);
	return t;
}

struct workload_tally workload_sawtooth(workload_table s, uint32_t n) {
	struct workload_tally t = {0};
	workload_random r = new_random(0);
	workload_table kept = s + tooth_places;
	uint32_t survivors = 0;
	for (uint32_t base = tooth_least; n > 0;) {
		uint32_t count = 0;
		for (uint32_t bytes = 0; bytes < tooth_bytes && n > 0; n--) {
			uint32_t size = base + below(&r, base);
			void *block = malloc(size);
			put(&t, block, size, count);
			set(s, count, block);
			count++;
			bytes += size;
		}
		for (uint32_t i = 0; i < count; i++) {
			void *block = at(s, i);
			set(s, i, NULL);
			if (below(&r, tooth_survivors) == 0 && survivors < kept_places) {
				set(kept, survivors, block);
				survivors++;
				continue;
			}
			take(&t, block);
			free(block);
		}
		base *= 2;
		if (base > tooth_most) {
			base = tooth_least;
		}
	}
	free_all(kept, kept_places, &t);
	return t;
}

struct workload_tally workload_large(workload_table s, uint32_t n) {
	struct workload_tally t = {0};
	workload_random r = new_random(0);
	for (; n > 0; n--) {
		uint32_t i = below(&r, large_places);
		void *block = at(s, i);
		if (block != NULL) {
			take(&t, block);
			free(block);
		}
		uint32_t size = large_least + below(&r, large_most - large_least);
		block = malloc(size);
		put(&t, block, size, i);
		for (uint32_t at = large_page; at < size - large_page; at += large_page) {
			*(volatile uint64_t *)((char *)block + at) = at;
		}
		set(s, i, block);
	}
	free_all(s, large_places, &t);
	return t;
}
