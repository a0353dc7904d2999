#include <stdint.h>

// An operation of a list is the address of a function of this type, and the words behind it.
// It returns the next operation. All operations have exactly this type, so a compiler that
// checks calls through pointers has nothing to say.
typedef uint64_t *cheap_calls_op(uint64_t *w, void *run);

// The words that a list begins with.
enum {
	CHEAP_CALLS_FLAG,   // not 0: stop before the next operation
	CHEAP_CALLS_AT,     // the operation that ended the run
	CHEAP_CALLS_REASON, // why it ended: see below
	CHEAP_CALLS_NEED,   // with CHEAP_CALLS_BYTES, how large the buffer must be
	CHEAP_CALLS_NONE,   // 0, the end of every list
	CHEAP_CALLS_HEADER = 8,
};

// Why a run ended.
enum {
	CHEAP_CALLS_END,    // after the last operation
	CHEAP_CALLS_STOP,   // a condition stopped it
	CHEAP_CALLS_CANCEL, // the flag was set
	CHEAP_CALLS_ROWS,   // a repetition has as many rows as its arrays have room for
	CHEAP_CALLS_BYTES,  // a text does not fit
};

// cheap_calls_run makes the operations from the word from on, up to a word that is 0, or until
// the flag is set. Operations get the words of the list as run.
void cheap_calls_run(uint64_t *words, uint64_t from);

// cheap_calls_run_quiet is the same, for lists of which no call calls Go.
void cheap_calls_run_quiet(uint64_t *words, uint64_t from);

// The words of an operation are numbered from its own address, word 0. The two halves of word
// 1 are distances in words, with a sign: to a result, called src, and to another word.

// An argument, the other word, is src and word 2; or what is at this address.
uint64_t *cheap_calls_ref(uint64_t *w, void *run);
uint64_t *cheap_calls_load(uint64_t *w, void *run);
uint64_t *cheap_calls_load32(uint64_t *w, void *run);
// The same of the address in word 2 alone.
uint64_t *cheap_calls_load_at(uint64_t *w, void *run);
uint64_t *cheap_calls_load32_at(uint64_t *w, void *run);

// Stops if src is equal to word 2, is not, is less, or is not less.
uint64_t *cheap_calls_stop_eq(uint64_t *w, void *run);
uint64_t *cheap_calls_stop_ne(uint64_t *w, void *run);
uint64_t *cheap_calls_stop_lt(uint64_t *w, void *run);
uint64_t *cheap_calls_stop_ge(uint64_t *w, void *run);
// Goes on at the other word if so.
uint64_t *cheap_calls_skip_eq(uint64_t *w, void *run);
uint64_t *cheap_calls_skip_ne(uint64_t *w, void *run);
uint64_t *cheap_calls_skip_lt(uint64_t *w, void *run);
uint64_t *cheap_calls_skip_ge(uint64_t *w, void *run);

// Word 1 is errno; errno is 0.
uint64_t *cheap_calls_errno(uint64_t *w, void *run);
uint64_t *cheap_calls_clear_errno(uint64_t *w, void *run);

// A repetition begins. Word 1 counts rows, word 2 is the most, word 3 says that the
// repetition is done.
uint64_t *cheap_calls_begin(uint64_t *w, void *run);
// A row is complete. The other word is the beginning, here and below.
uint64_t *cheap_calls_back(uint64_t *w, void *run);
// There are no more rows.
uint64_t *cheap_calls_done(uint64_t *w, void *run);
// src is an element of the array at word 2.
uint64_t *cheap_calls_store(uint64_t *w, void *run);
// Whether src is word 3 is a byte of the array at word 2.
uint64_t *cheap_calls_test(uint64_t *w, void *run);
// Bytes are added to the buffer at word 4, which has word 5 bytes. src is their address. The
// other word is their number. Word 2 is the distance of the beginning, word 3 the address of
// the array of ends.
uint64_t *cheap_calls_bytes(uint64_t *w, void *run);

// Calls the function at word 2. Word 3 says how many integers and doubles follow, and what
// its result is.
uint64_t *cheap_calls_address(uint64_t *w, void *run);

// cheap_calls_touch does nothing with p: cgo looks at what it is.
void cheap_calls_touch(void *p);
