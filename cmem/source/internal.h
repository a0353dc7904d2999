// What the C files of this package share, and how they are built up. A call of malloc goes this way:
//
//	malloc, free      operator new
//	(hooks.c)         (operators.c)
//	      \            /
//	       counted, freed             each call: two counts of the thread (threads.c)
//	              |
//	              |  one call for each 512 KiB: address, size, caller
//	              v
//	       cmem_note (sample.c) ----> cmem_walk (walk.c): the return addresses on the stack
//	              |
//	              |  address, size, rate, return addresses
//	              v
//	       cmem_take (table.c)        sums of each stack; the sampled blocks in use
//	              |                       |
//	              |  counts, stacks       |  bytes in use
//	              v                       v
//	       cmem_read, cmem_sites      timer (growth.c)
//	              |                       |
//	              v                       v
//	       Go: profiles, statistics   Go: package pace
//
// The calls go on to the next allocator: cmem_next, in which exact.c or trace.c may have put
// functions of theirs in front of the allocator that next.c has found.
//
// A file uses only files that come before it in this list, and this header has what they declare in
// the same order; a test checks it.
//
//	system.c     the lock; memory of the system
//	unload.c     dlclose, which is counted
//	shared.c     the file that the library of cheap record and the command share
//	threads.c    the counts of each thread
//	exact.c      the bytes in use, exactly
//	memory.c     reading memory that may not be mapped
//	modules.c    the files that are mapped, and their tables for unwinding
//	gostack.c    the frames of Go on a stack
//	labels.c     the labels of a goroutine
//	tables.c     the tables of the unwinder
//	walk.c       the stack of C and Go functions that has called malloc
//	table.c      the stacks that have allocated, the sampled blocks in use
//	ranges.c     the sampled mappings, and the parts that are left of them
//	growth.c     the timer that tells Go that the bytes in use have changed
//	sample.c     which blocks are sampled
//	next.c       the allocator behind this package
//	unseen.c     what that counts by itself
//	hooks.c      malloc, free, ...
//	operators.c  operators new and delete
//	mmap.c       mmap, mremap, munmap
//	begin.c      pthread_create
//	trace.c      the record of all calls
//	attach.c     what it does where it is loaded into a process that runs
//	preload.c    what the library of cheap record does when the program starts
//	start.c      what is done before the constructors of the program, and at a fork
//
// shared.c, attach.c and preload.c are only in the library that cheap record compiles and preloads, with
// CMEM_SHARED defined. cmem.h has what Go calls.
#ifndef CHEAP_CMEM_INTERNAL_H
#define CHEAP_CMEM_INTERNAL_H

#include "cmem.h"

#include <signal.h>
#include <unwind.h>

#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)
#define hidden __attribute__((visibility("hidden")))

// A sanitizer of the compiler has functions of its own with these names, and calls them before it is ready for code
// that is built with it, as this package is then.
#ifndef __has_feature
#define __has_feature(x) 0 // GCC has macros instead
#endif
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__ || __has_feature(address_sanitizer) || \
	__has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define SANITIZED
#endif

// EXPORT declares a function of this package, and that the process calls it as name: weak, because a
// program may have its own.
#ifdef SANITIZED
#define EXPORT(ret, name, params, ours) \
	ret ours params; \
	ret name params __attribute__((weak));
#else
#define EXPORT(ret, name, params, ours) \
	ret ours params; \
	ret name params __attribute__((weak, alias(#ours), visibility("default")));
#endif

// tls says how a variable of a thread is found. With glibc its place is fixed when the library is loaded: else the first use
// in a thread would allocate. musl refuses that in a library that is loaded late, and makes such variables for all threads
// in dlopen: finding one is a look into a table.
#if defined CMEM_SHARED && !defined __GLIBC__
#define tls
#else
#define tls __attribute__((tls_model("initial-exec")))
#endif

// Variables that another process reads, if there is a file that both have mapped: they lie in pages
// of their own, which that file replaces.
#ifdef CMEM_SHARED
#define in_shared __attribute__((section("cmem_shared")))
#else
#define in_shared
#endif

// ---- system.c

// The lock of this package is the last to be taken. The thread that holds it has all signals
// blocked, so that no handler waits for it.
hidden void cmem_lock(sigset_t *old);
hidden void cmem_unlock(const sigset_t *old);

// cmem_map returns memory of the system that is zero, or 0. cmem_unmap gives it back.
hidden void *cmem_map(size_t n);
hidden void cmem_unmap(void *p, size_t n);

// cmem_system_mmap and the others are the calls of the system, which are not counted. They set errno as those of the C
// library do.
hidden void *cmem_system_mmap(void *at, size_t n, int prot, int flags, int fd, int64_t offset);
hidden int cmem_system_munmap(void *at, size_t n);

// cmem_extent returns where a file is mapped.
struct dl_phdr_info;
hidden void cmem_extent(const struct dl_phdr_info *info, uintptr_t *from, uintptr_t *to);

// cmem_find_object is _dl_find_object of glibc 2.35, which finds the file that has an address, without a lock; or 0.
struct object {
	unsigned long long flags;
	void *from, *to;
	struct link_map *map;
	void *frames; // the header of its tables
	unsigned long long rest[8];
};
extern hidden int (*cmem_find_object)(void *, struct object *);
hidden void cmem_system_start(void); // finds it

// ---- unload.c

// cmem_closed changes when a library is unloaded, as far as the program has asked for it.
extern hidden uint32_t cmem_closed;

// ---- shared.c

#ifdef CMEM_SHARED
// Where the variables are that the other process reads: addresses, and offsets of fields.
struct fields {
	uint64_t threads, none, thread_all, thread_left, thread_drawn, thread_mallocs, thread_frees;
	uint64_t taken, lost, rate;
	uint64_t stacks, stack_all, stack_c, stack_go, stack_closed, stack_labels, stack_allocs, stack_peak_bytes,
		stack_peak, stack_pcs;
	uint64_t live, live_variance, live_samples, live_blocks, live_usable, peak_live, peak_variance, peak, closed;
	uint64_t trace;
	uint64_t mapping_stacks, mapping_peak; // as stacks and peak
};

// The file begins with a header.
struct header {
	char magic[8];
	uint64_t version, started;
	uint64_t base;                                 // where the file is mapped
	uint64_t variables, variables_n, variables_at; // their address, length and place in the file
	uint64_t used;                                 // how much of the file
	uint64_t modules, program;                     // a struct module; the base of the program
	uint64_t pid;
	struct fields fields;
	char off[256]; // what cmem_off returns
	struct attached {
		uint32_t wanted;     // the command sets 1, and 0 when it waits no more; the library makes 2 of 1
		uint32_t state;      // the library: attached_now, attached_ended
		uint32_t end;        // the command: the end is wanted
		uint32_t beat;       // the command adds 1 while it lives
		uint64_t before;     // bytes that were in use, as the allocator says
		uint64_t later;      // likewise, at most some seconds ago
		uint64_t slots;      // that were changed
		uint64_t slots_left; // that could not be changed back
	} attached;              // see attach.c
	uint64_t go[4];          // the command: the code of Go functions and of runtime.cgocall, from program on; or 0
	uint64_t labels;         // the command, before go: cmem_labels_at
	uint64_t ready;          // the command: it knows the file, which the library has made
};
enum { attached_now = 1, attached_ended }; // states

// A module is the program or a library.
struct module {
	struct module *next;
	uint64_t base, from, to; // what is to be added to its addresses; where it is mapped
	uint64_t closed;         // cmem_closed when it was found
	uint64_t initial;        // it is mapped since the program began
	char name[];             // of the file; that of the program is ""
};

// cmem_shared_open maps the file of that name, and puts the variables into it. It returns 0 if that
// cannot be done. cmem_map hands out memory of the file from then on.
hidden struct header *cmem_shared_open(const char *name);

// cmem_shared_make makes the file in a folder: a program that is recorded has started this one. cmem_shared_wait waits until
// the command has found it, or a second has passed.
hidden struct header *cmem_shared_make(const char *folder);
hidden void cmem_shared_wait(struct header *h);

// cmem_shared_map is the same for a memory file that is open, and stays so. The kernel finds memory for it when that is
// written, and nobody else has a name for it.
hidden struct header *cmem_shared_map(int fd);

// cmem_shared_modules enters all modules that are mapped now. cmem_shared_stack enters those of a new
// stack that were loaded later. The caller holds the lock.
hidden void cmem_shared_modules(void);
hidden void cmem_shared_stack(const struct cmem_stack *s);

// cmem_shared_child is called in the child of a fork, which goes on without the file. It returns 1
// if the variables are what they were when the program began.
hidden int cmem_shared_child(void);

// cmem_shared_go returns 1 if the command has said where Go code lies, and where that and labels lie.
hidden int cmem_shared_go(uintptr_t code[4], int *labels);

// cmem_late says that the library was loaded into a process that runs. cmem_behind is where dlsym finds the functions
// behind those of this package: RTLD_NEXT in a program that has it from the start.
extern hidden int cmem_late;
extern hidden void *cmem_behind;
#else
#define cmem_late 0
#define cmem_behind RTLD_NEXT
#endif

// ---- threads.c

// A thread has the counts of one thread, which alone writes to it; others read it with atomic loads.
// Its memory is never given back: when the thread has ended, another one goes on with the record. So
// the counts stay, and no reader meets memory that is gone.
//
// left counts down to the next sample: the bytes that were allocated are drawn - left.
struct thread {
	uint64_t left; // malloc(n) is fast if 1 <= n <= left
	uint64_t mallocs, frees;
	uint64_t drawn;        // the sum of what was added to left
	const uint8_t *filter; // cmem_filter
	uint64_t random;       // the state of the thread's random numbers
	int64_t rate;          // left is the distance to a point, drawn with this rate; 0: to where the rate is read again
	int64_t held;          // bytes of blocks that it has made, less those that it has freed, if cmem_exact is set
	uint32_t setting;      // odd while left and drawn are set together
	uint64_t seen;         // the bytes that it had allocated when they were read last; the lock is held
	struct thread *all, *free;
} __attribute__((aligned(64)));

// cmem_none is the record of threads that have none of their own. They take the slow path each time,
// and add to it by atomic operations.
extern hidden struct thread cmem_none;
extern hidden __thread struct thread *cmem_mine tls;

// mine returns cmem_mine. In a library that is loaded late it may be 0: in a thread that was being made at that moment, which the
// C library had neither given the first values of the variables yet, nor had in its list to do so.
static inline struct thread *mine(void) {
#ifdef CMEM_SHARED
	if (unlikely(cmem_mine == 0))
		return &cmem_none;
#endif
	return cmem_mine;
}

// cmem_waits says that nothing is counted until cmem_set_rate begins to sample. It is set before the program has threads,
// and goes from 1 to 0 once. A thread that counts a block has read 0. So has, by the rules of the memory model, a thread that gets
// this block to free it: all calls read the same variable. A free that is not counted is that of a block that is not, either.
#ifdef CMEM_SHARED
static inline int waits(void) { return 0; }
#else
extern hidden struct waits {
	int on;
} __attribute__((aligned(64))) cmem_waits; // nothing that is written lies beside it
static inline int waits(void) { return unlikely(__atomic_load_n(&cmem_waits.on, __ATOMIC_RELAXED)); }
#endif

// cmem_filter has, by a part of the address, how many sampled blocks in use have that part. A count of
// 255 never changes; that of the address 0 is one. free reads it first.
enum { filter_bits = 16 };
extern hidden uint8_t cmem_filter[1 << filter_bits];

static inline size_t filter_of(uintptr_t p) { return p >> 4 & ((1 << filter_bits) - 1); }

// counted counts an allocation of n bytes and returns 1, if the fast path suffices. Else it counts
// nothing and returns 0, and cmem_note must be called after the allocation.
static inline int counted(size_t n) {
	struct thread *t = mine();
	uint64_t left = t->left;
	if (unlikely(n - 1 >= left)) // that is n > left || n == 0
		return 0;
	t->left = left - n;
	t->mallocs++;
	return 1;
}

// freed counts a free and returns 1, if the block is not sampled. Else it counts nothing and returns 0:
// p is 0, or the block may be sampled, and cmem_forget must be called.
static inline int freed(void *p) {
	struct thread *t = mine();
	if (unlikely(t->filter[filter_of((uintptr_t)p)] != 0))
		return 0;
	t->frees++;
	return 1;
}

// cmem_threads_start lets threads have records: before, all have cmem_none.
hidden void cmem_threads_start(void);

// cmem_take_record gives the thread a record, if it is not ending; else it returns &cmem_none. It may
// allocate.
hidden struct thread *cmem_take_record(void);

// cmem_set_left sets left, and changes drawn by as much, so that drawn - left stays. A reader that
// meets the change reads both again.
hidden void cmem_set_left(struct thread *t, uint64_t left);

// cmem_read_threads adds up the counts of all threads. The caller holds the lock.
hidden void cmem_read_threads(struct cmem_counts *to);

#ifdef CMEM_SHARED
hidden void cmem_thread_fields(struct fields *f);

// cmem_threads_child is called in the child of a fork. fresh says that the variables are what they
// were when the program began.
hidden void cmem_threads_child(int fresh);
#endif

// ---- exact.c

struct next;

// cmem_layer sets, if the environment asks for it, functions that count the bytes in use in place
// of those of the allocator, and cmem_exact.
hidden void cmem_layer(struct next *next);
extern hidden int cmem_exact;

// cmem_together reports whether two addresses are in the same file.
hidden int cmem_together(void *f, void *g);

// ---- memory.c

// cmem_memory_start opens what cmem_read_memory reads. cmem_open_memory returns what that takes for fd.
hidden void cmem_memory_start(void);
hidden void cmem_memory_end(void); // closes it, for good
hidden int cmem_open_memory(void);

// cmem_read_memory copies up to n bytes at p, which are perhaps not mapped. It returns how many it has
// copied.
hidden size_t cmem_read_memory(int fd, void *to, uintptr_t p, size_t n);

// ---- modules.c

// cmem_modules_start finds the files that are mapped when the program begins.
hidden void cmem_modules_start(void);

// cmem_module_of returns where the file is mapped that has the address, and 0 if there is none. cmem_in_module says
// whether the address is in the part with code. Both take the lock.
hidden int cmem_module_of(uintptr_t pc, uintptr_t *from, uintptr_t *to);
hidden int cmem_in_module(uintptr_t pc);

// cmem_module_table returns the table for unwinding of the function that has the address, and where the function
// begins; or 0. It takes the lock.
hidden const void *cmem_module_table(uintptr_t pc, void **function);

// ---- gostack.c

// A gowalk collects the frames of a goroutine.
struct gowalk {
	uintptr_t *pcs; // the return addresses
	uint32_t n, most;
	int fd;
	uintptr_t lo, hi;    // the stack of the goroutine
	uintptr_t last;      // the frame pointer by which the last address was found
	uintptr_t back;      // that of the next frame, if it lies on another stack: that of runtime.cgocallback; or 0
	uintptr_t stack;     // below it, on the stack of C, is nothing that is still in use
	uintptr_t goroutine; // its record, and what that has at cmem_labels_at
	uintptr_t labels;
};

// cmem_labels_at is where the record of a goroutine has its labels, in bytes; 0 if that is not known.
enum { most_searched = 64 }; // words of a record of the runtime that are searched
extern hidden int cmem_labels_at;

// cmem_is_go reports whether the address is one of Go code.
hidden int cmem_is_go(uintptr_t pc);

// cmem_knows_go reports whether it is known where that lies.
hidden int cmem_knows_go(void);

// cmem_find_go looks whether the command knows by now where it lies.
#ifdef CMEM_SHARED
hidden void cmem_find_go(void);
#else
static inline void cmem_find_go(void) {}
#endif

// cmem_go_frames adds the frames of the goroutine that has called C on this thread. The frames of C end at pc
// in Go code, with that stack pointer; or, if pc is 0, somewhere else. It returns the number of frames.
hidden uint32_t cmem_go_frames(struct gowalk *w, uintptr_t pc, uintptr_t sp);

// cmem_go_outer adds the frames behind those that a callback of C has. It returns their number, which is 0 in a
// thread that C has made.
hidden uint32_t cmem_go_outer(struct gowalk *w);

// cmem_go_probe is cmem_go_frames while it is not known yet how the frames are found.
hidden uint32_t cmem_go_probe(struct gowalk *w, uintptr_t pc, uintptr_t sp);

// ---- labels.c

// A copied has the labels of a goroutine, as they are copied when a sample is taken: for each the lengths of its key and
// value, which are in text one after the other.
enum { most_labels = 16, most_key = 128, most_value = 256, most_label_text = 1024 };
struct copied {
	uint16_t n, cut; // cut: some are left out, or shortened
	uint16_t used;   // of text
	struct {
		uint16_t key, value;
	} of[most_labels];
	char text[most_label_text];
};

// cmem_labels_copy copies the labels of the goroutine of w.
hidden void cmem_labels_copy(struct copied *to, const struct gowalk *w);

// cmem_labels_search is cmem_labels_find for the goroutine of w.
hidden uint64_t cmem_labels_search(struct gowalk *w, const char *text, const uint16_t *lengths, int n);

// cmem_labels_of returns the set of labels that a copy is of, or 0 if it has none, or if there is no room. The caller holds
// the lock. cmem_labels_short says whether some are left out or shortened; it is set for the stack as well, where that has no
// room for labels. A sample that is taken with it counts in cmem_labels_cut.
hidden const struct cmem_labels *cmem_labels_of(const struct copied *l);
extern hidden uint64_t cmem_labels_cut;
extern hidden int cmem_labels_short;

// ---- tables.c

// The unwinder is called if cmem_may_unwind. With musl it is not, and that of a system that has another C library as well
// cannot be linked into a program. The library of cheap record has one of its own, with the tables of tables.c: so it
// neither takes a lock of the process, nor does an image need libgcc_s.so.1.
#if !defined __GLIBC__ && !defined CMEM_SHARED
#pragma weak _Unwind_Backtrace
#pragma weak _Unwind_GetIP
#pragma weak _Unwind_GetCFA
#endif

// A table is one of the unwinder, for one function.
struct table {
	uint32_t cie_length, cie;
	uint8_t cie_rest[16];
	uint32_t fde_length, fde;
	uint64_t from, size;
	uint8_t fde_rest[8];
} __attribute__((packed, aligned(8)));

// A jump is a table for the function that calls the unwinder. It says that this function was called by one that
// is further up the stack: the one that has called Go code back.
struct jump {
	uintptr_t function, taken; // it; the address in it for which the unwinder has read the table, or 0
	struct table table;
	uint8_t rules[168];
};

// cmem_jump makes a jump for a function, to behind the last callback of w. It returns 0 if it cannot: if a panic
// has left these frames of C, others may lie there now.
hidden int cmem_jump(struct jump *to, struct gowalk *w, void *function);

// cmem_tables_begin must be called before the unwinder, and cmem_tables_end after it. jump may be 0.
hidden void cmem_tables_begin(struct jump *jump);
hidden void cmem_tables_end(void);

// cmem_is_code reports, within a walk, whether the address, which the unwinder has come to last, may be one of
// code: that of a function without a table lies in a file, and then it returns 2.
hidden int cmem_is_code(uintptr_t pc);

// cmem_tables_start finds out whether the unwinder may be called, which is what cmem_may_unwind returns.
hidden void cmem_tables_start(void);
hidden int cmem_may_unwind(void);

// cmem_unwinds reports whether the function that returns to caller is a part of the unwinder, which
// may hold a lock that cmem_walk needs.
hidden int cmem_unwinds(void *caller);

// ---- walk.c

// cmem_walk_start must be called in the thread that begins the program. cmem_walk writes the stack of the calling thread to pcs, from the frame on to which caller
// belongs, and returns the number of addresses of C in *c and the number of words behind them in *go: see
// struct cmem_stack.
enum { most_c = 96, most_go = 128 };
// The stack of a thread that C has made goes on with cmem_maker, the one that has made it, if that is not 0.
//
// It copies the labels of the goroutine to labels, if that is not 0.
//
// It returns the address in code of Go at which the frames of C end; 0 if they do not, and cmem_somewhere if it cannot
// know, because a function has no table.
enum { cmem_somewhere = 1 };
extern hidden __thread const struct cmem_stack *cmem_maker tls;
hidden void cmem_walk_start(void);
hidden uintptr_t cmem_walk(
	uintptr_t pcs[most_c + most_go], uint32_t *c, uint32_t *go, void *caller, struct copied *labels);

// ---- table.c

// A live is a sampled block in use, which counts for weight blocks.
struct live {
	uintptr_t p;
	struct cmem_stack *stack;
	size_t n, usable; // bytes that were asked for, and that the allocator has taken for it
	double weight;
};

// cmem_take begins a sample of the block of n bytes at p, which has usable bytes, with that rate, and cmem_end ends it, if
// there is one. The caller holds the lock.
hidden int cmem_take(void *p, size_t n, size_t usable, int64_t rate, const uintptr_t *pcs, uint32_t c, uint32_t go,
	const struct cmem_labels *labels);
hidden void cmem_end(void *p);

// cmem_detach takes the sample of a block away, if there is one, before realloc frees the block:
// another thread may have its address a moment later. cmem_detached says whether realloc freed it.
// These two take the lock.
hidden int cmem_detach(void *p, struct live *was);
hidden void cmem_detached(const struct live *was, int freed);

// cmem_weight returns for how many blocks of n bytes a sample counts that was taken with that rate, and
// cmem_variance what it adds to the variance of the bytes in use.
hidden double cmem_weight(size_t n, int64_t rate);
static inline double cmem_variance(double weight, double n) { return weight * (weight - 1) * n * n; }

// cmem_mapping_began adds n bytes of a sampled mapping to the sums of a stack, and returns it, or 0 if there is no
// memory. cmem_mapping_ended takes off bytes, and what they add to the variance. The caller holds the lock.
hidden struct cmem_stack *cmem_mapping_began(
	const uintptr_t *pcs, uint32_t c, uint32_t go, const struct cmem_labels *labels, double weight, size_t n);
hidden void cmem_mapping_ended(struct cmem_stack *s, double bytes, double variance);

// cmem_thread_stack returns a stack that has made a thread, or 0 if there is no memory. The caller holds the lock.
hidden struct cmem_stack *cmem_thread_stack(const uintptr_t *pcs, uint32_t c, uint32_t go);

// cmem_mapping_none is called when no sampled mapping is left, so that what sums have lost by rounding does not stay.
// The caller holds the lock.
hidden void cmem_mapping_none(void);

// cmem_live returns the bytes in use that the samples of blocks or mappings stand for, and the variance of that. The
// caller holds the lock.
hidden void cmem_live(int of, double *bytes, double *variance);

// cmem_live_blocks returns the blocks in use that the samples stand for, and their usable bytes. The caller holds the lock.
hidden void cmem_live_blocks(double *blocks, double *usable);

#ifdef CMEM_SHARED
hidden void cmem_table_fields(struct fields *f);
#endif

// ---- ranges.c

struct range;

// cmem_ranges_any reports whether a part of [from, to) may be in the table. It takes no lock. The caller of the others
// holds it.
hidden int cmem_ranges_any(uintptr_t from, uintptr_t to);

// cmem_ranges_add enters a mapping that is not there. It returns 0 if there is no memory.
hidden int cmem_ranges_add(uintptr_t from, uintptr_t to, double weight, const uintptr_t *pcs, uint32_t c, uint32_t go,
	const struct cmem_labels *labels);

// cmem_ranges_take takes what lies in [from, to) out of the table. cmem_ranges_put puts it back, moved by that many
// bytes: what does not lie below end any more has ended. cmem_ranges_end ends all.
hidden struct range *cmem_ranges_take(uintptr_t from, uintptr_t to);
hidden void cmem_ranges_put(struct range *all, uintptr_t by, uintptr_t end);
hidden void cmem_ranges_end(struct range *all);

// ---- growth.c

// cmem_growth_due returns the timer if it is to be set, or else -1. The caller holds the
// lock. cmem_growth_signal, which the caller calls without the lock, writes to it, if fd is not -1.
hidden int cmem_growth_due(void);
hidden void cmem_growth_signal(int fd);

// ---- sample.c

// cmem_sample_enable says whether blocks are sampled at all. cmem_sample_wait has none be sampled until the rate is
// set, and nothing be counted, unless counts is set.
hidden void cmem_sample_enable(int on);
hidden void cmem_sample_wait(int counts);

// cmem_usable_size is malloc_usable_size of the allocator behind, once that is known.
extern hidden size_t (*cmem_usable_size)(void *p);

// cmem_note is called after an allocation of n bytes at p, or 0, by the function that returns to
// caller, if n is 0 or more than left. It counts the call, gives the thread a record, and takes the
// sample. errno stays as it is.
hidden void cmem_note(void *p, size_t n, void *caller);

// cmem_forget is called before a block is freed that the filter knows, or by a thread without a
// record. It counts the call, and ends the sample. errno stays as it is.
hidden void cmem_forget(void *p);

// cmem_count_free is the part of cmem_forget that counts.
hidden void cmem_count_free(void);

// cmem_note_mapping is called after [from, from + n) was mapped for the function that returns to caller. It counts the call, and
// takes the sample. errno stays as it is.
hidden void cmem_note_mapping(uintptr_t from, size_t n, void *caller);
hidden void cmem_count_munmap(void);

// cmem_note_thread returns the stack of the caller of pthread_create, or 0: if that is the runtime of Go, or the thread
// makes too many others. errno stays as it is.
hidden const struct cmem_stack *cmem_note_thread(void *caller);

#ifdef CMEM_SHARED
hidden void cmem_sample_fields(struct fields *f);
#endif

// ---- next.c

// The functions of an allocator.
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

// cmem_find_next finds the allocator behind this package, whose own functions are ours. It returns 1
// if it was found by dlsym(RTLD_NEXT). dlsym may call malloc meanwhile.
hidden int cmem_find_next(struct next *found, const struct next *ours);

// ---- unseen.c

// cmem_unseen_start finds the functions by which the next allocator says what is in use.
hidden void cmem_unseen_start(void);

// ---- hooks.c

// The allocator that would be called without this package.
extern hidden struct next cmem_next;

// cmem_resolve finds the next allocator, unless that was done. It returns what cmem_find_next has.
hidden int cmem_resolve(void);

// cmem_has_early reports whether there are blocks that are not the next allocator's.
hidden int cmem_has_early(void);

// cmem_is_called reports whether the program has no malloc of its own.
hidden int cmem_is_called(void);

hidden void *cmem_malloc(size_t n);
hidden void cmem_free(void *p);

// ---- operators.c

// cmem_find_operators reports whether a library has operators new and delete of its own. Then those
// are called.
hidden int cmem_find_operators(void);

// ---- mmap.c

// cmem_mmap_start finds the functions of other libraries that are called instead of the system.
hidden void cmem_mmap_start(void);

// ---- attach.c

#ifdef CMEM_SHARED
// cmem_attach_load reports whether the library was loaded late. Then begin is called in a thread of its own, if the
// command still wants that; see start.c.
hidden int cmem_attach_load(void (*begin)(void));

// cmem_attach_open maps the shared file, or returns 0.
hidden struct header *cmem_attach_open(void);
#endif

// ---- preload.c

#ifdef CMEM_SHARED
// cmem_preload_open maps the file that the environment names; it returns 0 if there is none.
// cmem_preload_begin begins to record into it. off is what cmem_off returns.
hidden struct header *cmem_preload_open(void);
hidden void cmem_preload_begin(struct header *h, const char *off);
#endif

#endif
