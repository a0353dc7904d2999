//go:build ignore

// Memory that may not be mapped is read by /proc/self/mem. process_vm_readv would need no file, but a
// filter of system calls may end the process for it, and programs install filters at any time. So
// process_vm_readv is used only where /proc/self/mem cannot be opened, as in a process that is not
// dumpable, and the kernel says that there is no filter.

#define _GNU_SOURCE
#include "internal.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum { by_call = -1, unreadable = -2 }; // instead of a file

// /proc/self/mem, or what the program has opened since it closed that; and where it was.
static int mem = -1;
static unsigned long device, inode;
static int ended; // cmem_memory_end was called

// Not open, read and close of the C library: a thread can be cancelled in these.
static int open_file(const char *name) { return syscall(SYS_openat, AT_FDCWD, name, O_RDONLY | O_CLOEXEC); }

// open_mem returns /proc/self/mem, or -1. A program may close files that it does not know, and have
// another file at that number then. To read from that by mistake, between two calls here, does no harm:
// whatever is read is not trusted, and labels are followed only where frames were found (labels.c). The file may be opened late, when /proc is mounted or the process is
// dumpable again, and on another device than before.
static int open_mem(void) {
	struct stat s;
	int fd = __atomic_load_n(&mem, __ATOMIC_ACQUIRE);
	if (__atomic_load_n(&ended, __ATOMIC_SEQ_CST))
		return -1;
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
	if (__atomic_load_n(&ended, __ATOMIC_SEQ_CST)) { // meanwhile
		cmem_memory_end();
		return -1;
	}
	return opened;
}

void cmem_memory_start(void) { open_mem(); }

void cmem_memory_end(void) {
	struct stat s;
	__atomic_store_n(&ended, 1, __ATOMIC_SEQ_CST);
	int fd = __atomic_exchange_n(&mem, -1, __ATOMIC_SEQ_CST);
	if (fd >= 0 && fstat(fd, &s) == 0 && s.st_dev == device && s.st_ino == inode)
		syscall(SYS_close, fd);
}

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

int cmem_open_memory(void) {
	int fd = open_mem();
	if (fd < 0)
		return is_filtered() ? unreadable : by_call;
	return fd;
}

size_t cmem_read_memory(int fd, void *to, uintptr_t p, size_t n) {
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
