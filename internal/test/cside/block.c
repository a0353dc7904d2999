//go:build cgo && unix

#include <stdatomic.h>
#include <stdlib.h>

#include "block.h"

// A locked instruction costs as much as malloc, and a cache line that two cores
// write costs more. So each thread has its own counts, which only it writes and
// every thread may read. It adds its live bytes to the total after each 64 steps:
// the peak is too low by at most 6,400 bytes for each thread.
enum { telling = 64 };

struct counts {
	_Atomic uint64_t created, destroyed;
	struct counts *next; // of all; written before it is one of them
	int64_t untold;      // blocks, created less destroyed; the thread's own
	int steps;           // since it last told; the thread's own
	char line[128];      // keeps the counts of other threads off this cache line
};

static _Atomic(struct counts *) all;     // a list that only grows: counts outlive their thread
static _Atomic int64_t told, peak;       // blocks
static _Thread_local struct counts *own; // NULL before the first block

static struct counts *new_counts(void) {
	struct counts *c = calloc(1, sizeof *c);
	if (c == NULL) {
		abort();
	}
	c->next = atomic_load(&all);
	while (!atomic_compare_exchange_weak(&all, &c->next, c)) {
	}
	return own = c;
}

static void tell(struct counts *c) {
	int64_t live = atomic_fetch_add(&told, c->untold) + c->untold;
	c->untold = 0;
	c->steps = 0;
	int64_t high = atomic_load(&peak);
	while (live > high && !atomic_compare_exchange_weak(&peak, &high, live)) {
	}
}

// One writer needs no locked instruction to add.
static inline void add1(_Atomic uint64_t *count) {
	atomic_store_explicit(count, atomic_load_explicit(count, memory_order_relaxed) + 1, memory_order_release);
}

static inline void note(struct counts *c, int step) {
	c->untold += step;
	if (++c->steps >= telling) {
		tell(c);
	}
}

struct cside_block *cside_create(void) {
	struct counts *c = own != NULL ? own : new_counts();
	void *block = malloc(cside_block_size);
	if (block != NULL) {
		add1(&c->created);
		note(c, 1);
	}
	return block;
}

void *cside_construct(void *context) {
	(void)context;
	return cside_create();
}

void cside_destroy(struct cside_block *block) {
	struct counts *c = own != NULL ? own : new_counts();
	free(block);
	add1(&c->destroyed);
	note(c, -1);
}

void cside_destruct(void *block) { cside_destroy(block); }

void cside_destroy_all(const uintptr_t *blocks, size_t n) {
	for (size_t i = 0; i < n; i++) {
		cside_destroy((struct cside_block *)blocks[i]);
	}
}

struct cside_counts cside_count(void) {
	struct cside_counts sum = {.peak = atomic_load(&peak) * cside_block_size};
	// Destroyed first: what is counted as destroyed was created before.
	for (struct counts *c = atomic_load(&all); c != NULL; c = c->next) {
		sum.destroyed += atomic_load_explicit(&c->destroyed, memory_order_acquire);
	}
	for (struct counts *c = atomic_load(&all); c != NULL; c = c->next) {
		sum.created += atomic_load_explicit(&c->created, memory_order_acquire);
	}
	return sum;
}

void cside_reset_peak(void) {
	struct cside_counts now = cside_count();
	int64_t untold = 0;
	for (struct counts *c = atomic_load(&all); c != NULL; c = c->next) {
		untold += c->untold;
	}
	int64_t live = (int64_t)(now.created - now.destroyed);
	atomic_store(&told, live - untold);
	atomic_store(&peak, live);
}
