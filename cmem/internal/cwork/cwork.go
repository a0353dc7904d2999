//go:build cgo && linux

package cwork

/*
#cgo LDFLAGS: -lpthread -ldl
#include <malloc.h>
#include <pthread.h>
#include <stdlib.h>
#include <stdint.h>

static __attribute__((noinline)) void *cwork_alloc(size_t n) { void *volatile p = malloc(n); return p; }
static __attribute__((noinline)) void *cwork_deep(int depth, size_t n) {
	void *volatile p = depth == 0 ? cwork_alloc(n) : cwork_deep(depth - 1, n);
	return p;
}
static void *cwork_pointed(size_t *n) { return cwork_alloc(*n); }
static void *cwork_for_assembly(void) { return cwork_pointed; }
static void cwork_pairs(int n, size_t size) {
	for (int i = 0; i < n; i++) {
		void *volatile p = malloc(size);
		free(p);
	}
}
extern void __libc_free(void *) __attribute__((weak)); // of glibc
static int cwork_free_unseen(void *p) {
	if (!__libc_free) return 0;
	__libc_free(p);
	return 1;
}
struct job { int n; size_t size; };
static void *cwork_run(void *arg) {
	struct job *j = arg;
	cwork_pairs(j->n, j->size);
	return 0;
}
static void cwork_threads(int threads, int n, size_t size) {
	struct job j = {n, size};
	pthread_t t[64];
	for (int i = 0; i < threads; i++) pthread_create(&t[i], 0, cwork_run, &j);
	for (int i = 0; i < threads; i++) pthread_join(t[i], 0);
}
void *cwork_back(int depth, size_t n);
void *cwork_back_thread(int depth, size_t n);
void cwork_calls(size_t h);
const char *cwork_conform(void);
void *cwork_site(unsigned site, size_t n);
int cwork_fork(int times);
int cwork_fork_quiet(int times);
void cwork_ending(int threads);
int cwork_refuse(int kill);
int cwork_fork_masks(int times);
void cwork_says(int threads);
void cwork_detached(int threads);
void cwork_late(int threads);
int cwork_cancelled(void);
void *cwork_moved(size_t n);
void cwork_churn(int threads, int rounds, int calls);
int64_t cwork_used(int *jemalloc);
int cwork_priority(int times);
int cwork_sqlite(void);
int cwork_within(void);
void cwork_many(int threads);
int cwork_child(void);
*/
import "C"

import (
	"runtime/cgo"
	"unsafe"

	"github.com/cheapgo/cheap/cmem/internal/asmcall"
)

// Alloc allocates below that many frames of C.
func Alloc(depth, n int) unsafe.Pointer { return C.cwork_deep(C.int(depth), C.size_t(n)) }

// Back allocates in C that Go has called, that C has called, that Go has called.
func Back(depth, n int) unsafe.Pointer { return C.cwork_back(C.int(depth), C.size_t(n)) }

// BackThread does so in a thread of C.
func BackThread(depth, n int) unsafe.Pointer {
	return C.cwork_back_thread(C.int(depth), C.size_t(n))
}

// Assembly allocates in C that assembly of Go calls. It returns nil where there is none.
func Assembly(n int) unsafe.Pointer {
	size := C.size_t(n)
	return asmcall.Call(C.cwork_for_assembly(), unsafe.Pointer(&size))
}

// Call calls f by way of C.
func Call(f func()) {
	h := cgo.NewHandle(f)
	defer h.Delete()
	C.cwork_calls(C.size_t(h))
}

//export cworkCall
func cworkCall(h C.size_t) { cgo.Handle(h).Value().(func())() }

// Grow has the stack of the goroutine grow.
func Grow() { grow(200) }

//export cworkGo
func cworkGo(depth C.int, n C.size_t) unsafe.Pointer {
	if depth > 1 {
		return C.cwork_back(depth-1, n)
	}
	return C.cwork_deep(3, n)
}

func Free(p unsafe.Pointer) { C.free(p) }

// FreeUnseen frees a block without a call of free. It reports false if that cannot be done.
func FreeUnseen(p unsafe.Pointer) bool { return C.cwork_free_unseen(p) != 0 }

// Usable returns how many bytes the allocator has taken for a block.
func Usable(p unsafe.Pointer) int { return int(C.malloc_usable_size(p)) }

func Realloc(p unsafe.Pointer, n int) unsafe.Pointer { return C.realloc(p, C.size_t(n)) }

// Pairs runs n pairs of malloc and free.
func Pairs(n, size int) { C.cwork_pairs(C.int(n), C.size_t(size)) }

// Threads does so in threads of C.
func Threads(threads, n, size int) { C.cwork_threads(C.int(threads), C.int(n), C.size_t(size)) }

// Conform calls each function of the C library, and says what is wrong, or "".
func Conform() string { return C.GoString(C.cwork_conform()) }

// Site allocates n bytes below functions that the bits of site choose.
func Site(site, n int) unsafe.Pointer { return C.cwork_site(C.uint(site), C.size_t(n)) }

// Fork forks so often while threads allocate, and returns how many children failed.
func Fork(times int) int { return int(C.cwork_fork(C.int(times))) }

// ForkQuiet forks so often, and returns how many children have taken a sample, or failed.
func ForkQuiet(times int) int { return int(C.cwork_fork_quiet(C.int(times))) }

// ForkMasks has threads fork that have different signals blocked, and returns how often one had
// others blocked afterwards.
func ForkMasks(times int) int { return int(C.cwork_fork_masks(C.int(times))) }

// Ending starts threads whose destructors allocate and free to the last.
func Ending(threads int) { C.cwork_ending(C.int(threads)) }

// Refuse has the system refuse process_vm_readv from now on, or kill the process for it, and returns
// 0, or the number of an error.
func Refuse(kill bool) int {
	if kill {
		return int(C.cwork_refuse(1))
	}
	return int(C.cwork_refuse(0))
}

// Says, Detached and Late start threads that end in odd ways.
func Says(threads int)     { C.cwork_says(C.int(threads)) }
func Detached(threads int) { C.cwork_detached(C.int(threads)) }
func Late(threads int)     { C.cwork_late(C.int(threads)) }

// Churn has threads that come and go make and free blocks of all kinds, so many calls each. The
// last blocks stay.
func Churn(threads, rounds, calls int) { C.cwork_churn(C.int(threads), C.int(rounds), C.int(calls)) }

// Used returns the bytes in use as the allocator itself counts them: with jemalloc those of blocks,
// with glibc those of chunks, which have a header of eight bytes more.
func Used() (bytes int64, jemalloc bool) {
	var j C.int
	n := C.cwork_used(&j)
	return int64(n), j != 0
}

// Cancelled reports whether a thread was cancelled in malloc, with a lock held.
func Cancelled() bool { return C.cwork_cancelled() != 0 }

// Moved allocates in C after that has called Go code which has moved the stack of the goroutine.
func Moved(n int) unsafe.Pointer { return C.cwork_moved(C.size_t(n)) }

//export cworkMove
func cworkMove() { grow(200) }

//go:noinline
func grow(n int) byte {
	var room [1024]byte
	room[n%len(room)] = byte(n)
	if n > 0 {
		room[0] += grow(n - 1)
	}
	return room[n%len(room)]
}

// Priority has a real-time thread and one of the lowest priority allocate on one processor. It
// returns the milliseconds of processor time that the first has taken for so many blocks, or -1 if
// the system refuses such threads.
func Priority(times int) int { return int(C.cwork_priority(C.int(times))) }

// SQLite loads SQLite, has it add up the numbers from 1 to 100, and unloads it. It returns the sum,
// or -1 if it is not installed.
func SQLite() int { return int(C.cwork_sqlite()) }

// Within allocates in callbacks of the C library. It returns 0 if something is wrong.
func Within() int { return int(C.cwork_within()) }

// Many does so in many threads at the same time.
func Many(threads int) { C.cwork_many(C.int(threads)) }

// Child forks, and returns whether the child ended well.
func Child() bool { return C.cwork_child() == 0 }
