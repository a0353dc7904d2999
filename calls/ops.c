//go:build cgo

#include <errno.h>
#include <string.h>

#include "ops.h"

// end ends a run at an operation.
static inline void end(struct cheap_calls_run *run, const uint64_t *w, uint64_t reason) {
	run->at = (uint64_t)(w - (const uint64_t *)(uintptr_t)run->words);
	run->reason = reason;
}

// cheap_calls_bytes makes CALLS_BYTES. It returns 0 if the bytes do not fit.
static int cheap_calls_bytes(struct cheap_calls_run *run, uint64_t *words, uint64_t *w) {
	const void *from = (const void *)(uintptr_t)words[w[1]];
	int64_t n = (int64_t)words[w[2]];
	uint64_t row = words[w[3] + 1];
	uint64_t *ends = (uint64_t *)(uintptr_t)w[4], used = ends[row];
	if (n > 0 && from != NULL) {
		if ((uint64_t)n > w[6] - used) {
			run->need = used + (uint64_t)n;
			return 0;
		}
		memcpy((char *)(uintptr_t)w[5] + used, from, (size_t)n);
		used += (uint64_t)n;
	}
	ends[row + 1] = used;
	return 1;
}

// The integers of a function are in other registers than its doubles, on the processors on
// which package calls has this operation, and a function ignores registers that it has no
// parameters for. Without doubles a call has exactly as many words as it was given.

typedef uint64_t word;

static inline double as_double(uint64_t word) {
	double d;
	memcpy(&d, &word, sizeof d);
	return d;
}

#define INTEGERS word, word, word, word, word, word
#define DOUBLES double, double, double, double, double, double, double, double
#define ALL i[0], i[1], i[2], i[3], i[4], i[5], d[0], d[1], d[2], d[3], d[4], d[5], d[6], d[7]

enum { RESULT_WORD, RESULT_INT32, RESULT_UINT32, RESULT_DOUBLE };

// cheap_calls_address makes CALLS_ADDRESS. It returns the next operation.
static uint64_t *cheap_calls_address(uint64_t *w) {
	unsigned integers = w[2] & 0xff, doubles = (w[2] >> 8) & 0xff, kind = (w[2] >> 16) & 0xff;
	uintptr_t f = (uintptr_t)w[3];
	uint64_t *a = w + CALLS_ADDRESS_WORDS, x = 0;
	if (doubles == 0 && kind != RESULT_DOUBLE) {
		switch (integers) {
		case 0: x = ((word(*)(void))f)(); break;
		case 1: x = ((word(*)(word))f)(a[0]); break;
		case 2: x = ((word(*)(word, word))f)(a[0], a[1]); break;
		case 3: x = ((word(*)(word, word, word))f)(a[0], a[1], a[2]); break;
		case 4: x = ((word(*)(word, word, word, word))f)(a[0], a[1], a[2], a[3]); break;
		case 5: x = ((word(*)(word, word, word, word, word))f)(a[0], a[1], a[2], a[3], a[4]); break;
		default: x = ((word(*)(INTEGERS))f)(a[0], a[1], a[2], a[3], a[4], a[5]); break;
		}
	} else {
		uint64_t i[6] = {0};
		double d[8] = {0};
		for (unsigned k = 0; k < integers; k++)
			i[k] = a[k];
		for (unsigned k = 0; k < doubles; k++)
			d[k] = as_double(a[integers + k]);
		if (kind == RESULT_DOUBLE) {
			double y = ((double (*)(INTEGERS, DOUBLES))f)(ALL);
			memcpy(&x, &y, sizeof x);
		} else {
			x = ((word(*)(INTEGERS, DOUBLES))f)(ALL);
		}
	}
	switch (kind) {
	case RESULT_INT32: x = (uint64_t)(int64_t)(int32_t)(uint32_t)x; break;
	case RESULT_UINT32: x = (uint32_t)x; break;
	}
	w[1] = x;
	return a + integers + doubles;
}

// flagged looks at the flag, which another thread may set.
static inline int flagged(const struct cheap_calls_run *run) {
	return __builtin_expect(*(const volatile uint64_t *)&run->flag != 0, 0);
}

// call makes a call of a function of callgen, and more of them, and returns the next operation.
static inline uint64_t *call(struct cheap_calls_run *run, uint64_t *w) {
	return ((const struct cheap_calls_op *)(uintptr_t)w[0])->call(w, run);
}

// run_all is a run of all operations. It is apart because a list of calls alone needs fewer
// registers.
static __attribute__((noinline)) void run_all(struct cheap_calls_run *run, uint64_t *words, uint64_t *w) {
	for (;;) {
		switch (w[0]) {
		case CALLS_END: end(run, w, CALLS_ENDED); return;
		case CALLS_STOP:
			if (words[w[1]] - w[2] <= w[3]) {
				end(run, w, CALLS_STOPPED);
				return;
			}
			w += CALLS_STOP_WORDS;
			break;
		case CALLS_SKIP: w = words[w[1]] - w[2] <= w[3] ? words + w[4] : w + CALLS_SKIP_WORDS; break;
		case CALLS_ERRNO:
			w[1] = (uint64_t)(int64_t)errno;
			w += CALLS_ERRNO_WORDS;
			break;
		case CALLS_CLEAR_ERRNO:
			errno = 0;
			w += CALLS_CLEAR_ERRNO_WORDS;
			break;
		case CALLS_REPEAT:
			w[1] = 0;
			w[3] = 0;
			w += CALLS_REPEAT_WORDS;
			break;
		case CALLS_ROW: {
			uint64_t *repeat = words + w[1];
			w = repeat + CALLS_REPEAT_WORDS;
			if (++repeat[1] == repeat[2]) {
				end(run, w, CALLS_ROWS);
				return;
			}
			if (flagged(run)) {
				end(run, w, CALLS_CANCELLED);
				return;
			}
			break;
		}
		case CALLS_NO_ROW:
			words[w[1] + 3] = 1;
			w += CALLS_NO_ROW_WORDS;
			break;
		case CALLS_STORE:
			((uint64_t *)(uintptr_t)w[2])[words[w[3] + 1]] = words[w[1]];
			w += CALLS_STORE_WORDS;
			break;
		case CALLS_IS:
			((uint8_t *)(uintptr_t)w[2])[words[w[3] + 1]] = words[w[1]] == w[4];
			w += CALLS_IS_WORDS;
			break;
		case CALLS_BYTES:
			if (!cheap_calls_bytes(run, words, w)) {
				end(run, w, CALLS_FULL);
				return;
			}
			w += CALLS_BYTES_WORDS;
			break;
		default:
			if (flagged(run)) {
				end(run, w, CALLS_CANCELLED);
				return;
			}
			w = w[0] == CALLS_ADDRESS ? cheap_calls_address(w) : call(run, w);
		}
	}
}

void cheap_calls_run(struct cheap_calls_run *run, uint64_t *words, uint64_t from) {
	uint64_t *w = words + from;
	run->words = (uint64_t)(uintptr_t)words;
	while (w[0] > CALLS_ADDRESS) {
		if (flagged(run)) {
			end(run, w, CALLS_CANCELLED);
			return;
		}
		w = call(run, w);
	}
	if (w[0] == CALLS_END) {
		run->reason = CALLS_ENDED;
		return;
	}
	run_all(run, words, w);
}

void cheap_calls_run_quiet(struct cheap_calls_run *run, uint64_t *words, uint64_t from) {
	cheap_calls_run(run, words, from);
}

void cheap_calls_touch(void *p) { (void)p; }
