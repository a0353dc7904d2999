#include <stdint.h>

// A list is an array of words. Each operation is some of them, and its first word says which
// operation it is: the address of a struct cheap_calls_op for a call that callgen has written,
// or one of these numbers, which are no addresses. A word that is said to be an index is one of
// the words of the list, by its number. CALLS_STOP is in the C code that callgen writes, too.
enum {
	CALLS_END,         // the list ends here
	CALLS_STOP,        // index x, low, span: stop if x is between low and low + span
	CALLS_SKIP,        // index x, low, span, index: go on there if it is
	CALLS_ERRNO,       // result: it becomes errno
	CALLS_CLEAR_ERRNO, // errno becomes 0
	CALLS_REPEAT,      // row, rows, done: a repetition of at most so many rows in a run begins
	CALLS_ROW,         // index of CALLS_REPEAT: a row is complete
	CALLS_NO_ROW,      // index of CALLS_REPEAT: there are no more rows
	CALLS_STORE,       // index x, array, index of CALLS_REPEAT: x is an element
	CALLS_IS,          // index x, array, index of CALLS_REPEAT, value: whether x is the value is
	CALLS_BYTES,       // see cheap_calls_bytes
	CALLS_ADDRESS,     // see cheap_calls_address
};

// What C and Go say to each other in a run.
struct cheap_calls_run {
	uint64_t flag;   // not 0: end before the next operation
	uint64_t words;  // the address of the first word
	uint64_t at;     // the index of the operation that ended the run
	uint64_t reason; // why it ended: see below
	uint64_t need;   // with CALLS_FULL, how large the buffer must be
};

// Why a run ended.
enum {
	CALLS_ENDED,     // after the last operation
	CALLS_STOPPED,   // a condition stopped it
	CALLS_CANCELLED, // the flag was set
	CALLS_ROWS,      // a repetition has as many rows as its arrays have room for
	CALLS_FULL,      // a text does not fit
};

// A function that callgen has written. All have exactly the type of call, so a compiler that
// checks calls through pointers has nothing to say. It gets the words of the operation, makes the
// call, and returns the words of the next.
struct cheap_calls_op {
	uint64_t *(*call)(uint64_t *w, void *run);
	uint64_t words; // of the operation
	const char *name;
};

// cheap_calls_run makes the operations from the one at an index on, up to CALLS_END, or until the
// flag is set.
void cheap_calls_run(struct cheap_calls_run *run, uint64_t *words, uint64_t from);

// cheap_calls_run_quiet is the same, for lists of which no call calls Go.
void cheap_calls_run_quiet(struct cheap_calls_run *run, uint64_t *words, uint64_t from);

// cheap_calls_touch does nothing with p: cgo looks at what it is.
void cheap_calls_touch(void *p);
