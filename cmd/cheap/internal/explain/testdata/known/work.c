#include <stdlib.h>

#include "_cgo_export.h"
#include "work.h"

void noop(void) {}

// nothing is called as the wrappers of cgo call noop.
__attribute__((noinline, noclone)) static void nothing(void) { __asm__ volatile(""); }

#define NOTHING_8 nothing(), nothing(), nothing(), nothing(), nothing(), nothing(), nothing(), nothing()

void noop_33(void) { NOTHING_8, NOTHING_8, NOTHING_8, NOTHING_8; }

int next(int n) { return n + 1; }

__attribute__((noinline, noclone)) static int next_in_c(int n) {
	__asm__ volatile("");
	return n + 1;
}

int next_33(int n) {
#pragma GCC unroll 32
	for (int i = 0; i < 32; i++) {
		n = next_in_c(n);
	}
	return n + 1;
}

struct numbers same(struct numbers n) { return n; }

__attribute__((noinline, noclone)) static struct numbers same_in_c(struct numbers n) {
	__asm__ volatile("");
	return n;
}

struct numbers same_33(struct numbers n) {
	struct numbers r; // each of the calls has n, so none waits for the one before
#pragma GCC unroll 32
	for (int i = 0; i < 32; i++) {
		r = same_in_c(n);
	}
	return r;
}

long first(const struct numbers *n) { return n->of[0]; }

long last(const struct numbers *n) { return n->of[5]; }

long of_record(struct record *r) { return r->of; }

long of_address(uintptr_t r) { return ((struct record *)r)->of; }

static volatile unsigned long spun;

void spin(long n) {
	unsigned long x = spun;
	for (long i = 0; i < n; i++) {
		x = x * 6364136223846793005u + 1; // each needs the one before
	}
	spun = x;
	// Or the processor would begin the call's way back before the end of the loop, and neither
	// would have a time of its own.
#if defined(__x86_64__)
	__builtin_ia32_lfence();
#elif defined(__aarch64__)
	__asm__ volatile("isb");
#endif
}

volatile unsigned long spun_here;

struct numbers spin_same(struct numbers n) {
	spin(n.of[0]);
	return n;
}

static void (*volatile spin_of)(long) = spin;

void spins(long calls, long n) {
	for (long i = 0; i < calls; i++) {
		spin_of(n);
	}
}

void call_go(long n) {
	for (long i = 0; i < n; i++) {
		goNothing();
	}
}

void call_c(long n) {
	for (long i = 0; i < n; i++) {
		nothing();
	}
}

static void *volatile block;

void pairs(long n, long size) {
	for (long i = 0; i < n; i++) {
		block = malloc(size);
		*(volatile char *)block = 1;
		free(block);
	}
}
