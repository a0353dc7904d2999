// What the C files of this package share.
#ifndef CHEAP_CMEM_INTERNAL_H
#define CHEAP_CMEM_INTERNAL_H

#include "cmem.h"

#include <signal.h>

#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)
#define hidden __attribute__((visibility("hidden")))

// A thread has the counts of one thread, which alone writes to it: these functions take about a
// nanosecond. Others read it with atomic loads. Its memory is never given back, and when the thread
// has ended another one goes on with it: so its counts stay, and no reader meets memory that is
// gone.
struct thread {
	uint64_t left; // a block of more bytes takes the slow path, and one of none
	uint64_t mallocs, frees;
	uint64_t drawn;        // the sum of what was added to left, so the bytes are drawn - left
	const uint8_t *filter; // cmem_filter
	uint64_t random;       // the state of the thread's random numbers
	int64_t rate;          // left is the distance to a point, drawn with this rate; 0: only when to look again
	int64_t held;          // bytes of blocks that it has made, less those that it has freed, if cmem_exact is set
	uint32_t setting;      // odd while left and drawn are set together
	uint64_t seen;         // the bytes that it had allocated when they were read last; the lock is held
	struct thread *all, *free;
} __attribute__((aligned(64)));

// cmem_none is that of threads that have no other: they take the slow path each time. What they
// count is added by atomic operations.
extern hidden struct thread cmem_none;
extern hidden __thread struct thread *cmem_mine __attribute__((tls_model("initial-exec")));

// cmem_filter has, by a part of the address, how many sampled blocks in use have that part. 255
// stays. Free looks here first.
enum { filter_bits = 16 };
extern hidden uint8_t cmem_filter[1 << filter_bits];

static inline size_t filter_of(uintptr_t p) { return p >> 4 & ((1 << filter_bits) - 1); }

// The allocator that would be called without this package.
struct next {
	void *(*malloc)(size_t);
	void (*free)(void *);
	void *(*calloc)(size_t, size_t);
	void *(*realloc)(void *, size_t);
	void *(*memalign)(size_t, size_t);
	void *(*aligned_alloc)(size_t, size_t);
	int (*posix_memalign)(void **, size_t, size_t);
	void *(*valloc)(size_t);
	void *(*pvalloc)(size_t);
	size_t (*malloc_usable_size)(void *);
};
extern hidden struct next cmem_next;

// cmem_layer sets, if the environment asks for it, functions that count the bytes in use in place
// of those of the allocator, and cmem_exact.
hidden void cmem_layer(struct next *next);
extern hidden int cmem_exact;

// cmem_operators looks whether a library has operators new and delete of its own. cmem_next is set.
hidden void cmem_operators(void);

// cmem_free is free.
hidden void cmem_free(void *p);

// A function that the process calls as name: weak, because a program may have its own.
#define EXPORT(ret, name, params, ours) ret name params __attribute__((weak, alias(#ours), visibility("default")));

// cmem_note is called after an allocation of n bytes at p, or 0, by the function that returns to
// caller, if n is 0 or more than left. It counts the call, gives the thread a record, and takes the
// sample. errno stays as it is.
hidden void cmem_note(void *p, size_t n, void *caller);

// cmem_forget is called before a block is freed that the filter knows, or by a thread without a
// record. It counts the call, and ends the sample. errno stays as it is.
hidden void cmem_forget(void *p);

// cmem_count_free is the part of cmem_forget that counts.
hidden void cmem_count_free(void);

// counted counts an allocation of n bytes, and reports whether that is all. Else nothing is counted,
// and cmem_note must be called behind it.
static inline int counted(size_t n) {
	struct thread *t = cmem_mine;
	uint64_t left = t->left;
	if (unlikely(n - 1 >= left)) // that is n > left || n == 0
		return 0;
	t->left = left - n;
	t->mallocs++;
	return 1;
}

// cmem_closed counts the libraries that were unloaded, as far as the program has asked for it.
extern hidden uint32_t cmem_closed;

// cmem_walk writes the stack of the calling thread to pcs, from the frame on to which caller
// belongs, and returns the number of addresses of C in *c and that of Go in *go.
enum { most_c = 96, most_go = 64 };
hidden void cmem_walk(uintptr_t pcs[most_c + most_go], uint32_t *c, uint32_t *go, void *caller);

// cmem_unwinds reports whether the function that returns to caller is a part of the unwinder, which
// may hold a lock that cmem_walk needs.
hidden int cmem_unwinds(void *caller);

// cmem_unwinder looks where the unwinder is. It returns 0 if malloc may be called with its locks
// held, and no one can tell.
hidden int cmem_unwinder(void);

// A live is a sampled block in use, which counts for weight blocks.
struct live {
	uintptr_t p;
	struct cmem_stack *stack;
	size_t n;
	double weight;
};

// cmem_take begins a sample of the block of n bytes at p, with that rate, and cmem_end ends it, if
// there is one. The caller holds the lock.
hidden int cmem_take(void *p, size_t n, int64_t rate, const uintptr_t *pcs, uint32_t c, uint32_t go);
hidden void cmem_end(void *p);

// cmem_detach takes the sample of a block away, if there is one, before realloc frees the block:
// another thread may have its address a moment later. It counts the free. cmem_detached says
// whether realloc freed it.
hidden int cmem_detach(void *p, struct live *was);
hidden void cmem_detached(const struct live *was, int freed);

// cmem_live returns the bytes in use that the samples stand for, and the variance of that. The
// caller holds the lock.
hidden void cmem_live(double *bytes, double *variance);

// The lock of this package is the last to be taken. The thread that holds it has all signals
// blocked, so that no handler waits for it.
hidden void cmem_lock(sigset_t *old);
hidden void cmem_unlock(const sigset_t *old);

// cmem_learn says which addresses of Go code the function runtime.cgocall has. Where the program
// cannot call cmem_probe, the first stack that has frames of Go shows how they are found.
hidden void cmem_learn(uintptr_t from, uintptr_t to);

// cmem_map returns memory of the system that is zero, or 0. cmem_unmap gives it back.
hidden void *cmem_map(size_t n);
hidden void cmem_unmap(void *p, size_t n);

// The library that cheap record preloads is compiled with CMEM_SHARED. What another process reads
// is then in a file that both have mapped: the variables with in_shared are in pages of their own,
// which that file replaces, and cmem_map hands out the rest of it. See shared.c.
#ifdef CMEM_SHARED
#define in_shared __attribute__((section("cmem_shared")))

// Where the fields are that the other process reads: addresses of variables, and offsets of fields.
struct fields {
	uint64_t threads, none, thread_all, thread_left, thread_drawn, thread_mallocs, thread_frees;
	uint64_t taken, lost, rate;
	uint64_t stacks, stack_all, stack_c, stack_go, stack_closed, stack_allocs, stack_peak_bytes, stack_peak, stack_pcs;
	uint64_t live, live_variance, live_samples, peak_live, peak_variance, peak, closed;
	uint64_t trace;
};
hidden void cmem_thread_fields(struct fields *f);
hidden void cmem_table_fields(struct fields *f);

hidden void cmem_shared_child(void);                       // in the child of a fork
hidden void cmem_shared_stack(const struct cmem_stack *s); // a stack was entered; the lock is held
#else
#define in_shared
#endif

#endif
