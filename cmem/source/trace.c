//go:build ignore

// The record of all calls, in their order. While it is made, functions of this file stand in
// cmem_next, between those of hooks.c and the next allocator, which is in below then.
//
//	malloc (hooks.c) --> trace_malloc --> below.malloc
//	                          |
//	                          v  an event of two words
//	                        ring --> reader: Go (package fht), or the command cheap record
//
// The order of the events is that of their positions in the ring. One atomic addition takes a
// position: malloc after the allocator has returned the block, free before the allocator gets it. So
// between a free and the next malloc with the same address, the free has the lower position. realloc
// is both, so it has two events. The code here neither allocates nor takes a lock: the handler of a signal
// could wait for the lock for ever, and all threads for a thread that does not run.
//
// If the reader is far behind, each event waits for it, at most a millisecond. It cannot wait longer:
// the reader may be in the same process, and need a new thread of Go, for which the thread that waits
// has to call malloc. If the ring is full, or nothing is read for two seconds, the record ends.

#define _GNU_SOURCE
#include "internal.h"

#include <errno.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

in_shared struct cmem_trace cmem_tracing;

static struct next below;
static int begun;           // functions of this file are called
static uint32_t patience;   // milliseconds, while which the reader may read nothing
static uint32_t generation; // of records, so that each counts its threads

// The upper half is the generation, the lower the number of the thread.
static __thread uint64_t number tls;

// The functions of the program whose blocks are marked, and the code of this library.
enum { most_marked = 64 };
static struct { uintptr_t from, to; } marked[most_marked], self;
static int num_marked;

// marks reports whether the function that was called with this frame, and returns to ra, was called
// by one whose blocks are marked. If hooks.c has called it, the caller of that counts.
static int marks(uintptr_t ra, uintptr_t *frame) {
	if (ra - self.from < self.to - self.from)
		ra = ((uintptr_t *)frame[0])[1];
	for (int i = 0; i < num_marked; i++)
		if (ra - marked[i].from < marked[i].to - marked[i].from)
			return 1;
	return 0;
}

void cmem_trace_mark(uintptr_t from, uintptr_t to, uintptr_t self_from, uintptr_t self_to) {
	self.from = self_from;
	self.to = self_to;
	if (num_marked < most_marked) {
		marked[num_marked].from = from;
		marked[num_marked++].to = to;
	}
}

static uint64_t stuck; // read, as it was seen last (32 bits), and when it was first seen so (32 bits of ms)

static int is_behind(void) {
	struct cmem_trace *t = &cmem_tracing;
	uint64_t read = __atomic_load_n(&t->read, __ATOMIC_RELAXED);
	return __atomic_load_n(&t->head, __ATOMIC_RELAXED) - read > t->size / 4 * 3;
}

// slow_down waits for the reader.
static __attribute__((noinline)) void slow_down(void) {
	struct cmem_trace *t = &cmem_tracing;
	int saved = errno;
	for (int i = 0; i < 5 && is_behind() && !__atomic_load_n(&t->over, __ATOMIC_RELAXED); i++) {
		struct timespec some = {0, 200000};
		// Not nanosleep of the C library: a thread can be cancelled there.
		syscall(SYS_nanosleep, &some, 0);
	}
	if (is_behind()) {
		struct timespec now;
		clock_gettime(CLOCK_MONOTONIC, &now);
		uint32_t ms = now.tv_sec * 1000 + now.tv_nsec / 1000000, read = __atomic_load_n(&t->read, __ATOMIC_RELAXED);
		uint64_t was = __atomic_load_n(&stuck, __ATOMIC_RELAXED);
		if (was >> 32 != read)
			__atomic_store_n(&stuck, (uint64_t)read << 32 | ms, __ATOMIC_RELAXED);
		else if (ms - (uint32_t)was > patience && ms - (uint32_t)was < UINT32_MAX / 2)
			__atomic_store_n(&t->over, 1, __ATOMIC_RELAXED);
	}
	errno = saved;
}

static inline uint64_t take_position(void) {
	if (unlikely(is_behind()) && !__atomic_load_n(&cmem_tracing.over, __ATOMIC_RELAXED))
		slow_down();
	return __atomic_fetch_add(&cmem_tracing.head, 1, __ATOMIC_SEQ_CST);
}

static __attribute__((noinline)) uint64_t take_number(void) {
	uint64_t n = __atomic_fetch_add(&cmem_tracing.threads, 1, __ATOMIC_RELAXED);
	return number = (uint64_t)generation << 32 | (n < UINT32_MAX ? n : UINT32_MAX);
}

// put writes the event of a position.
static void put(uint64_t at, uint64_t kind, const void *p, uint64_t n) {
	struct cmem_trace *t = &cmem_tracing;
	uint64_t who = number;
	if (unlikely(who >> 32 != generation))
		who = take_number();
	if (unlikely(at - __atomic_load_n(&t->read, __ATOMIC_ACQUIRE) >= t->size)) {
		__atomic_store_n(&t->over, 1, __ATOMIC_RELAXED);
		return;
	}
	uint64_t *e = &t->ring[2 * (at & (t->size - 1))];
	uint64_t thread = (uint32_t)who < 15 ? (uint32_t)who : 15;
	e[1] = n;
	__atomic_store_n(&e[0], ((uintptr_t)p & (((uint64_t)1 << 48) - 1)) | kind << 48 | thread << 52, __ATOMIC_RELEASE);
}

static uint64_t log_of(size_t align) {
	uint64_t log = 0;
	while (log < 47 && (size_t)1 << log < align)
		log++;
	return log << 8; // above the kind and the thread
}

static void *trace_malloc(size_t n) {
	void *p = below.malloc(n);
	if (p) {
		uint64_t kind = cmem_malloc_event;
		if (num_marked && marks((uintptr_t)__builtin_return_address(0), __builtin_frame_address(0)))
			kind |= cmem_marked;
		put(take_position(), kind, p, n);
	}
	return p;
}

static void trace_free(void *p) {
	if (p)
		put(take_position(), cmem_free_event, p, 0);
	below.free(p);
}

static void *trace_calloc(size_t n, size_t size) {
	void *p = below.calloc(n, size);
	if (p)
		put(take_position(), cmem_calloc_event, p, n * size);
	return p;
}

static void *trace_realloc(void *p, size_t n) {
	if (!p)
		return trace_malloc(n);
	uint64_t began = take_position();
	put(began, cmem_realloc_event, p, n);
	void *q = below.realloc(p, n);
	if (q)
		put(take_position(), cmem_moved_event, q, began);
	else if (n == 0) // glibc has freed it
		put(take_position(), cmem_free_event, 0, began);
	else
		put(take_position(), cmem_kept_event, p, began);
	return q;
}

static void *aligned(void *p, size_t align, size_t n) {
	if (p)
		put(take_position(), cmem_aligned_event | log_of(align), p, n);
	return p;
}

static void *trace_memalign(size_t align, size_t n) { return aligned(below.memalign(align, n), align, n); }
static void *trace_aligned_alloc(size_t align, size_t n) { return aligned(below.aligned_alloc(align, n), align, n); }
static void *trace_valloc(size_t n) { return aligned(below.valloc(n), 4096, n); }
static void *trace_pvalloc(size_t n) { return aligned(below.pvalloc(n), 4096, n); }
static int trace_posix_memalign(void **p, size_t align, size_t n) {
	int r = below.posix_memalign(p, align, n);
	if (r == 0)
		aligned(*p, align, n);
	return r;
}

#define EACH(f) \
	f(malloc) f(free) f(calloc) f(realloc) f(memalign) f(aligned_alloc) f(posix_memalign) f(valloc) f(pvalloc)

int cmem_trace_begin(uint64_t events, uint32_t patient) {
	struct cmem_trace *t = &cmem_tracing;
	if (begun)
		return 0;
	if (!t->ring && !(t->ring = cmem_map(cmem_trace_events * 2 * sizeof *t->ring)))
		return 0;
	t->size = events;
	patience = patient;
	stuck = ~t->read << 32; // what is read now was not seen yet
	t->over = t->threads = 0;
	generation++;
	below = cmem_next;
	begun = 1;
#define SET(name) __atomic_store_n(&cmem_next.name, trace_##name, __ATOMIC_RELEASE);
	EACH(SET)
	return 1;
}

void cmem_trace_end(void) {
	if (!begun)
		return;
#define RESTORE(name) __atomic_store_n(&cmem_next.name, below.name, __ATOMIC_RELEASE);
	EACH(RESTORE)
	begun = 0;
}
