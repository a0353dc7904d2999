//go:build ignore
// Package cmem includes it where it works.

// The counts of threads, and which block is sampled.

#define _GNU_SOURCE
#include "internal.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static const uint8_t slow[1 << filter_bits] = {[0 ...(1 << filter_bits) - 1] = 255};
in_shared struct thread cmem_none = {.filter = slow};
__thread struct thread *cmem_mine __attribute__((tls_model("initial-exec"))) = &cmem_none;
uint8_t cmem_filter[1 << filter_bits];

in_shared static struct thread *all_threads, *free_threads; // the lock is held to write
in_shared static int64_t rate = cmem_default_rate; // bytes between two samples in the mean; 0 is off
static int stopped;              // in the child of a fork
in_shared static uint64_t lost, taken;

// look_again is how many bytes a thread allocates at most before it looks at the rate again.
enum { look_again = 256 << 10 };

// A thread that is in this package, or in the unwinder for it, takes no sample. busy is volatile
// because the compiler believes that the C library calls nothing in this file.
static __thread volatile int busy __attribute__((tls_model("initial-exec")));

// ended says that the destructor of the thread's key has run. The C library still frees, and other
// destructors may allocate, but no destructor would give a record back.
static __thread volatile int ended __attribute__((tls_model("initial-exec")));

// few is how many blocks a thread frees before it gets a record, if it allocates none: a thread
// that does nothing frees some when it has ended.
enum { few = 64 };
static __thread int freed_few __attribute__((tls_model("initial-exec")));

static pthread_key_t key;
static int have_key;
static int locked; // 0; 1 if a thread has the lock; 2 if others perhaps sleep until it is free

// Of linux/futex.h, which musl comes without: operations of this process.
enum { futex_wait = 128 | 0, futex_wake = 128 | 1 };

void cmem_lock(sigset_t *old) {
	sigset_t all;
	int was = 0;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, old);
	if (likely(__atomic_compare_exchange_n(&locked, &was, 1, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)))
		return;
	int saved = errno;
	while (__atomic_exchange_n(&locked, 2, __ATOMIC_ACQUIRE) != 0)
		syscall(SYS_futex, &locked, futex_wait, 2, 0);
	errno = saved;
}

void cmem_unlock(const sigset_t *old) {
	if (unlikely(__atomic_exchange_n(&locked, 0, __ATOMIC_RELEASE) == 2)) {
		int saved = errno;
		syscall(SYS_futex, &locked, futex_wake, 1);
		errno = saved;
	}
	pthread_sigmask(SIG_SETMASK, old, 0);
}

#ifndef CMEM_SHARED
void *cmem_map(size_t n) {
	void *p = mmap(0, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return p == MAP_FAILED ? 0 : p;
}

void cmem_unmap(void *p, size_t n) { munmap(p, n); }
#endif

// end is the destructor of the key: another thread goes on with the record.
static void end(void *mine) {
	struct thread *t = mine;
	sigset_t old;
	ended = 1;
	cmem_mine = &cmem_none;
	cmem_lock(&old);
	t->free = free_threads;
	free_threads = t;
	cmem_unlock(&old);
}

// The signals that the thread had blocked that forks. It has the lock, so there is one.
static sigset_t forking;
static void before_fork(void) {
	sigset_t old;
	cmem_lock(&old);
	forking = old;
}
static void in_parent(void) {
	sigset_t old = forking;
	cmem_unlock(&old);
}
static void in_child(void) {
	stopped = 1; // other threads were perhaps in the middle of a sample
	cmem_trace_end();
#ifdef CMEM_SHARED
	cmem_shared_child();
	cmem_mine = &cmem_none;
	pthread_setspecific(key, 0); // the record is the parent's
#endif
	in_parent();
}

__attribute__((constructor(102))) static void start(void) {
	have_key = pthread_key_create(&key, end) == 0;
	pthread_atfork(before_fork, in_parent, in_child);
}

static uint64_t next_random(struct thread *t) { // xorshift64*, Vigna 2016
	uint64_t x = t->random;
	x ^= x >> 12, x ^= x << 25, x ^= x >> 27;
	t->random = x;
	return x * 2685821657736338717u;
}

// distance returns how many bytes follow until the next point at which a block is sampled, and
// sets the rate of that. It is exponential, so a block of n bytes has a point in it with the
// probability 1 - exp(-n / rate), whatever came before.
static double distance(struct thread *t) {
	int64_t r = stopped || *cmem_off() != 0 ? 0 : __atomic_load_n(&rate, __ATOMIC_RELAXED);
	t->rate = r;
	if (r <= 0)
		return INFINITY;
	if (r == 1)
		return 0;
	return -log(((next_random(t) >> 11) + 1) * 0x1p-53) * r; // of a number above 0, at most 1
}

// set sets left, without a change of the bytes. Who reads these meanwhile reads them again.
static void set(struct thread *t, uint64_t left) {
	uint32_t n = t->setting;
	__atomic_store_n(&t->setting, n + 1, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_RELEASE);
	__atomic_store_n(&t->drawn, t->drawn + (left - t->left), __ATOMIC_RELAXED);
	__atomic_store_n(&t->left, left, __ATOMIC_RELAXED);
	__atomic_store_n(&t->setting, n + 2, __ATOMIC_RELEASE);
}

// bytes_of returns the bytes that a thread has allocated; or those that it had when they were read
// last, if it was interrupted in set. The caller holds the lock, and does not wait for it.
static uint64_t bytes_of(struct thread *t) {
	for (int tries = 0; tries < 100; tries++) {
		uint32_t n = __atomic_load_n(&t->setting, __ATOMIC_ACQUIRE);
		uint64_t bytes = __atomic_load_n(&t->drawn, __ATOMIC_RELAXED) - __atomic_load_n(&t->left, __ATOMIC_RELAXED);
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		if (n % 2 == 0 && __atomic_load_n(&t->setting, __ATOMIC_RELAXED) == n) {
			t->seen = bytes;
			break;
		}
	}
	return t->seen;
}

// set_left sets the distance to the next point: a block that is as long, or longer, has it. The
// rest of a long distance is drawn anew when the thread looks at the rate again. That changes
// nothing, because the distribution has no memory.
static void set_left(struct thread *t, double d) {
	uint64_t left = look_again;
	if (d < look_again)
		left = d <= 1 ? 0 : ceil(d) - 1;
	else
		t->rate = 0;
	set(t, left);
}

// take_record gives the thread a record, if it is not ending.
static struct thread *take_record(void) {
	sigset_t old;
	struct thread *t;
	if (!have_key || ended)
		return &cmem_none;
	cmem_lock(&old);
	if (!free_threads) {
		enum { bytes = 16 << 10 };
		struct thread *more = cmem_map(bytes);
		for (size_t i = 0; more && i < bytes / sizeof *more; i++) {
			more[i].filter = cmem_filter;
			more[i].free = free_threads;
			free_threads = &more[i];
			more[i].all = all_threads;
			all_threads = &more[i];
		}
	}
	if ((t = free_threads) != 0)
		free_threads = t->free;
	cmem_unlock(&old);
	if (!t)
		return &cmem_none;
	if (t->random == 0) {
		// Not getrandom of the C library: it is a place where a thread can be cancelled.
		syscall(SYS_getrandom, &t->random, sizeof t->random, 1 /* do not wait */);
		t->random ^= (uintptr_t)t * 2685821657736338717u;
		t->random += t->random == 0;
	}
	set(t, 0); // what the thread before has not used
	t->rate = 0;
	if (pthread_setspecific(key, t) != 0) { // it may allocate; this thread is busy
		cmem_lock(&old);
		t->free = free_threads;
		free_threads = t;
		cmem_unlock(&old);
		return &cmem_none;
	}
	return cmem_mine = t;
}

static void add(uint64_t *n, uint64_t by) { __atomic_fetch_add(n, by, __ATOMIC_RELAXED); }

// The eventfd that is told of growth. All under the lock.
static int growth = -1;
static struct stat growth_stat;
static int watched;
static double told; // the bytes in use when it was told last

// much returns the change of the bytes in use that is told of.
static double much(void) { return told > 64 << 20 ? told / 64 : 1 << 20; }

// changed returns the eventfd if it is to be told, or else -1. The caller holds the lock.
static int changed(void) {
	double is, variance;
	if (!watched || stopped)
		return -1;
	cmem_live(&is, &variance);
	if (fabs(is - told) < much())
		return -1;
	told = is;
	return growth;
}

// tell writes to the eventfd, if fd is not -1. A program may close all files that it does not know,
// and the number may be one of its own by now: then nothing is written. The write function of the C
// library would be a place where a thread can be cancelled. The call waits for no reader: the file
// does not block.
static void tell(int fd) {
	uint64_t one = 1;
	struct stat is;
	if (fd >= 0 && fstat(fd, &is) == 0 && is.st_dev == growth_stat.st_dev && is.st_ino == growth_stat.st_ino)
		syscall(SYS_write, fd, &one, sizeof one);
}

int cmem_growth(void) {
	sigset_t old;
	cmem_lock(&old);
	if (growth < 0 && (growth = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) >= 0)
		fstat(growth, &growth_stat);
	int fd = growth;
	cmem_unlock(&old);
	return fd;
}

void cmem_watch(int on) {
	sigset_t old;
	cmem_lock(&old);
	watched = on;
	cmem_unlock(&old);
}

void cmem_wake(void) { tell(growth); }

// sample takes a sample of the block of n bytes at p, with that rate.
static void sample(void *p, size_t n, int64_t r, void *caller) {
	uintptr_t pcs[most_c + most_go];
	uint32_t c, go;
	sigset_t old;
	// In the child of a fork a point may be left that was drawn before, and another thread may
	// have had the locks of the unwinder.
	if (!p || stopped || cmem_unwinds(caller))
		return;
	cmem_walk(pcs, &c, &go, caller); // without the lock: the unwinder may take others
	cmem_lock(&old);
	if (cmem_take(p, n, r, pcs, c, go))
		taken++;
	else
		lost++;
	int fd = changed();
	cmem_unlock(&old);
	tell(fd);
}

void cmem_note(void *p, size_t n, void *caller) {
	struct thread *t = cmem_mine;
	int saved = errno, was = busy;
	busy = 1;
	if (t == &cmem_none && !was)
		t = take_record();
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
				set_left(t, distance(t));
			} else {
				set_left(t, d - rest);
			}
		}
	}
	busy = was;
	errno = saved;
}

void cmem_count_free(void) {
	struct thread *t = cmem_mine;
	if (t == &cmem_none && !busy && ++freed_few > few) {
		busy = 1;
		t = take_record();
		if (t != &cmem_none)
			set_left(t, distance(t));
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
		int fd = changed();
		cmem_unlock(&old);
		tell(fd);
	}
	errno = saved;
}

void cmem_set_rate(int64_t to) { __atomic_store_n(&rate, to, __ATOMIC_RELAXED); }

int64_t cmem_rate(void) { return __atomic_load_n(&rate, __ATOMIC_RELAXED); }

void cmem_read(struct cmem_counts *to) {
	sigset_t old;
	memset(to, 0, sizeof *to);
	cmem_lock(&old);
	for (struct thread *t = all_threads;; t = t->all) {
		if (!t)
			t = &cmem_none;
		to->records++;
		to->mallocs += __atomic_load_n(&t->mallocs, __ATOMIC_RELAXED);
		to->frees += __atomic_load_n(&t->frees, __ATOMIC_RELAXED);
		to->held += __atomic_load_n(&t->held, __ATOMIC_RELAXED);
		to->bytes += bytes_of(t);
		if (t == &cmem_none)
			break;
	}
	to->exact = cmem_exact;
	for (struct thread *t = free_threads; t; t = t->free)
		to->records--;
	to->samples = taken;
	to->lost = lost;
	cmem_live(&to->live, &to->live_variance);
	cmem_unlock(&old);
}

#ifdef CMEM_SHARED
void cmem_thread_fields(struct fields *f) {
	f->threads = (uintptr_t)&all_threads;
	f->none = (uintptr_t)&cmem_none;
	f->thread_all = offsetof(struct thread, all);
	f->thread_left = offsetof(struct thread, left);
	f->thread_drawn = offsetof(struct thread, drawn);
	f->thread_mallocs = offsetof(struct thread, mallocs);
	f->thread_frees = offsetof(struct thread, frees);
	f->taken = (uintptr_t)&taken;
	f->lost = (uintptr_t)&lost;
	f->rate = (uintptr_t)&rate;
}
#endif
