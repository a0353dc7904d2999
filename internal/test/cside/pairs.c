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
		if (s->size == 0) {
			slots[s->slot] = 0;
			got++;
			continue;
		}
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
