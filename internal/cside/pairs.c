//go:build cgo && unix

#include <stdlib.h>

#include "pairs.h"

// A compiler knows malloc, and leaves out a pair whose block is not used. It
// must assume that this statement uses p.
#define USE(p) __asm__ volatile("" : : "r"(p) : "memory")

size_t cside_pairs(size_t n, size_t size) {
	size_t got = 0;
	for (size_t i = 0; i < n; i++) {
		void *p = malloc(size);
		got += p != NULL;
		USE(p);
		free(p);
	}
	return got;
}

size_t cside_replace(size_t n, const struct cside_step *steps, size_t count, uintptr_t *slots) {
	size_t got = 0;
	for (size_t i = 0; i < n; i++) {
		const struct cside_step *s = &steps[i & (count - 1)];
		free((void *)slots[s->slot]);
		char *p = malloc(s->size);
		slots[s->slot] = (uintptr_t)p;
		if (p != NULL) {
			((volatile char *)p)[0] = 1;
			((volatile char *)p)[s->size - 1] = 1;
			got++;
		}
	}
	return got;
}

void cside_free_all(uintptr_t *slots, size_t n) {
	for (size_t i = 0; i < n; i++) {
		free((void *)slots[i]);
		slots[i] = 0;
	}
}

size_t cside_play(size_t n, size_t at, const struct cside_move *moves, size_t count, uintptr_t *slots) {
	size_t did = 0;
	for (size_t i = 0; i < n; i++) {
		const struct cside_move *m = &moves[at];
		if (++at == count)
			at = 0;
		char *p = (char *)slots[m->slot];
		switch (m->what) {
		case cside_free_move:
			free(p);
			slots[m->slot] = 0;
			did++;
			continue;
		case cside_realloc_move:
			p = realloc(p, m->size);
			break;
		case cside_aligned_move: {
			void *q = NULL;
			p = posix_memalign(&q, m->align, m->size) == 0 ? q : NULL;
			break;
		}
		default:
			p = malloc(m->size);
		}
		if (p == NULL)
			return did;
		slots[m->slot] = (uintptr_t)p;
		((volatile char *)p)[0] = 1;
		if (m->what != cside_realloc_move)
			((volatile char *)p)[m->size - 1] = 1;
		did++;
	}
	return did;
}

size_t cside_sparse(size_t n, uintptr_t *slots) {
	uint64_t x = 88172645463325252;
	size_t first = n / 3 * 2, got = 0;
	for (size_t i = 0; i < n; i++) {
		if (i == first) {
			for (size_t j = 0; j < first; j++) {
				x ^= x << 13;
				x ^= x >> 7;
				x ^= x << 17;
				if (x % 50 != 0) {
					free((void *)slots[j]);
					slots[j] = 0;
				}
			}
		}
		size_t size = i < first ? 256 : 320;
		char *p = malloc(size);
		slots[i] = (uintptr_t)p;
		if (p != NULL) {
			((volatile char *)p)[0] = 1;
			((volatile char *)p)[size - 1] = 1;
			got++;
		}
	}
	cside_free_all(slots, n);
	return got;
}
