//go:build cgo

#include <errno.h>
#include <string.h>

#include "ops.h"

// flagged looks at the flag, which another thread may set.
static inline int flagged(const uint64_t *run) {
	return __builtin_expect(*(const volatile uint64_t *)run != 0, 0);
}

// Four operations in a turn, so that most of them are not followed by a jump.
void cheap_calls_run(uint64_t *words, uint64_t from) {
	uint64_t *w = words + from;
	words[CHEAP_CALLS_REASON] = CHEAP_CALLS_END;
#define ONE                                                      \
	if (w[0] == 0 || flagged(words)) break;                      \
	w = ((cheap_calls_op *)(uintptr_t)w[0])(w, words)
	for (;;) {
		ONE;
		ONE;
		ONE;
		ONE;
	}
#undef ONE
	if (w[0] != 0) {
		words[CHEAP_CALLS_AT] = (uint64_t)(w - words);
		words[CHEAP_CALLS_REASON] = CHEAP_CALLS_CANCEL;
	}
}

void cheap_calls_run_quiet(uint64_t *words, uint64_t from) { cheap_calls_run(words, from); }

static uint64_t *ends(uint64_t *w, void *run, uint64_t reason) {
	uint64_t *words = run;
	words[CHEAP_CALLS_AT] = (uint64_t)(w - words);
	words[CHEAP_CALLS_REASON] = reason;
	return words + CHEAP_CALLS_NONE;
}

static inline int64_t low(uint64_t word) { return (int32_t)(uint32_t)word; }
static inline int64_t high(uint64_t word) { return (int32_t)(uint32_t)(word >> 32); }

#define SRC(w) ((w)[low((w)[1])])
#define OTHER(w) ((w) + high((w)[1]))

// An operation before a call goes on with what is behind it at once.
#define NEXT(w, run) return ((cheap_calls_op *)(uintptr_t)(w)[0])((w), (run))

uint64_t *cheap_calls_ref(uint64_t *w, void *run) {
	*OTHER(w) = SRC(w) + w[2];
	w += 3;
	NEXT(w, run);
}

uint64_t *cheap_calls_load(uint64_t *w, void *run) {
	*OTHER(w) = *(uintptr_t *)(uintptr_t)(SRC(w) + w[2]);
	w += 3;
	NEXT(w, run);
}

uint64_t *cheap_calls_load32(uint64_t *w, void *run) {
	*OTHER(w) = (uint64_t)(int64_t)*(int32_t *)(uintptr_t)(SRC(w) + w[2]);
	w += 3;
	NEXT(w, run);
}

uint64_t *cheap_calls_load_at(uint64_t *w, void *run) {
	*OTHER(w) = *(uintptr_t *)(uintptr_t)w[2];
	w += 3;
	NEXT(w, run);
}

uint64_t *cheap_calls_load32_at(uint64_t *w, void *run) {
	*OTHER(w) = (uint64_t)(int64_t)*(int32_t *)(uintptr_t)w[2];
	w += 3;
	NEXT(w, run);
}

#define CONDITION(name, type, compare)                                                       \
	uint64_t *cheap_calls_stop_##name(uint64_t *w, void *run) {                              \
		if ((type)SRC(w) compare (type)w[2]) return ends(w, run, CHEAP_CALLS_STOP);          \
		w += 3;                                                                              \
		if (w[0] == 0) return w;                                                             \
		NEXT(w, run);                                                                        \
	}                                                                                        \
	uint64_t *cheap_calls_skip_##name(uint64_t *w, void *run) {                              \
		(void)run;                                                                           \
		return (type)SRC(w) compare (type)w[2] ? OTHER(w) : w + 3;                           \
	}

CONDITION(eq, uint64_t, ==)
CONDITION(ne, uint64_t, !=)
CONDITION(lt, int64_t, <)
CONDITION(ge, int64_t, >=)

uint64_t *cheap_calls_errno(uint64_t *w, void *run) {
	(void)run;
	w[1] = (uint64_t)(int64_t)errno;
	return w + 2;
}

uint64_t *cheap_calls_clear_errno(uint64_t *w, void *run) {
	(void)run;
	errno = 0;
	return w + 1;
}

uint64_t *cheap_calls_begin(uint64_t *w, void *run) {
	(void)run;
	w[1] = 0;
	w[3] = 0;
	return w + 4;
}

uint64_t *cheap_calls_back(uint64_t *w, void *run) {
	uint64_t *begin = OTHER(w);
	if (++begin[1] == begin[2]) {
		return ends(begin + 4, run, CHEAP_CALLS_ROWS);
	}
	return begin + 4;
}

uint64_t *cheap_calls_done(uint64_t *w, void *run) {
	(void)run;
	OTHER(w)[3] = 1;
	return w + 2;
}

uint64_t *cheap_calls_store(uint64_t *w, void *run) {
	(void)run;
	((uint64_t *)(uintptr_t)w[2])[OTHER(w)[1]] = SRC(w);
	return w + 3;
}

uint64_t *cheap_calls_test(uint64_t *w, void *run) {
	(void)run;
	((uint8_t *)(uintptr_t)w[2])[OTHER(w)[1]] = SRC(w) == w[3];
	return w + 4;
}

uint64_t *cheap_calls_bytes(uint64_t *w, void *run) {
	int64_t n = (int64_t)*OTHER(w);
	uint64_t row = w[(int64_t)w[2]+1];
	uint64_t *ends_at = (uint64_t *)(uintptr_t)w[3], used = ends_at[row];
	const void *from = (const void *)(uintptr_t)SRC(w);
	if (n > 0 && from != NULL) {
		if ((uint64_t)n > w[5] - used) {
			((uint64_t *)run)[CHEAP_CALLS_NEED] = used + (uint64_t)n;
			return ends(w, run, CHEAP_CALLS_BYTES);
		}
		memcpy((char *)(uintptr_t)w[4] + used, from, (size_t)n);
		used += (uint64_t)n;
	}
	ends_at[row + 1] = used;
	return w + 6;
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

uint64_t *cheap_calls_address(uint64_t *w, void *run) {
	(void)run;
	uintptr_t f = (uintptr_t)w[2];
	unsigned integers = w[3] & 0xff, doubles = (w[3] >> 8) & 0xff, kind = (w[3] >> 16) & 0xff;
	uint64_t *a = w + 4, x = 0;
	if (doubles == 0 && kind != RESULT_DOUBLE) {
		switch (integers) {
		case 0: x = ((word (*)(void))f)(); break;
		case 1: x = ((word (*)(word))f)(a[0]); break;
		case 2: x = ((word (*)(word, word))f)(a[0], a[1]); break;
		case 3: x = ((word (*)(word, word, word))f)(a[0], a[1], a[2]); break;
		case 4: x = ((word (*)(word, word, word, word))f)(a[0], a[1], a[2], a[3]); break;
		case 5: x = ((word (*)(word, word, word, word, word))f)(a[0], a[1], a[2], a[3], a[4]); break;
		default: x = ((word (*)(INTEGERS))f)(a[0], a[1], a[2], a[3], a[4], a[5]); break;
		}
	} else {
		uint64_t i[6] = {0};
		double d[8] = {0};
		for (unsigned k = 0; k < integers; k++) i[k] = a[k];
		for (unsigned k = 0; k < doubles; k++) d[k] = as_double(a[integers + k]);
		if (kind == RESULT_DOUBLE) {
			double y = ((double (*)(INTEGERS, DOUBLES))f)(ALL);
			memcpy(&x, &y, sizeof x);
		} else {
			x = ((word (*)(INTEGERS, DOUBLES))f)(ALL);
		}
	}
	switch (kind) {
	case RESULT_INT32: x = (uint64_t)(int64_t)(int32_t)(uint32_t)x; break;
	case RESULT_UINT32: x = (uint32_t)x; break;
	}
	w[1] = x;
	return a + integers + doubles;
}

void cheap_calls_touch(void *p) { (void)p; }
