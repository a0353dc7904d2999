//go:build ignore

// What the other files take from the system: one lock, and memory. Both work inside of malloc, where
// a lock of the C library or a call of malloc would not: the lock is a futex, the memory mmap.

#define _GNU_SOURCE
#include "internal.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static int locked; // 0: free; 1: a thread has the lock; 2: and others may sleep until it is free

// Of linux/futex.h, which musl comes without: operations of this process.
enum { futex_wait = 128 | 0, futex_wake = 128 | 1 };

void cmem_lock(sigset_t *old) {
	sigset_t all;
	int was = 0;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, old);
	if (likely(__atomic_compare_exchange_n(&locked, &was, 1, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)))
		return;
	int saved = errno;
	while (__atomic_exchange_n(&locked, 2, __ATOMIC_ACQUIRE) != 0)
		syscall(SYS_futex, &locked, futex_wait, 2, 0);
	errno = saved;
}

void cmem_unlock(const sigset_t *old) {
	if (unlikely(__atomic_exchange_n(&locked, 0, __ATOMIC_RELEASE) == 2)) {
		int saved = errno;
		syscall(SYS_futex, &locked, futex_wake, 1);
		errno = saved;
	}
	pthread_sigmask(SIG_SETMASK, old, 0);
}

void *cmem_system_mmap(void *at, size_t n, int prot, int flags, int fd, int64_t offset) {
#if defined SYS_mmap2
	enum { unit = 4096 };
	if (offset % unit != 0 || offset < 0) {
		errno = EINVAL;
		return MAP_FAILED;
	}
	return (void *)syscall(SYS_mmap2, at, n, prot, flags, fd, (long)(offset / unit));
#elif defined __s390x__
	unsigned long all[] = {(uintptr_t)at, n, prot, flags, fd, offset};
	return (void *)syscall(SYS_mmap, all);
#else
	return (void *)syscall(SYS_mmap, at, n, prot, flags, fd, offset);
#endif
}

int cmem_system_munmap(void *at, size_t n) { return syscall(SYS_munmap, at, n); }

// The library that cheap record preloads has these in shared.c.
#ifndef CMEM_SHARED
void *cmem_map(size_t n) {
	void *p = cmem_system_mmap(0, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return p == MAP_FAILED ? 0 : p;
}

void cmem_unmap(void *p, size_t n) { cmem_system_munmap(p, n); }
#endif

int (*cmem_find_object)(void *, struct object *);
void cmem_system_start(void) { *(void **)&cmem_find_object = dlsym(RTLD_DEFAULT, "_dl_find_object"); }

void cmem_extent(const struct dl_phdr_info *info, uintptr_t *from, uintptr_t *to) {
	*from = UINTPTR_MAX;
	*to = 0;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		uintptr_t at = info->dlpi_addr + p->p_vaddr;
		if (p->p_type != PT_LOAD)
			continue;
		if (at < *from)
			*from = at;
		if (at + p->p_memsz > *to)
			*to = at + p->p_memsz;
	}
}
