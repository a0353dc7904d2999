//go:build ignore

// The frames of Go on a stack, by Go's frame pointers.
//
//	1. runtime.asmcgocall has called C. It has switched from the stack of the goroutine to that of the
//	   thread, and has saved there the goroutine and the depth of its stack.
//	2. The frame pointer at the switch is computed from these two, as asmcgocall does when C returns. A
//	   saved address would be wrong: the stack of the goroutine moves if C calls Go and that grows it.
//	3. Each frame pointer of Go leads to that of the caller, and the return address lies above it.
//	4. A callback from C runs on the same stack, above the frames of the call of C. Its outermost function
//	   is called by runtime.cgocallback, whose frame pointer is one of the thread's stack. A few words
//	   further the frames of that call begin: the return address there is that in runtime.cgocall.
//
// Where the frames of C do not lead to asmcgocall (C has too many, or no tables, or assembly of Go calls
// C, as that of purego does), the runtime's own records of the thread say where the goroutine is: the
// thread has the g of its own stack in thread-local storage, that has the m, and the m has the
// goroutine, which has the stack pointer at the switch.
//
// Where all these lie depends on the version of Go. A call that looks for its own frames finds it out when
// the program starts: cmem_probe; or the first calls that are sampled, in a program that was not built
// with this package. No Go code runs, no lock of Go's is taken, and what may not be mapped is read by a
// call of the system that fails then.

#define _GNU_SOURCE
#include "internal.h"

// The code of Go functions.
static uintptr_t text, etext;

void cmem_set_go_code(uintptr_t from, uintptr_t to) {
	__atomic_store_n(&etext, to, __ATOMIC_RELAXED);
	__atomic_store_n(&text, from, __ATOMIC_RELEASE);
}

int cmem_knows_go(void) { return __atomic_load_n(&text, __ATOMIC_RELAXED) != 0; }

int cmem_is_go(uintptr_t pc) {
	uintptr_t from = __atomic_load_n(&text, __ATOMIC_ACQUIRE);
	return from != 0 && pc >= from && pc < etext;
}

// The code of runtime.cgocall, which calls asmcgocall. It calls it at one place: learned is where that
// returns to, or 0 if nothing was learned yet.
static uintptr_t cgocall, cgocall_end, learned;

void cmem_set_cgocall(uintptr_t from, uintptr_t to) {
	cgocall = from;
	cgocall_end = to;
}

static size_t copy(struct gowalk *w, void *to, uintptr_t p, size_t n) { return cmem_read_memory(w->fd, to, p, n); }

enum { word = sizeof(uintptr_t), frames_at_once = 64 };

// frames follows the frame pointers from frame on, within the stack of w. Each points to that of the caller,
// above which the return address lies. Whatever lies there, only a higher address is followed, and an
// address that is not in Go code ends the stack. It returns how many frames there are.
static __attribute__((noinline)) uint32_t frames(struct gowalk *w, uintptr_t frame) {
	uintptr_t words[2048], base = 0;
	size_t have = 0;
	uint32_t n = 0;
	w->back = 0;
	for (int reads = 0; n < frames_at_once && w->n < w->most && frame % word == 0;) {
		if (frame < w->lo || frame >= w->hi) {
			w->back = frame;
			break;
		}
		if (frame < base || frame - base + 2 * word > have) {
			if (reads == 3)
				break;
			have = copy(w, words, frame, reads++ == 0 ? sizeof words / 4 : sizeof words);
			base = frame;
			if (have < 2 * word)
				break;
		}
		uintptr_t *at = &words[(frame - base) / word];
		if (!cmem_is_go(at[1]))
			break;
		w->pcs[w->n++] = at[1];
		w->last = frame;
		n++;
		if (at[0] <= frame && at[0] >= w->lo)
			break;
		frame = at[0];
	}
	return n;
}

int cmem_labels_at;

#ifdef CMEM_SHARED
void cmem_find_go(void) {
	uintptr_t code[4];
	int labels;
	if (cmem_knows_go() || !cmem_shared_go(code, &labels))
		return;
	if (labels > 0 && labels < most_searched * word) // the words of a record that stack_of has room for
		__atomic_store_n(&cmem_labels_at, labels, __ATOMIC_RELAXED);
	cmem_set_cgocall(code[2], code[3]);
	cmem_set_go_code(code[0], code[1]);
}
#endif

// stack_of sets the stack and the labels of w to those of a goroutine, whose record begins with the ends of the stack, as
// runtime/cgo knows as well. It returns 0 if this is no goroutine.
static int stack_of(struct gowalk *w, uintptr_t g) {
	uintptr_t words[most_searched];
	int labels = __atomic_load_n(&cmem_labels_at, __ATOMIC_RELAXED) / word;
	size_t n = (labels ? labels + 1 : 2) * word;
	if (g == 0 || g % word != 0 || copy(w, words, g, n) != n || words[0] == 0 || words[0] >= words[1])
		return 0;
	w->lo = words[0];
	w->hi = words[1];
	w->goroutine = g;
	w->labels = labels ? words[labels] : 0;
	return 1;
}

// A way to read what asmcgocall has saved: where the depth and the goroutine lie above the stack
// pointer, and what is to be added for the frame pointer.
struct way {
	int depth, g, add;
};

// way_of returns way k. On amd64 the depth lies below the goroutine, on arm64 above it, where the
// frame pointer is saved below the stack pointer.
static struct way way_of(int k) {
	int at = k / 2 * 8;
	if (k % 2 == 0)
		return (struct way){at, at + 8, 0};
	return (struct way){at + 8, at, -8};
}
enum { ways = 24 };

static struct way way;
static uintptr_t switch_pc; // where asmcgocall, or what it calls, goes on when C returns; 0 if no way is known

// saved_frame returns the frame pointer of the goroutine that has called C, whose stack pointer then
// was sp, or 0 if there is no goroutine.
static uintptr_t saved_frame(struct gowalk *w, uintptr_t sp, struct way k) {
	uintptr_t saved[2]; // the two that asmcgocall has saved lie side by side
	if (copy(w, saved, sp + (k.g < k.depth ? k.g : k.depth), sizeof saved) != sizeof saved)
		return 0;
	uintptr_t g = saved[k.g > k.depth], depth = saved[k.depth > k.g];
	if (!stack_of(w, g) || depth >= w->hi - w->lo)
		return 0;
	return w->hi - depth + k.add;
}

// frames_of_cgocall is frames if the first of them is that of runtime.cgocall, and else finds none. It looks at that
// before: frames needs 16 KiB of the stack, which a thread of C that has called Go once may not have.
static uint32_t frames_of_cgocall(struct gowalk *w, uintptr_t frame) {
	uintptr_t first[2], at = __atomic_load_n(&learned, __ATOMIC_ACQUIRE);
	if (frame == 0 || copy(w, first, frame, sizeof first) != sizeof first ||
		(at ? first[1] != at : first[1] < cgocall || first[1] >= cgocall_end))
		return 0;
	uint32_t before = w->n, n = frames(w, frame);
	if (n > 1)
		return n;
	w->n = before;
	w->back = 0;
	return 0;
}

// learn_way tries each way of finding the frames of Go where C has returned to asmcgocall with that stack
// pointer, and keeps the one that leads to frames.
static uint32_t learn_way(struct gowalk *w, uintptr_t pc, uintptr_t sp) {
	for (int k = 0; k < ways; k++) {
		uint32_t before = w->n, n = frames_of_cgocall(w, saved_frame(w, sp, way_of(k)));
		if (n > 0) {
			way = way_of(k); // another thread may write the same
			__atomic_store_n(&learned, w->pcs[before], __ATOMIC_RELEASE);
			__atomic_store_n(&switch_pc, pc, __ATOMIC_RELEASE);
			return n;
		}
	}
	return 0;
}

#if defined(__x86_64__)
static uintptr_t thread_pointer(void) {
	uintptr_t p;
	__asm__ volatile("mov %%fs:0, %0" : "=r"(p));
	return p;
}
#elif defined(__i386__)
static uintptr_t thread_pointer(void) {
	uintptr_t p;
	__asm__ volatile("mov %%gs:0, %0" : "=r"(p));
	return p;
}
#elif defined(__aarch64__)
static uintptr_t thread_pointer(void) { return (uintptr_t)__builtin_thread_pointer(); }
#else
static uintptr_t thread_pointer(void) { return 0; }
#endif

// Where the records of the runtime have what leads to the goroutine: g0, the g of the thread's stack, from
// the thread pointer on; its m; the goroutine that the m runs; the stack pointer of that; and what is to be
// added for the frame pointer. They are written once, before known is.
static struct {
	intptr_t g0;
	int m, goroutine, sp, add;
} place;
static int known;

// g0 returns the g of the thread's own stack, or what lies there. The place is one of the thread-local
// storage of the program, which each thread has.
static uintptr_t g0(void) { return *(volatile uintptr_t *)(thread_pointer() + place.g0); }

// running_frames finds the frames of the goroutine that has called C, by the records of the runtime.
static uint32_t running_frames(struct gowalk *w) {
	uintptr_t g = g0(), m, back, goroutine, sp;
	if (copy(w, &m, g + place.m, word) != word || copy(w, &back, m, word) != word || back != g ||
		copy(w, &goroutine, m + place.goroutine, word) != word || !stack_of(w, goroutine) ||
		copy(w, &sp, goroutine + place.sp, word) != word || sp < w->lo || sp >= w->hi ||
		copy(w, &w->stack, g + place.sp, word) != word)
		return 0;
	return frames_of_cgocall(w, sp + place.add);
}

// learn_goroutine looks at what may be the goroutine that a m runs, and finds where it has the stack pointer.
static uint32_t learn_goroutine(struct gowalk *w, uintptr_t goroutine) {
	uintptr_t words[most_searched];
	if (!stack_of(w, goroutine) || copy(w, words, goroutine, sizeof words) != sizeof words)
		return 0;
	for (int at = 2; at < most_searched; at++)
		for (int add = 0; add >= -(int)word && words[at] >= w->lo && words[at] < w->hi; add -= word) {
			uint32_t n = frames_of_cgocall(w, words[at] + add);
			if (n == 0)
				continue;
			place.sp = at * word;
			place.add = add;
			return n;
		}
	return 0;
}

// learn_m looks at what may be the g of the thread's own stack: its m knows it.
static uint32_t learn_m(struct gowalk *w, uintptr_t g) {
	uintptr_t words[most_searched], m[most_searched];
	if (copy(w, words, g, sizeof words) != sizeof words)
		return 0;
	for (int at = 2; at < most_searched; at++) {
		if (words[at] % word != 0 || copy(w, m, words[at], sizeof m) != sizeof m || m[0] != g)
			continue;
		for (int k = 1; k < most_searched; k++) {
			uint32_t n = m[k] == g ? 0 : learn_goroutine(w, m[k]);
			if (n == 0)
				continue;
			place.m = at * word;
			place.goroutine = k * word;
			return n;
		}
	}
	return 0;
}

// learn_places searches the thread-local storage for the g of the stack that this function runs on. That of the program
// lies beside the thread pointer: above it on arm64, else below it. The search begins there, because behind it may be
// the stack, which may have a copy of the g at a place that means nothing in another thread.
static __attribute__((noinline)) uint32_t learn_places(struct gowalk *w) {
	static int one; // thread at a time
	enum { part = 512, most = 4096 };
	uintptr_t tp = thread_pointer(), words[part / word], here = (uintptr_t)words, have = 0;
	uint32_t n = 0;
	if (tp == 0 || __atomic_exchange_n(&one, 1, __ATOMIC_ACQUIRE))
		return 0;
	for (intptr_t k = 0; k < most && !known && n == 0; k += word) {
#ifdef __aarch64__
		intptr_t at = k;
#else
		intptr_t at = -k - word;
#endif
		uintptr_t from = (tp + at) & ~(uintptr_t)(part - 1), g;
		if (from != have && copy(w, words, from, part) != part)
			break;
		have = from;
		g = words[(tp + at - from) / word];
		if (!stack_of(w, g) || here < w->lo || here >= w->hi || (n = learn_m(w, g)) == 0)
			continue;
		place.g0 = at;
		__atomic_store_n(&learned, w->pcs[w->n - n], __ATOMIC_RELEASE);
		__atomic_store_n(&known, 1, __ATOMIC_RELEASE);
	}
	__atomic_store_n(&one, 0, __ATOMIC_RELEASE);
	return n;
}

uint32_t cmem_go_frames(struct gowalk *w, uintptr_t pc, uintptr_t sp) {
	// How often the places were searched. The threads of C of a program that was not built with this package
	// may be many before it is found.
	static int tries;
	int most_tries = pc != 0 ? 1000 : 100;
	uintptr_t at = __atomic_load_n(&switch_pc, __ATOMIC_ACQUIRE);
	int have = __atomic_load_n(&known, __ATOMIC_ACQUIRE);
	if (__atomic_load_n(&text, __ATOMIC_ACQUIRE) == 0 || (pc == 0 && have && g0() == 0))
		return 0; // no Go, or a thread of C
	uint32_t n = 0;
	if (pc == 0 && !have && (cgocall == 0 || __atomic_load_n(&tries, __ATOMIC_RELAXED) >= most_tries))
		return 0;
	w->fd = cmem_open_memory();
	w->stack = sp;
	if (pc != 0 && pc == at)
		return frames(w, saved_frame(w, sp, way));
	if (pc != 0 && at == 0 && cgocall != 0)
		n = learn_way(w, pc, sp);
	if (n == 0 && have)
		return running_frames(w);
	if (!have && cgocall != 0 && __atomic_fetch_add(&tries, 1, __ATOMIC_RELAXED) < most_tries) {
		w->n -= n;
		uint32_t found = learn_places(w);
		if (found > 0)
			return found;
		w->n += n;
	}
	return n;
}

uint32_t cmem_go_outer(struct gowalk *w) {
	uintptr_t words[64], from = w->last + 2 * word;
	size_t most = w->hi - from < sizeof words ? w->hi - from : sizeof words;
	size_t have = copy(w, words, from, most) / word;
	for (size_t k = 0; k + 1 < have; k++) {
		if (words[k + 1] != __atomic_load_n(&learned, __ATOMIC_RELAXED))
			continue;
#ifdef __aarch64__
		// The frame of cgocallback's caller is among the words, and frame pointers of older calls may be.
		if (k < 6 || words[k - 6] != from + k * word)
			continue;
#endif
		return frames(w, from + k * word);
	}
	return 0;
}

uint32_t cmem_go_probe(struct gowalk *w, uintptr_t pc, uintptr_t sp) {
	w->fd = cmem_open_memory();
	uint32_t n = pc != 0 ? learn_way(w, pc, sp) : 0;
	w->n = 0;
	uint32_t found = learn_places(w);
	return found ? found : n;
}

void cmem_unprobe(void) {
	__atomic_store_n(&known, 0, __ATOMIC_RELEASE);
	__atomic_store_n(&switch_pc, 0, __ATOMIC_RELEASE);
	cgocall = 0;
}
