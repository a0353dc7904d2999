//go:build ignore

// Which blocks are sampled: hooks.c calls this file for an allocation that counted does not count, and for
// a free that freed does not count.
//
// Points lie on the line of all bytes that a thread allocates, with exponential distances of rate
// bytes in the mean, and a block that has a point in it is sampled. So whether a block of n bytes
// is sampled does not depend on the blocks before, and the probability is 1 - exp(-n / rate).

#define _GNU_SOURCE
#include "internal.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <time.h>

in_shared static int64_t rate = cmem_default_rate; // bytes between two samples in the mean; 0 is off
in_shared static uint64_t lost, taken;             // the lock is held to write
static int enabled;                                // not before the program starts, nor in the child of a fork
static int gap;                                    // there was a time without samples

size_t (*cmem_usable_size)(void *p);

// look_again is how many bytes a thread allocates at most before it reads the rate again.
enum { look_again = 256 << 10 };

// A thread that is in this package, or in the unwinder for it, takes no sample. busy is volatile
// because the compiler believes that the C library calls nothing in this file.
static __thread volatile int busy tls;

// few is how many blocks a thread frees before it gets a record, if it allocates none: a thread
// that does nothing frees some when it has ended.
enum { few = 64 };
static __thread int freed_few tls;

void cmem_sample_enable(int on) { enabled = on; }

void cmem_sample_wait(int counts) {
	cmem_set_rate(0);
#ifndef CMEM_SHARED
	cmem_waits.on = !counts;
#endif
}

static uint64_t next_random(struct thread *t) { // xorshift64*, Vigna 2016
	uint64_t x = t->random;
	x ^= x >> 12, x ^= x << 25, x ^= x >> 27;
	t->random = x;
	return x * 2685821657736338717u;
}

// distance returns how many bytes follow until the next point, and sets the rate that it was drawn
// with.
static double distance(struct thread *t) {
	int64_t r = enabled ? __atomic_load_n(&rate, __ATOMIC_RELAXED) : 0;
	t->rate = r;
	if (r <= 0)
		return INFINITY;
	if (r == 1)
		return 0;
	return -log(((next_random(t) >> 11) + 1) * 0x1p-53) * r; // of a number above 0, at most 1
}

// set_distance sets the distance to the next point: a block that is as long, or longer, has it. The
// rest of a long distance is drawn anew when the thread reads the rate again. That changes no
// probability, because the exponential distribution has no memory.
static void set_distance(struct thread *t, double d) {
	uint64_t left = look_again;
	if (d < look_again)
		left = d <= 1 ? 0 : ceil(d) - 1;
	else
		t->rate = 0;
	cmem_set_left(t, left);
}

// growth_due is cmem_growth_due, and -1 in the child of a fork, where the timer is the parent's.
static int growth_due(void) { return enabled ? cmem_growth_due() : -1; }

// sample takes a sample of the block of n bytes at p, with that rate.
static void sample(void *p, size_t n, int64_t r, void *caller) {
	uintptr_t pcs[most_c + most_go];
	uint32_t c, go;
	struct copied labels;
	sigset_t old;
	// In the child of a fork a point may be left that was drawn before, and another thread may
	// have had the locks of the unwinder.
	if (!p || !enabled || cmem_unwinds(caller))
		return;
	cmem_walk(pcs, &c, &go, caller, &labels); // without the lock: the unwinder may take others
	size_t usable = cmem_usable_size ? cmem_usable_size(p) : n;
	cmem_lock(&old);
	if (cmem_take(p, n, usable, r, pcs, c, go, cmem_labels_of(&labels))) {
		taken++;
		cmem_labels_cut += cmem_labels_short;
	} else {
		lost++;
	}
	int fd = growth_due();
	cmem_unlock(&old);
	cmem_growth_signal(fd);
}

static void add(uint64_t *n, uint64_t by) { __atomic_fetch_add(n, by, __ATOMIC_RELAXED); }

void cmem_note(void *p, size_t n, void *caller) {
	struct thread *t = mine();
	int saved = errno, was = busy;
	busy = 1;
	if (t == &cmem_none && !was)
		t = cmem_take_record();
	if (t == &cmem_none) {
		add(&t->mallocs, 1);
		add(&t->drawn, p ? n : 0);
	} else {
		// A block of no bytes is sampled as often as one of one byte.
		uint64_t most = n ? n - 1 : 0;
		t->mallocs++;
		t->drawn += p ? n : 0;
		if (most < t->left) {
			t->left -= most + 1;
			t->drawn -= most + 1;
		} else if (!was && p) { // not the unwinder, nor a signal handler while this one ran
			double rest = most - t->left, d = 0;
			if (t->rate == 0)
				d = distance(t);
			if (d <= rest) { // not if the rate is 0
				sample(p, n, t->rate, caller);
				set_distance(t, distance(t));
			} else {
				set_distance(t, d - rest);
			}
		}
	}
	busy = was;
	errno = saved;
}

void cmem_count_free(void) {
	struct thread *t = mine();
	if (t == &cmem_none && !busy && ++freed_few > few) {
		busy = 1;
		t = cmem_take_record();
		if (t != &cmem_none)
			set_distance(t, distance(t));
		busy = 0;
	}
	if (t == &cmem_none)
		add(&t->frees, 1);
	else
		t->frees++;
}

void cmem_forget(void *p) {
	int saved = errno;
	cmem_count_free();
	if (__atomic_load_n(&cmem_filter[filter_of((uintptr_t)p)], __ATOMIC_RELAXED) != 0) {
		sigset_t old;
		cmem_lock(&old);
		cmem_end(p);
		int fd = growth_due();
		cmem_unlock(&old);
		cmem_growth_signal(fd);
	}
	errno = saved;
}

// Mappings are made less often than blocks, and each costs a call of the system. So whether one is sampled is drawn by
// itself, and a thread needs no record. A thread that makes and ends mappings all the time would spend most of its time
// with their stacks. So it has credit for some samples at once, and for one more in every quiet nanoseconds, or in the time that
// the last ones have taken, times share. While it has none, its rate is a power of two higher. The rate does not depend on the mapping for which it is used, so the
// estimates are without bias.
static uint64_t mmaps, munmaps;

enum { quiet = 250000, at_once = 128, share = 100, most_slower = 20 };
static __thread struct {
	uint64_t random;
	int64_t paid;    // until when samples are paid for; ahead of now: there is no credit
	int64_t began;   // when the last sample began
	uint32_t slower; // the logarithm
	uint32_t drawn;  // mappings, while it is not 0
} drawing tls;

static int64_t now(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

// set_slower sets by how much the rate is higher: the more is not paid, the higher.
static void set_slower(int64_t at) {
	int64_t debt = drawing.paid - at;
	uint32_t slower = debt > 0;
	for (debt /= 8 * quiet; debt > 0 && slower < most_slower; debt /= 2)
		slower++;
	drawing.slower = slower;
}

// pay takes the credit for a sample, and returns 0 if there was none.
static int pay(void) {
	int64_t at = now(), least = at - (int64_t)at_once * quiet;
	drawing.began = at;
	drawing.paid = (drawing.paid < least ? least : drawing.paid) + quiet;
	return drawing.paid <= at;
}

// paid takes the rest, when the sample was taken.
static void paid(void) {
	if (drawing.began == 0)
		return;
	int64_t at = now(), took = at - drawing.began;
	drawing.began = 0;
	if (took > quiet / share)
		drawing.paid += (took < 100 * quiet / share ? took : 100 * quiet / share) * share - quiet;
	set_slower(at);
}

// draw returns the weight of a mapping of n bytes, or 0 if it is not sampled.
static double draw(size_t n) {
	enum { clock_each = 16 };
	int64_t r = __atomic_load_n(&rate, __ATOMIC_RELAXED);
	uint64_t x = drawing.random;
	if (r <= 1)
		return r;
	if (drawing.slower > 0 && ++drawing.drawn % clock_each == 0)
		set_slower(now());
	r <<= drawing.slower;
	if (x == 0)
		x = ((uintptr_t)&drawing ^ now()) * 2685821657736338717u | 1;
	x ^= x >> 12, x ^= x << 25, x ^= x >> 27;
	drawing.random = x;
	if ((double)n < 32.0 * r && ((x * 2685821657736338717u >> 11) + 1) * 0x1p-53 > -expm1(-(double)n / r))
		return 0;
	pay();
	return cmem_weight(n, r);
}

#ifdef CMEM_SHARED
enum { preloaded = 1 };
#else
enum { preloaded = 0 };
#endif

// of_runtime reports whether the runtime of Go has called C, and no goroutine. in_go and go are those of cmem_walk.
// Where the frames of C cannot be walked, a stack of C alone is taken for that; of a thread that C has made it is not.
static int of_runtime(uintptr_t in_go, uint32_t go) {
	return go == 0 && (in_go > cmem_somewhere || (in_go == cmem_somewhere && cmem_knows_go()));
}

void cmem_count_munmap(void) { add(&munmaps, 1); }

void cmem_note_mapping(uintptr_t from, size_t n, void *caller) {
	double weight;
	uintptr_t pcs[most_c + most_go];
	uint32_t c, go;
	struct copied labels;
	sigset_t old;
	add(&mmaps, 1);
	if (!enabled || busy || n == 0 || (weight = draw(n)) == 0 || cmem_unwinds(caller))
		return;
	int saved = errno;
	busy = 1;
	uintptr_t in_go = cmem_walk(pcs, &c, &go, caller, &labels);
	busy = 0;
	// One function of C, called by the runtime: x_cgo_mmap, which the runtime calls. In a program that is
	// built with this package mmap.c knows it.
	if (!preloaded || c != 1 || !of_runtime(in_go, go)) {
		cmem_lock(&old);
		if (cmem_ranges_add(from, from + n, weight, pcs, c, go, cmem_labels_of(&labels)))
			cmem_labels_cut += cmem_labels_short;
		else
			lost++;
		cmem_unlock(&old);
	}
	paid();
	errno = saved;
}

const struct cmem_stack *cmem_note_thread(void *caller) {
	uintptr_t pcs[most_c + most_go];
	uint32_t c, go;
	sigset_t old;
	if (!enabled || busy || __atomic_load_n(&rate, __ATOMIC_RELAXED) == 0 || cmem_unwinds(caller))
		return 0;
	if (!preloaded && !cmem_knows_go())
		return 0; // the runtime of Go has not begun yet, and starts threads
	if (!pay()) {
		drawing.paid -= quiet; // nothing is taken
		drawing.began = 0;
		return 0;
	}
	int saved = errno;
	busy = 1;
	uintptr_t in_go = cmem_walk(pcs, &c, &go, caller, 0);
	busy = 0;
	struct cmem_stack *s = 0;
	if (!of_runtime(in_go, go)) {
		cmem_lock(&old);
		s = cmem_thread_stack(pcs, c, go);
		cmem_unlock(&old);
	}
	paid();
	errno = saved;
	return s;
}

void cmem_set_rate(int64_t to) {
	if (to <= 0)
		__atomic_store_n(&gap, 1, __ATOMIC_RELAXED);
	__atomic_store_n(&rate, to, __ATOMIC_RELAXED);
#ifndef CMEM_SHARED
	if (to > 0)
		__atomic_store_n(&cmem_waits.on, 0, __ATOMIC_RELEASE);
#endif
}

int cmem_is_waiting(void) { return waits(); }

int cmem_has_gap(void) { return __atomic_load_n(&gap, __ATOMIC_RELAXED); }

int64_t cmem_rate(void) { return __atomic_load_n(&rate, __ATOMIC_RELAXED); }

void cmem_read(struct cmem_counts *to) {
	sigset_t old;
	memset(to, 0, sizeof *to);
	cmem_lock(&old);
	cmem_read_threads(to);
	to->exact = cmem_exact;
	to->samples = taken;
	to->lost = lost;
	to->labels_cut = cmem_labels_cut;
	to->mmaps = __atomic_load_n(&mmaps, __ATOMIC_RELAXED);
	to->munmaps = __atomic_load_n(&munmaps, __ATOMIC_RELAXED);
	cmem_live(cmem_of_malloc, &to->live, &to->live_variance);
	cmem_live_blocks(&to->live_blocks, &to->live_usable);
	cmem_live(cmem_of_mmap, &to->mapped, &to->mapped_variance);
	cmem_unlock(&old);
}

#ifdef CMEM_SHARED
void cmem_sample_fields(struct fields *f) {
	f->taken = (uintptr_t)&taken;
	f->lost = (uintptr_t)&lost;
	f->rate = (uintptr_t)&rate;
}
#endif
