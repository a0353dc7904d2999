//go:build cgo && linux && !cheap_nocmem && !asan && !msan

// The counts of threads, and which block is sampled.

#define _GNU_SOURCE
#include "internal.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

static const uint8_t slow[1 << filter_bits] = {[0 ...(1 << filter_bits) - 1] = 255};
__thread struct thread cmem_me __attribute__((tls_model("initial-exec"))) = {.filter = slow};
uint8_t cmem_filter[1 << filter_bits];

static struct thread *threads;        // those that are listed
static uint64_t mallocs, frees, bytes; // of threads that have ended; atomic
static int64_t rate = 512 << 10;            // bytes between two samples in the mean; 0 is off
static int stopped;                         // in the child of a fork
static uint64_t lost, taken, num_threads;

// look_again is how many bytes a thread allocates at most before it looks at the rate again.
enum { look_again = 256 << 10 };

// A thread that is in this package, or in the unwinder for it, takes no sample. It
// is volatile because the compiler believes that the C library calls nothing in this file.
static __thread volatile int busy __attribute__((tls_model("initial-exec")));

// ended counts how often the destructor of the thread's slot has run. The C library runs
// destructors again that were set meanwhile, a few times.
static __thread volatile int ended __attribute__((tls_model("initial-exec")));

static pthread_key_t key;
static int have_key;
static char locked;

void cmem_lock(sigset_t *old) {
	sigset_t all;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, old);
	while (__atomic_exchange_n(&locked, 1, __ATOMIC_ACQUIRE))
		sched_yield();
}

void cmem_unlock(const sigset_t *old) {
	__atomic_store_n(&locked, 0, __ATOMIC_RELEASE);
	pthread_sigmask(SIG_SETMASK, old, 0);
}

void *cmem_map(size_t n) {
	void *p = mmap(0, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return p == MAP_FAILED ? 0 : p;
}

static uint64_t bytes_of(const struct thread *t) {
	return __atomic_load_n(&t->drawn, __ATOMIC_RELAXED) - __atomic_load_n(&t->left, __ATOMIC_RELAXED);
}

// fold adds the counts of a thread to those that have ended. Only the thread itself writes to them,
// or it is gone.
static void fold(struct thread *t) {
	__atomic_fetch_add(&mallocs, t->mallocs, __ATOMIC_RELAXED);
	__atomic_fetch_add(&frees, t->frees, __ATOMIC_RELAXED);
	__atomic_fetch_add(&bytes, bytes_of(t), __ATOMIC_RELAXED);
}

// unlist takes a thread off the list, adds its counts to those that have ended, and makes it a new
// one, which takes the slow path.
static void unlist(struct thread *t) {
	sigset_t old;
	cmem_lock(&old);
	fold(t);
	if (t->next)
		t->next->at = t->at;
	*t->at = t->next;
	*t = (struct thread){.filter = slow};
	cmem_unlock(&old);
}

// end is the destructor of the key: the thread ends, and its memory with it. What it allocates and
// frees from then on takes the slow path.
static void end(void *me) {
	ended++;
	unlist(me);
}

static sigset_t forking;
static void before_fork(void) { cmem_lock(&forking); }
static void in_parent(void) { cmem_unlock(&forking); }
static void in_child(void) {
	// Other threads are gone, perhaps in the middle of a sample, and their memory is used again.
	stopped = 1;
	for (struct thread *t = threads; t; t = t->next)
		if (t != &cmem_me)
			fold(t);
	threads = 0;
	if (cmem_me.listed) {
		threads = &cmem_me;
		cmem_me.at = &threads;
		cmem_me.next = 0;
	}
	cmem_unlock(&forking);
}

__attribute__((constructor(102))) static void start(void) {
	have_key = pthread_key_create(&key, end) == 0;
	pthread_atfork(before_fork, in_parent, in_child);
}

static uint64_t next_random(void) { // xorshift64*, Vigna 2016
	uint64_t x = cmem_me.random;
	x ^= x >> 12, x ^= x << 25, x ^= x >> 27;
	cmem_me.random = x;
	return x * 2685821657736338717u;
}

// distance returns how many bytes follow until the next point at which a block is sampled. It is
// exponential, so a block of n bytes has a point in it with the probability 1 - exp(-n / rate),
// whatever came before.
static double distance(void) {
	int64_t r = __atomic_load_n(&rate, __ATOMIC_RELAXED);
	if (r <= 0 || stopped || *cmem_off() != 0)
		return INFINITY;
	if (r == 1)
		return 0;
	return -log(((next_random() >> 11) + 1) * 0x1p-53) * r; // of a number above 0, at most 1
}

// set_left sets the distance to the next point. The rest of a long one is drawn anew when the
// thread looks at the rate: that changes nothing, because the distribution has no memory.
static void set_left(double d) {
	cmem_me.points = d < look_again;
	uint64_t left = cmem_me.points ? (uint64_t)d : look_again;
	cmem_me.drawn += left - cmem_me.left;
	cmem_me.left = left;
}

// A thread that ends runs the destructors of all keys, and again those that were set meanwhile, up
// to four times. It is listed twice more; what comes later is counted in threads that have ended.
enum { most_ends = 2 };

void cmem_list(void) {
	sigset_t old;
	if (!have_key || cmem_me.listed || ended > most_ends)
		return;
	if (getrandom(&cmem_me.random, sizeof cmem_me.random, GRND_NONBLOCK) < 0 || cmem_me.random == 0)
		cmem_me.random = (uintptr_t)&cmem_me * 2685821657736338717u | 1;
	cmem_lock(&old);
	cmem_me.listed = 1;
	cmem_me.filter = cmem_filter;
	if ((cmem_me.next = threads) != 0)
		threads->at = &cmem_me.next;
	cmem_me.at = &threads;
	threads = &cmem_me;
	num_threads++;
	cmem_unlock(&old);
	if (pthread_setspecific(key, &cmem_me) != 0) // it may allocate; this thread is busy
		unlist(&cmem_me);                        // or the list would lead to it after its end
}

// sample takes a sample of the block of n bytes at p.
static void sample(void *p, size_t n, void *caller) {
	uintptr_t pcs[most_c + most_go];
	uint32_t c, go;
	sigset_t old;
	int64_t r = __atomic_load_n(&rate, __ATOMIC_RELAXED);
	if (!p || r <= 0)
		return;
	cmem_walk(pcs, &c, &go, caller); // without the lock: the unwinder may take others
	cmem_lock(&old);
	if (cmem_take(p, n, r, pcs, c, go))
		taken++;
	else
		lost++;
	cmem_unlock(&old);
}

// count_unlisted adds what a thread has counted that is not listed, and never will be.
static void count_unlisted(void) {
	fold(&cmem_me);
	cmem_me.mallocs = cmem_me.frees = cmem_me.drawn = 0;
}

void cmem_note(void *p, size_t n, void *caller) {
	int saved = errno;
	if (n <= PTRDIFF_MAX) // what is more is always refused
		cmem_me.drawn += n;
	if (busy) // the unwinder, or a signal handler
		return;
	busy = 1;
	cmem_list();
	if (!cmem_me.listed) {
		count_unlisted();
	} else if (n <= PTRDIFF_MAX) {
		double d = cmem_me.points ? 0 : distance(), rest = n - cmem_me.left;
		if (d <= rest) { // not if the rate is 0
			sample(p, n, caller);
			set_left(distance());
		} else {
			set_left(d - rest);
		}
	}
	busy = 0;
	errno = saved;
}

void cmem_forget(void *p) {
	int saved = errno;
	if (!cmem_me.listed && !busy) {
		busy = 1;
		cmem_list();
		if (!cmem_me.listed)
			count_unlisted();
		busy = 0;
	}
	if (__atomic_load_n(&cmem_filter[filter_of((uintptr_t)p)], __ATOMIC_RELAXED) != 0) {
		sigset_t old;
		cmem_lock(&old);
		cmem_end(p);
		cmem_unlock(&old);
	}
	errno = saved;
}

void cmem_set_rate(int64_t to) { __atomic_store_n(&rate, to, __ATOMIC_RELAXED); }

int64_t cmem_rate(void) { return __atomic_load_n(&rate, __ATOMIC_RELAXED); }

void cmem_read(struct cmem_counts *to) {
	sigset_t old;
	memset(to, 0, sizeof *to);
	cmem_lock(&old);
	to->mallocs = __atomic_load_n(&mallocs, __ATOMIC_RELAXED);
	to->frees = __atomic_load_n(&frees, __ATOMIC_RELAXED);
	to->bytes = __atomic_load_n(&bytes, __ATOMIC_RELAXED);
	for (struct thread *t = threads; t; t = t->next) {
		to->mallocs += __atomic_load_n(&t->mallocs, __ATOMIC_RELAXED);
		to->frees += __atomic_load_n(&t->frees, __ATOMIC_RELAXED);
		to->bytes += bytes_of(t);
	}
	to->threads = num_threads;
	to->samples = taken;
	to->lost = lost;
	cmem_live(&to->live, &to->live_variance);
	cmem_unlock(&old);
}
