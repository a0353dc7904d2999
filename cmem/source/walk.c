//go:build ignore

// The stack of an allocation: first the frames of C, by the unwinder of the compiler
// (_Unwind_Backtrace), and then those of Go, by Go's frame pointers.
//
//	1. The unwinder walks the frames of C until a return address is in Go code: there
//	   runtime.asmcgocall has called C. It has switched from the stack of the goroutine to that of the
//	   thread, and has saved there the goroutine and the depth of its stack.
//	2. The frame pointer at the switch is computed from these two, as asmcgocall does when C returns. A
//	   saved address would be wrong: the stack of the goroutine moves if C calls Go and that grows it.
//	3. Each frame pointer of Go leads to that of the caller, and the return address lies above it.
//
// Where asmcgocall saves the two depends on the version of Go. A call that looks for its own frames
// finds it out when the program starts: cmem_probe, or learn in a program that was not built with this
// package. No Go code runs, no lock of Go's is taken, and what may not be mapped is read by a call of
// the system that fails then.

#define _GNU_SOURCE
#include "internal.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>
#include <unwind.h>

#ifndef __GLIBC__
// The package is off, and the unwinder of a system that has another C library as well cannot be
// linked. So the program need not have it.
#pragma weak _Unwind_Backtrace
#pragma weak _Unwind_GetIP
#pragma weak _Unwind_GetCFA
#endif

// The code of Go functions.
static uintptr_t text, etext;

void cmem_set_go_code(uintptr_t from, uintptr_t to) {
	__atomic_store_n(&etext, to, __ATOMIC_RELAXED);
	__atomic_store_n(&text, from, __ATOMIC_RELEASE);
}

static int is_go(uintptr_t pc) {
	uintptr_t from = __atomic_load_n(&text, __ATOMIC_ACQUIRE);
	return from != 0 && pc >= from && pc < etext;
}

// For a function without a table, libgcc checks whether its code is that of a signal handler's return:
// it reads at the return address, which may not be mapped, for example at the end of a stack that the
// program has made by itself. So in a walk of this package such a function gets the table ends, which
// says that the stack ends there. Unwinding for C++ exceptions finds the same tables as without this.
static __thread volatile int walking __attribute__((tls_model("initial-exec"))); // 2: the last function had no table

static int (*find_object)(void *, void *); // _dl_find_object, which takes no lock

#if defined(__GLIBC__) && (defined(__x86_64__) || defined(__aarch64__))
#ifdef __x86_64__
enum { stack_register = 7, return_register = 16 };
#else
enum { stack_register = 31, return_register = 30 };
#endif
struct table {
	uint32_t cie_length, cie;
	uint8_t cie_rest[16];
	uint32_t fde_length, fde;
	uint64_t from, size;
	uint8_t fde_rest[8];
} __attribute__((packed, aligned(8)));
static const struct table ends = {
	// Version 1; code by 1, data by -8; the frame begins at the stack pointer, nothing is returned to.
	20, 0, {1, 0, 1, 0x78, return_register, 0x0c, stack_register, 8, 0x07, return_register}, 28, 28, 0, 0, {0}};

struct bases {
	void *text, *data, *function;
};
#define EXPORTS_TABLE
EXPORT(const void *, _Unwind_Find_FDE, (void *, struct bases *), cmem_find_table)

// This brings the function of libgcc along where that is linked statically. Then it is called.
extern void __register_frame(void *);
__attribute__((used)) static void (*const bring)(void *) = __register_frame;

const void *cmem_find_table(void *pc, struct bases *b) {
	static const void *(*next)(void *, struct bases *);
	const void *(*f)(void *, struct bases *) = __atomic_load_n(&next, __ATOMIC_RELAXED);
	if (!f) {
		*(void **)&f = dlsym(RTLD_NEXT, "_Unwind_Find_FDE");
		__atomic_store_n(&next, f, __ATOMIC_RELAXED);
	}
	const void *table = f ? f(pc, b) : 0;
	if (!walking)
		return table;
	walking = table ? 1 : 2;
	if (table)
		return table;
	*b = (struct bases){0, 0, pc};
	return &ends.fde_length;
}
#endif

// is_code reports whether the address may be one of code: that of a function without a table lies
// in a file.
static int is_code(uintptr_t pc) {
	char object[256];
	return walking != 2 || !find_object || find_object((void *)(pc - 1), object) == 0;
}

struct walk {
	uintptr_t *pcs, caller;
	uint32_t n, skipped, seen;
	uintptr_t go, sp; // the address in Go code at which the frames of C end, and the stack pointer there
};

// most_frames is how many frames of C are walked to find those of Go.
enum { most_frames = 1024 };

static _Unwind_Reason_Code frame(struct _Unwind_Context *at, void *walk) {
	struct walk *w = walk;
	uintptr_t pc = _Unwind_GetIP(at);
	if (pc == 0)
		return _URC_NORMAL_STOP;
	if (is_go(pc)) {
		w->go = pc;
		w->sp = _Unwind_GetCFA(at);
		return _URC_NORMAL_STOP;
	}
	if (w->n == 0 && pc != w->caller && w->skipped < 8) { // of this package
		w->skipped++;
		return _URC_NO_REASON;
	}
	if (!is_code(pc))
		return _URC_NORMAL_STOP;
	if (w->n < most_c)
		w->pcs[w->n++] = pc;
	return ++w->seen < most_frames ? _URC_NO_REASON : _URC_NORMAL_STOP;
}

// Memory that may not be mapped is read by /proc/self/mem. process_vm_readv would need no file, but a
// filter of system calls may end the process for it, and programs install filters at any time. So
// process_vm_readv is used only where /proc/self/mem cannot be opened, as in a process that is not
// dumpable, and the kernel says that there is no filter.
enum { by_call = -1, unreadable = -2 }; // instead of a file

// /proc/self/mem, or what the program has opened since it closed that; and where it was.
static int mem = -1;
static unsigned long device, inode;

// Not open, read and close of the C library: a thread can be cancelled in these.
static int open_file(const char *name) { return syscall(SYS_openat, AT_FDCWD, name, O_RDONLY | O_CLOEXEC); }

// open_mem returns /proc/self/mem, or -1. A program may close files that it does not know, and have
// another file at that number then. To read from that by mistake, between two calls here, does no harm:
// whatever is read is not trusted. The file may be opened late, when /proc is mounted or the process is
// dumpable again, and on another device than before.
static int open_mem(void) {
	struct stat s;
	int fd = __atomic_load_n(&mem, __ATOMIC_ACQUIRE);
	if (fd >= 0 && fstat(fd, &s) == 0 && s.st_dev == __atomic_load_n(&device, __ATOMIC_RELAXED) &&
		s.st_ino == __atomic_load_n(&inode, __ATOMIC_RELAXED))
		return fd;
	int opened = open_file("/proc/self/mem");
	if (opened >= 0 && opened <= 2) { // the program has closed these, and will open its own there
		int other = fcntl(opened, F_DUPFD_CLOEXEC, 3);
		syscall(SYS_close, opened);
		opened = other;
	}
	if (opened < 0)
		return -1;
	if (fstat(opened, &s) != 0) { // else it would be opened each time
		syscall(SYS_close, opened);
		return -1;
	}
	__atomic_store_n(&device, s.st_dev, __ATOMIC_RELAXED);
	__atomic_store_n(&inode, s.st_ino, __ATOMIC_RELAXED);
	if (!__atomic_compare_exchange_n(&mem, &fd, opened, 0, __ATOMIC_RELEASE, __ATOMIC_ACQUIRE)) {
		syscall(SYS_close, opened); // another thread was faster
		return fd;
	}
	return opened;
}

void cmem_walk_start(void) { open_mem(); }

// is_filtered reports whether the process has a filter of system calls, or may have one.
static __attribute__((noinline)) int is_filtered(void) {
	char text[4096];
	int status = open_file("/proc/self/status");
	if (status < 0)
		return 1;
	long n = syscall(SYS_read, status, text, sizeof text - 1);
	syscall(SYS_close, status);
	text[n < 0 ? 0 : n] = 0;
	return strstr(text, "\nSeccomp:\t0") == 0;
}

// open_stack returns what read_stack reads from.
static int open_stack(void) {
	int fd = open_mem();
	if (fd < 0)
		return is_filtered() ? unreadable : by_call;
	return fd;
}

// read_stack copies up to n bytes of the stack at p, which are perhaps not mapped. It returns how
// many it has copied.
static size_t read_stack(int fd, void *to, uintptr_t p, size_t n) {
	if (fd >= 0) {
		long r = syscall(SYS_pread64, fd, to, n, p);
		return r < 0 ? 0 : r;
	}
	if (fd == unreadable)
		return 0;
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
	return r < 0 ? 0 : r;
}

// go_frames follows the frame pointers from frame on. Each points to that of the caller, above
// which the return address lies. Whatever lies there, only a higher address is followed, and an
// address that is not in Go code ends the stack.
static __attribute__((noinline)) uint32_t go_frames(int fd, uintptr_t *pcs, uint32_t most, uintptr_t frame) {
	uintptr_t words[2048], base = 0;
	size_t have = 0;
	uint32_t n = 0;
	for (int reads = 0; n < most && frame != 0 && frame % sizeof frame == 0;) {
		if (frame < base || frame - base + 16 > have) {
			if (reads == 3)
				break;
			have = read_stack(fd, words, frame, reads++ == 0 ? sizeof words / 4 : sizeof words);
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

// go_frame returns the frame pointer of the goroutine that has called C, whose stack pointer then
// was sp, or 0 if there is no goroutine.
static uintptr_t go_frame(int fd, uintptr_t sp, struct way w) {
	uintptr_t saved[2], stack[2]; // the two that asmcgocall has saved lie side by side
	if (read_stack(fd, saved, sp + (w.g < w.depth ? w.g : w.depth), sizeof saved) != sizeof saved)
		return 0;
	uintptr_t g = saved[w.g > w.depth], depth = saved[w.depth > w.g];
	if (g == 0)
		return 0;
	// The record of a goroutine begins with the ends of its stack, as runtime/cgo knows as well.
	if (read_stack(fd, stack, g, sizeof stack) != sizeof stack || stack[0] >= stack[1] || depth >= stack[1] - stack[0])
		return 0;
	return stack[1] - depth + w.add;
}

// The code of runtime.cgocall, which calls asmcgocall, if the way is yet to be found.
static uintptr_t cgocall, cgocall_end;

void cmem_set_cgocall(uintptr_t from, uintptr_t to) {
	cgocall = from;
	cgocall_end = to;
}

// learn tries each way of finding the frames of Go behind those of w, and keeps the one that leads to
// frames, the first of them in runtime.cgocall. It returns how many frames there are, 0 if no way does.
static uint32_t learn(int fd, const struct walk *w, uintptr_t *pcs) {
	for (int k = 0; k < ways; k++) {
		uint32_t n = go_frames(fd, pcs, most_go, go_frame(fd, w->sp, way_of(k)));
		if (n > 1 && pcs[0] >= cgocall && pcs[0] < cgocall_end) {
			way = way_of(k); // another thread may write the same
			__atomic_store_n(&switch_pc, w->go, __ATOMIC_RELEASE);
			return n;
		}
	}
	return 0;
}

void cmem_walk(uintptr_t pcs[most_c + most_go], uint32_t *c, uint32_t *go, void *caller) {
	struct walk w = {.pcs = pcs, .caller = (uintptr_t)caller};
	walking = 1;
	_Unwind_Backtrace(frame, &w);
	walking = 0;
	if (w.n == 0 && !is_go((uintptr_t)caller))
		pcs[w.n++] = (uintptr_t)caller; // the unwinder knows nothing of this function
	*c = w.n;
	*go = 0;
	uintptr_t pc = __atomic_load_n(&switch_pc, __ATOMIC_ACQUIRE);
	if (w.go == 0 || (w.go != pc && (pc != 0 || cgocall == 0)))
		return;
	int fd = open_stack();
	*go = w.go == pc ? go_frames(fd, pcs + w.n, most_go, go_frame(fd, w.sp, way)) : learn(fd, &w, pcs + w.n);
}

static uintptr_t probed_pc;

int cmem_probe(int k, uintptr_t pcs[cmem_probe_most]) {
	uintptr_t c[most_c];
	struct walk w = {.pcs = c};
	if (k >= ways)
		return -1;
	_Unwind_Backtrace(frame, &w);
	probed_pc = w.go;
	if (w.go == 0)
		return 0;
	int fd = open_stack();
	return go_frames(fd, pcs, cmem_probe_most, go_frame(fd, w.sp, way_of(k)));
}

void cmem_probed(int k) {
	way = way_of(k);
	__atomic_store_n(&switch_pc, probed_pc, __ATOMIC_RELEASE);
}

// The file that has the unwinder.
static uintptr_t unwinder, unwinder_end;

// The files that were mapped when the program began. Those beyond most_files count as loaded later.
enum { most_files = 256 };
static struct { uintptr_t from, to; } files[most_files];
static int num_files;

static int file(struct dl_phdr_info *info, size_t size, void *arg) {
	uintptr_t from, to;
	cmem_extent(info, &from, &to);
	if (num_files < most_files) {
		files[num_files].from = from;
		files[num_files++].to = to;
	}
	return 0;
}

int cmem_initial(uintptr_t pc) {
	for (int i = 0; i < num_files; i++)
		if (pc >= files[i].from && pc < files[i].to)
			return 1;
	return 0;
}

int cmem_unwinder(void) {
	uintptr_t at = (uintptr_t)dlsym(RTLD_DEFAULT, "_Unwind_Backtrace"), here = (uintptr_t)cmem_unwinder;
	if (num_files == 0)
		dl_iterate_phdr(file, 0);
	if (!at)
		at = (uintptr_t)_Unwind_Backtrace;
	*(void **)&find_object = dlsym(RTLD_DEFAULT, "_dl_find_object");
#ifdef EXPORTS_TABLE
	cmem_find_table((void *)&ends, &(struct bases){0}); // finds the next one, before it is needed
#endif
	for (int i = 0; i < num_files; i++)
		if (at >= files[i].from && at < files[i].to) {
			unwinder = files[i].from;
			unwinder_end = files[i].to;
			if (here >= unwinder && here < unwinder_end) {
				unwinder = unwinder_end = 0;
				return __GNUC__ >= 13;
			}
			return 1;
		}
	return 0;
}

int cmem_unwinds(void *caller) { return (uintptr_t)caller >= unwinder && (uintptr_t)caller < unwinder_end; }
