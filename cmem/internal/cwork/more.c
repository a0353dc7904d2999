//go:build cgo && linux

// C code that allocates in every way, and says what is wrong.
#define _GNU_SOURCE
#include <errno.h>
#if __has_include(<linux/filter.h>) // musl comes without
#include <linux/filter.h>
#include <linux/seccomp.h>
#endif
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../source/cmem.h"

#define WRONG(cond) \
	if (cond)       \
		return #cond;

static int filled(const char *p, size_t n, char c) {
	for (size_t i = 0; i < n; i++)
		if (p[i] != c)
			return 0;
	return 1;
}

// Of C23, where the C library or package cmem has them.
extern void free_sized(void *, size_t) __attribute__((weak)), free_aligned_sized(void *, size_t, size_t) __attribute__((weak));

// Of malloc, clang knows that it changes no variable, and so not errno; of a pointer it knows nothing.
static void *(*volatile any_malloc)(size_t) = malloc;
static void *(*volatile any_calloc)(size_t, size_t) = calloc;

// cwork_conform calls each function, and returns what is not as the C library's, or 0.
const char *cwork_conform(void) {
	volatile size_t huge = (size_t)-1 / 2 + 2;
	void (*volatile sized)(void *, size_t) = free_sized;
	void (*volatile aligned_sized)(void *, size_t, size_t) = free_aligned_sized;
	char *p, *q;
	void *v;
	for (size_t n = 1; n < 100000; n = n * 3 / 2 + 1) {
		WRONG(!(p = malloc(n)) || malloc_usable_size(p) < n)
		memset(p, 7, n);
		WRONG(!(q = realloc(p, 2 * n)) || !filled(q, n, 7))
		memset(q, 8, 2 * n);
		WRONG(!(p = realloc(q, n)) || !filled(p, n, 8))
		free(p);
		WRONG(!(p = calloc(n, 3)) || !filled(p, 3 * n, 0))
		WRONG(!(p = reallocarray(p, n, 4)) || !filled(p, 3 * n, 0))
		free(p);
		for (size_t align = 16; align <= 1 << 16; align *= 4) {
			WRONG(!(p = memalign(align, n)) || (uintptr_t)p % align)
			free(p);
			WRONG(!(p = aligned_alloc(align, (n + align - 1) / align * align)) || (uintptr_t)p % align)
			free(p);
			WRONG(posix_memalign(&v, align, n) || (uintptr_t)v % align)
			memset(v, 9, n);
			WRONG(!(p = realloc(v, n + 1000)) || !filled(p, n, 9))
			free(p);
		}
		WRONG(!(p = valloc(n)) || (uintptr_t)p % 4096)
		free(p);
#ifdef __GLIBC__
		if (!getenv("LD_PRELOAD")) { // jemalloc has none, and cannot free a block of the C library
			WRONG(!(p = pvalloc(n)) || (uintptr_t)p % 4096 || malloc_usable_size(p) < (n + 4095) / 4096 * 4096)
			free(p);
		}
#endif
		if (sized) {
			WRONG(!(p = malloc(n)))
			sized(p, n);
			WRONG(!(p = aligned_alloc(64, (n + 63) / 64 * 64)))
			aligned_sized(p, 64, (n + 63) / 64 * 64);
		}
	}
	errno = 0;
	WRONG(any_malloc(huge) || errno != ENOMEM)
	errno = 0;
	WRONG(any_calloc(huge, 4) || errno != ENOMEM)
	p = malloc(10);
	memset(p, 3, 10);
	errno = 0;
	WRONG(realloc(p, huge) || errno != ENOMEM || !filled(p, 10, 3))
	errno = 0;
	WRONG(reallocarray(p, huge, 16) || errno != ENOMEM || !filled(p, 10, 3))
	free(p);
	v = &p;
	WRONG(posix_memalign(&v, 24, 10) != EINVAL || v != &p)
	WRONG(posix_memalign(&v, 64, huge) != ENOMEM || v != &p)
	errno = 77;
	free(malloc(100));
	free(0);
	WRONG(errno != 77)
	WRONG(!(p = realloc(0, 50)))
	free(p);
	WRONG(!(p = malloc(0)))
	free(p);
	return 0;
}

// The functions on the way to a site: the bits of its number choose. No call is the last thing a
// function does, so each has a frame.
__attribute__((noinline)) void *cwork_site(unsigned site, size_t n);
__attribute__((noinline)) void *cwork_left(unsigned site, size_t n) {
	void *volatile p = cwork_site(site >> 1, n);
	return p;
}
__attribute__((noinline)) void *cwork_right(unsigned site, size_t n) {
	void *volatile p = cwork_site(site >> 1, n);
	return p;
}
void *cwork_site(unsigned site, size_t n) {
	void *volatile p = site <= 1 ? malloc(n) : site & 1 ? cwork_right(site, n) : cwork_left(site, n);
	return p;
}

// cwork_fork forks while threads allocate. The child allocates, and ends with 0.
static volatile int stop;
static void *busy(void *arg) {
	while (!stop) {
		void *volatile p = malloc(3000);
		free(p);
	}
	return 0;
}
int cwork_fork(int times) {
	pthread_t t[4];
	int bad = 0;
	stop = 0;
	for (int i = 0; i < 4; i++)
		pthread_create(&t[i], 0, busy, 0);
	for (int i = 0; i < times; i++) {
		pid_t pid = fork();
		if (pid == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL); // if it hangs, the tests end and so does it
			for (int k = 0; k < 2000; k++) {
				void *volatile p = malloc(5000);
				p = realloc(p, 9000);
				free(p);
			}
			_exit(0);
		}
		int status = 1;
		if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
			bad++;
	}
	stop = 1;
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], 0);
	return bad;
}

// cwork_fork_quiet forks when this thread has drawn the point of its next sample, and returns how
// many children have failed, or have taken a sample. Nothing is linked with package cmem where it is
// not imported.
__attribute__((weak)) void cmem_read(struct cmem_counts *to);
static void pairs(int n) {
	while (n-- > 0) {
		void *volatile p = malloc(5000);
		free(p);
	}
}
int cwork_fork_quiet(int times) {
	int bad = 0;
	for (int i = 0; i < times; i++) {
		pairs(10);
		pid_t pid = fork();
		if (pid == 0) {
			struct cmem_counts before, after;
			cmem_read(&before);
			pairs(2000);
			cmem_read(&after);
			_exit(after.samples != before.samples);
		}
		int status = 1;
		if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
			bad++;
	}
	return bad;
}

// cwork_ending starts threads whose keys have destructors that allocate and free, up to the last
// time that the C library calls them.
static pthread_key_t key;
static void again(void *p) {
	free(p);
	p = malloc(700);
	pthread_setspecific(key, p);
}
static void *ending(void *arg) {
	pthread_setspecific(key, malloc(700));
	return 0;
}
void cwork_ending(int threads) {
	static int made;
	if (!made++)
		pthread_key_create(&key, again);
	for (int i = 0; i < threads; i++) {
		pthread_t t;
		pthread_create(&t, 0, ending, 0);
		pthread_join(t, 0);
	}
}

// cwork_refuse has the system refuse process_vm_readv to all threads, or kill the process that calls
// it. It returns 0, or an error.
int cwork_refuse(int kill) {
#ifndef SECCOMP_SET_MODE_FILTER
	return ENOSYS;
#else
	struct sock_filter f[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, kill ? SECCOMP_RET_KILL_PROCESS : SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = {sizeof f / sizeof *f, f};
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
		return errno;
	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &prog) == 0 ? 0 : errno;
#endif
}
