// Work for C whose time is known.
#pragma once

#include <stdint.h>

// noop does nothing.
void noop(void);

// noop_33 calls a function of C that does nothing, 32 times.
void noop_33(void);

// next returns n + 1. next_33 does what 32 of it more do.
int next(int n);
int next_33(int n);

struct numbers { long of[6]; };

// same returns its argument. same_33 does what 32 of it more do.
struct numbers same(struct numbers n);
struct numbers same_33(struct numbers n);

// first and last are getters.
long first(const struct numbers *n);
long last(const struct numbers *n);

// of_record and of_address are one getter: cgo checks the argument of the former.
struct record { long of; struct record *next; };
long of_record(struct record *r);
long of_address(uintptr_t r);

// spin counts to n.
void spin(long n);

// spin_here is spin. Its code is in that which cgo makes for it, with optimization.
static inline void spin_here(long n) {
	extern volatile unsigned long spun_here;
	unsigned long x = spun_here;
	for (long i = 0; i < n; i++) {
		x = x * 6364136223846793005u + 1;
	}
	spun_here = x;
#if defined(__x86_64__)
	__builtin_ia32_lfence();
#elif defined(__aarch64__)
	__asm__ volatile("isb");
#endif
}

// spin_same is spin and same.
struct numbers spin_same(struct numbers n);

// spins calls spin so many times, in one call.
void spins(long calls, long n);

// call_go calls the Go function goNothing n times.
void call_go(long n);

// call_c is call_go with a function of C in the place of the Go function.
void call_c(long n);

// pairs is malloc and free of a block of so many bytes, n times, in one call. It writes to
// the block.
void pairs(long n, long size);
