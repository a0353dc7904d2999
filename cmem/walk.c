//go:build cgo && linux && !cheap_nocmem && !asan && !msan

// The stack of an allocation: first the frames of C, by the unwinder of the compiler, and then
// those of Go, by Go's frame pointers.
//
// The frames of C end where Go code has called C, in runtime.asmcgocall. There the unwinder has
// restored all registers that a function keeps for its caller, and the frame pointer is that of
// runtime.cgocall, on the stack of the goroutine. The stack does not move while the goroutine is
// in a call of C. No Go code runs, and no lock of Go's is taken.

#define _GNU_SOURCE
#include "internal.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>
#include <unwind.h>

// The code of Go functions.
static uintptr_t text, etext;

void cmem_walk_start(uintptr_t from, uintptr_t to) {
	__atomic_store_n(&etext, to, __ATOMIC_RELAXED);
	__atomic_store_n(&text, from, __ATOMIC_RELEASE);
}

static int is_go(uintptr_t pc) {
	uintptr_t from = __atomic_load_n(&text, __ATOMIC_ACQUIRE);
	return from != 0 && pc >= from && pc < etext;
}

struct walk {
	uintptr_t *pcs, caller;
	uint32_t n, skipped;
	uintptr_t go, frame; // the address in Go code at which the frames of C end, and the frame pointer there
};

#if defined(__x86_64__)
enum { frame_register = 6 };
#elif defined(__aarch64__)
enum { frame_register = 29 };
#else
enum { frame_register = -1 };
#endif

static _Unwind_Reason_Code frame(struct _Unwind_Context *at, void *walk) {
	struct walk *w = walk;
	uintptr_t pc = _Unwind_GetIP(at);
	if (pc == 0)
		return _URC_NORMAL_STOP;
	if (is_go(pc)) {
		w->go = pc;
		if (frame_register >= 0)
			w->frame = _Unwind_GetGR(at, frame_register);
		return _URC_NORMAL_STOP;
	}
	if (w->n == 0 && pc != w->caller && w->skipped < 8) { // of this package
		w->skipped++;
		return _URC_NO_REASON;
	}
	if (w->n == most_c)
		return _URC_NORMAL_STOP;
	w->pcs[w->n++] = pc;
	return _URC_NO_REASON;
}

// read_stack copies up to n bytes of the stack at p, which are perhaps not mapped. It returns how
// many it has copied.
static size_t read_stack(void *to, uintptr_t p, size_t n) {
	enum { page = 4096, most = 9 };
	struct iovec here = {to, n}, there[most];
	int k = 0;
	for (uintptr_t at = p; at < p + n && k < most; k++) { // an element is copied whole, or not
		uintptr_t end = (at | (page - 1)) + 1;
		if (end > p + n)
			end = p + n;
		there[k] = (struct iovec){(void *)at, end - at};
		at = end;
	}
	ssize_t r = process_vm_readv(getpid(), &here, 1, there, k, 0);
	if (r < 0 && (errno == EPERM || errno == ENOSYS || errno == EACCES)) { // a filter of system calls
		static int mem = -1;
		int fd = __atomic_load_n(&mem, __ATOMIC_RELAXED);
		if (fd == -1) {
			fd = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
			__atomic_store_n(&mem, fd < 0 ? -2 : fd, __ATOMIC_RELAXED);
		}
		r = fd < 0 ? -1 : pread(fd, to, n, p);
	}
	return r < 0 ? 0 : r;
}

// go_frames follows the frame pointers from frame on. Each points to that of the caller, above
// which the return address lies. Whatever lies there, only a higher address is followed, and an
// address that is not in Go code ends the stack.
static uint32_t go_frames(uintptr_t *pcs, uint32_t most, uintptr_t frame) {
	uintptr_t words[2048], base = 0;
	size_t have = 0;
	uint32_t n = 0;
	for (int reads = 0; n < most && frame != 0 && frame % sizeof frame == 0;) {
		if (frame < base || frame - base + 16 > have) {
			if (reads == 3)
				break;
			have = read_stack(words, frame, reads++ == 0 ? sizeof words / 4 : sizeof words);
			base = frame;
			if (have < 16)
				break;
		}
		uintptr_t *at = &words[(frame - base) / sizeof frame];
		if (!is_go(at[1]))
			break;
		pcs[n++] = at[1];
		if (at[0] <= frame)
			break;
		frame = at[0];
	}
	return n;
}

void cmem_walk(uintptr_t pcs[most_c + most_go], uint32_t *c, uint32_t *go, void *caller) {
	struct walk w = {.pcs = pcs, .caller = (uintptr_t)caller};
	if (is_go((uintptr_t)caller)) // C code that Go has called, and that was left by a jump
		w.skipped = 8;
	_Unwind_Backtrace(frame, &w);
	if (w.n == 0 && !is_go((uintptr_t)caller))
		pcs[w.n++] = (uintptr_t)caller; // the unwinder knows nothing of this function
	*c = w.n;
	*go = 0;
	if (w.go != 0 && w.frame != 0)
		*go = go_frames(pcs + w.n, most_go, w.frame);
}

void cmem_start(uintptr_t from, uintptr_t to) { cmem_walk_start(from, to); }
