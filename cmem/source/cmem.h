// What the C files of this package and Go share. See doc.go.
#ifndef CHEAP_CMEM_H
#define CHEAP_CMEM_H

#include <stddef.h>
#include <stdint.h>

// What stacks have called: malloc and its like, mmap and mremap, or pthread_create.
enum { cmem_of_malloc, cmem_of_mmap, cmem_of_thread, cmem_kinds };

// A cmem_label is a label of goroutines: a key and a value in text. A cmem_labels is a set of them. They are never freed, and
// do not change.
struct cmem_label {
	struct cmem_label *next; // with the same hash
	uint64_t hash;
	uint16_t key, value; // lengths
	uint32_t values;     // of the label that stands for all other values of its key: how many have labels of their own
	char text[];
};
enum { cmem_label_text = offsetof(struct cmem_label, text) };
struct cmem_labels {
	struct cmem_labels *next;
	uint64_t hash;
	size_t n;
	const struct cmem_label *of[];
};

// A cmem_stack is a stack that has allocated or mapped memory, innermost frame first: pcs has its return
// addresses, c of C and behind them go words of Go. Where C has called Go, a word below cmem_thread_name says
// how many addresses of C follow: 0 where they are not known. Behind cmem_thread_name is the name of a thread that C has
// made, in 16 bytes, and behind it, if it is known, the stack that has called pthread_create, as where C has called Go. The sums are estimates: each sampled block counts
// for the inverse of its probability. A stack is never freed, and its addresses never change. With other labels it is another
// stack, and plain is the one without.
enum { cmem_thread_name = 4095 };
struct cmem_stack {
	struct cmem_stack *next, *all; // the next with the same hash; the next of all
	uint64_t hash;
	uint32_t c, go;
	uint32_t closed;                  // how many libraries had been unloaded when it was seen first
	uint32_t of;                      // what it has called
	const struct cmem_labels *labels; // or 0
	const struct cmem_stack *plain;
	double allocs, alloc_bytes, frees, free_bytes;
	double alloc_var, free_var; // alloc_var - free_var is the variance of alloc_bytes - free_bytes
	// peak_bytes is what the stack had in use at the peak-th maximum of the bytes of all stacks. If
	// there was a maximum since, the stack had the same then as it has now: alloc_bytes - free_bytes.
	double peak_bytes;
	uint64_t peak;
	uintptr_t pcs[];
};

// A cmem_site is what cmem_sites copies of a stack.
struct cmem_site {
	const struct cmem_stack *stack, *plain;
	const uintptr_t *pcs;
	const struct cmem_labels *labels;
	uint32_t c, go;
	uint32_t stale; // a library was unloaded since
	double allocs, alloc_bytes, alloc_var, frees, free_bytes, free_var;
};

struct cmem_counts {
	uint64_t mallocs, frees, bytes; // of all threads, since the program began
	uint64_t records;               // of threads, and a few that no thread has any more
	uint64_t samples, lost;         // taken; not taken, because there was no memory for them
	uint64_t labels_cut;            // taken without some of the labels, or with a part of one
	double live, live_variance;     // bytes in use that the samples stand for
	double live_blocks;             // the blocks
	double live_usable;             // the bytes that the allocator has taken for these
	uint64_t mmaps, munmaps;        // calls of mmap, and of mremap that makes a mapping longer; calls of munmap
	double mapped, mapped_variance; // bytes of mappings that their samples stand for
	int exact;                      // held is counted
	int64_t held;                   // bytes in use, by the allocator's own sizes
};

// cmem_off returns "" if this package works in the process, or else a sentence that says why not.
const char *cmem_off(void);

// cmem_set_go_code says where the code of Go functions lies.
void cmem_set_go_code(uintptr_t from, uintptr_t to);

// cmem_set_cgocall says which addresses of Go code the function runtime.cgocall has. Then the next stack that
// has frames of Go shows how they are found.
void cmem_set_cgocall(uintptr_t from, uintptr_t to);

// cmem_probe finds out how, by looking for the functions of Go that have called it. It returns their number,
// and 0 if it finds none. cmem_unprobe has all stacks end where Go begins.
enum { cmem_probe_most = 64 };
int cmem_probe(uintptr_t pcs[cmem_probe_most]);
void cmem_unprobe(void);

// cmem_labels_find looks for the labels of the calling goroutine, which are these: n pairs of a key and a value in text, with
// their lengths. It returns at which words of the record of the goroutine they are, as bits; or, if n is 0, which words are 0.
// cmem_labels_learned says where they are, in bytes. cmem_labels_now copies them as for a sample, to text, and returns the
// number of lengths.
uint64_t cmem_labels_find(const char *text, const uint16_t *lengths, int n);
void cmem_labels_learned(int at);
enum { cmem_probe_labels = 32, cmem_probe_text = 1024 };
int cmem_labels_now(char text[cmem_probe_text], uint16_t lengths[cmem_probe_labels]);

// cmem_tables_as has the unwinder get other tables from now on, or not be called, as with other C libraries. It
// returns what was before. It is for tests.
enum { cmem_no_tables, cmem_its_own_tables, cmem_tables_of_modules };
int cmem_tables_as(int which);

// cmem_initial reports whether the address is in a file that was mapped when the program began. Such
// a file is never unmapped.
int cmem_initial(uintptr_t pc);

// The record of all calls; see trace.c. An event is two words:
//
//	word 0, bits   0 to 47       48 to 51   52 to 55               56 to 61
//	               the address   the kind   the thread; 15 stands  the logarithm of
//	                                        for 15 and above       the alignment
//	word 1         the size; or, in the second event of a realloc, the position of the first
//
// Word 0 is 0 until the event is written.
struct cmem_trace {
	uint64_t head; // how many positions were taken since the program began
	uint64_t apart[7];
	uint64_t read;    // all events before it were read, and set to 0; the reader writes it
	uint64_t size;    // of the ring, in events: a power of two
	uint64_t threads; // how many have written an event
	uint64_t over;    // the reader was too slow: the record ends at the first event that is missing
	uint64_t *ring;   // two words for each event
};
enum {
	cmem_malloc_event = 1,
	cmem_free_event, // of the address, or, if that is 0, of the block that is reallocated
	cmem_calloc_event,
	cmem_realloc_event, // begins
	cmem_aligned_event,
	cmem_moved_event, // ends a realloc: the block has this address now
	cmem_kept_event,  // ends a realloc: there was no memory for it
	cmem_marked = 8,  // set if a function has allocated that is marked
};
extern struct cmem_trace cmem_tracing;

// cmem_trace_begin begins to record in a ring that has room for events, a power of two; all that was
// written before must have been read. The record ends if nothing is read for patience milliseconds
// while threads wait. It returns 0 if a record has begun already, or if there is no memory for it.
// cmem_trace_end ends it; calls that run at that moment may still write an event. Only one thread may
// call these two at a time.
enum { cmem_trace_events = 1 << 22, cmem_trace_patience = 2000 }; // the most, and what is usual
int cmem_trace_begin(uint64_t events, uint32_t patience);
void cmem_trace_end(void);

// cmem_trace_mark marks the blocks that a function of the program allocates by malloc. The code of
// these C files is at self.
void cmem_trace_mark(uintptr_t from, uintptr_t to, uintptr_t self_from, uintptr_t self_to);

// cmem_unloaded returns a number that changes when the program unloads a library.
uint32_t cmem_unloaded(void);

enum { cmem_default_rate = 512 << 10 }; // what the rate is at first
void cmem_set_rate(int64_t bytes);
int64_t cmem_rate(void);

// cmem_is_waiting reports whether nothing was counted yet, because the environment asks for that. cmem_has_gap reports
// whether there was a time without samples.
int cmem_is_waiting(void);
int cmem_has_gap(void);

// cmem_allocator_in_use returns how many bytes are in use as the allocator itself counts them, and in *header how many of
// each block the program cannot use. It returns -1 if the allocator does not say.
int64_t cmem_allocator_in_use(int *header);
void cmem_read(struct cmem_counts *to);

// cmem_growth_open returns the descriptor of a timer, or -1. From cmem_growth_enable(1) to
// cmem_growth_enable(0) it is set when the bytes in use have changed by a MiB, or by a 64th of
// them if that is more. cmem_growth_wake sets it once.
int cmem_growth_open(void);
void cmem_growth_enable(int on);
void cmem_growth_wake(void);

// cmem_sites copies the stacks of one kind, the newest first. If there are more than most, it copies the oldest. It
// returns how many there are. The sums of one stack are those of one moment; those of two may not be.
size_t cmem_sites(int of, struct cmem_site *to, size_t most);

// A cmem_range is a part of a sampled mapping that is still mapped, as far as is known. It counts for weight
// mappings.
struct cmem_range {
	uintptr_t from, to;
	const struct cmem_stack *stack;
	double weight;
};

// cmem_ranges copies ranges, by address, from the first on that lies at from or above. It returns how many it has
// copied.
size_t cmem_ranges(uintptr_t from, struct cmem_range *to, size_t most);

#endif
