#include <stdint.h>

// What package calls records and C code runs. This is the one description: ops.c, record.go and the
// code that callgen writes follow it.
//
// A list is an array of words of 64 bits, with one operation behind the other. The first word of an
// operation says which it is: the address of a struct cheap_calls_op, for a call of a function for
// which callgen has written code, or else one of the numbers of the next enum, which are no
// addresses. index means the number of a word of the list; x is the word at an index, a result.
//
// A call of a function with n parameters, by callgen:
//
//	word        0               1       2 ...
//	            address of the  result  n arguments
//	            operation
//
//	of a method whose name ends in Args, with arguments that may be results:
//
//	word        0               1       2 ...     2 + n ...
//	            address of the  result  n Refs    n Words: the fields of an Arg
//	            operation
//
// An integer or a pointer is a word as it is, widened by its sign; a double is a word of its bits.
//
// CALLS_BYTES adds bytes to a buffer of that size; they are those of row i from ends[i] to
// ends[i + 1]. In CALLS_ADDRESS, counts has the number of integers, that of doubles, and the
// ResultType, in a byte each from the lowest on. Comparisons have no sign.
enum {
	CALLS_END,         // the list ends here
	CALLS_STOP,        // index of x, low, span: stop if x - low <= span
	CALLS_SKIP,        // index of x, low, span, index: go on at that index if x - low <= span
	CALLS_ERRNO,       // result: it becomes errno
	CALLS_CLEAR_ERRNO, // errno becomes 0
	CALLS_REPEAT,      // row, rows, done: a repetition begins, which a run ends after that number of rows
	CALLS_ROW,         // index of CALLS_REPEAT: a row is complete
	CALLS_NO_ROW,      // index of CALLS_REPEAT: there are no more rows
	CALLS_STORE,       // index of x, address of an array, index of CALLS_REPEAT: element row becomes x
	CALLS_IS,          // the same and value: element row, a byte, becomes x == value
	CALLS_BYTES,       // index of an address, index of a number, index of CALLS_REPEAT, ends, buffer, size
	CALLS_ADDRESS,     // result, counts, address, integers, doubles: calls the function at the address
};

// How many words an operation has, with its first.
enum {
	CALLS_STOP_WORDS = 4,
	CALLS_SKIP_WORDS = 5,
	CALLS_ERRNO_WORDS = 2,
	CALLS_CLEAR_ERRNO_WORDS = 1,
	CALLS_REPEAT_WORDS = 4,
	CALLS_ROW_WORDS = 2,
	CALLS_NO_ROW_WORDS = 2,
	CALLS_STORE_WORDS = 4,
	CALLS_IS_WORDS = 5,
	CALLS_BYTES_WORDS = 7,
	CALLS_ADDRESS_WORDS = 4, // and the integers and doubles
};

// What the field Ref of an Arg says of its Word. A Ref whose lowest bit is set is the generation of a
// result. C looks at the lowest three bits.
enum {
	CALLS_ARG_VALUE = 0, // the argument is the word
	CALLS_ARG_AT = 2,    // it is the word at this address
	CALLS_ARG_AT32 = 4,  // it is the int32 at this address
	CALLS_ARG_FLOAT = 8, // it is the word, a double
};

// The Word of a result: its index in the low 28 bits, one of these, and in the high half a number,
// with its sign, that is added to the result.
enum {
	CALLS_ARG_LOAD = 1 << 28,   // the argument is the word at the sum; else it is the sum
	CALLS_ARG_LOAD32 = 2 << 28, // it is the int32 at the sum
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

// A function that callgen has written. It gets the words of the operation and the run, makes the call,
// and perhaps those of the same function that follow, and returns the words of the operation after
// that. All have exactly the type of call, so a compiler that checks calls through pointers has
// nothing to report.
//
// That code is compiled in the package of the user, which cannot include this file. So it repeats
// (callgen/write.go) this struct, CALLS_STOP, the first two fields of cheap_calls_run, and the numbers of
// an Arg.
struct cheap_calls_op {
	uint64_t *(*call)(uint64_t *w, void *run);
	uint64_t words; // of the operation
	const char *name;
};

// cheap_calls_run makes the operations from the one at an index on, up to CALLS_END, or until the
// flag is set.
void cheap_calls_run(struct cheap_calls_run *run, uint64_t *words, uint64_t from);

// cheap_calls_run_quiet is the same, for lists whose functions do not call Go.
void cheap_calls_run_quiet(struct cheap_calls_run *run, uint64_t *words, uint64_t from);

// cheap_calls_touch does nothing with p: cgo looks at what it is.
void cheap_calls_touch(void *p);
