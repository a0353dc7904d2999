#define _GNU_SOURCE
#include "cases.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static void *volatile sink; // keeps the compiler from leaving a call out

static void *touched(void *p, size_t n) {
	if (!p || p == MAP_FAILED)
		_exit(3); // the limit of the case: nothing was planted
	memset(p, 1, n);
	return sink = p;
}

void *get(size_t n) { return touched(malloc(n), n); }
void *get_zeroed(size_t n) { return touched(calloc(n / 8, 8), n); }
void *get_aligned(size_t align, size_t n) {
	void *p = NULL;
	return posix_memalign(&p, align, n) ? touched(NULL, 0) : touched(p, n);
}
void *resized(void *p, size_t n) { return touched(realloc(p, n), n); }
void release(void *p) { free(p); }

void get_many(int count, size_t n) {
	while (count--)
		get(n);
}

// get_deep allocates below depth functions of C.
__attribute__((noinline)) void get_deep(int depth, size_t n) {
	volatile char frame[64];
	frame[0] = 0;
	if (depth)
		get_deep(depth - 1, n);
	else
		get(n);
	sink = (void *)frame;
}

void lock(void *p, size_t n) {
	if (mlock(p, n))
		_exit(3);
}

void *get_huge(size_t n) {
	void *p = NULL;
	if (posix_memalign(&p, 2 << 20, n) || madvise(p, n, MADV_HUGEPAGE))
		_exit(3);
	return touched(p, n);
}

void *map_anonymous(size_t n) { return touched(mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), n); }
void unmap(void *p, size_t n) { munmap(p, n); }

// map_many makes mappings of one page, which cannot be merged.
void map_many(int count) {
	while (count--) {
		void *p = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		touched(p, 4096);
		mprotect((char *)p + 4096, 4096, PROT_NONE);
	}
}

// map_reserved touches n bytes more of one reservation.
void map_reserved(size_t n) {
	static char *next;
	if (!next)
		next = mmap(NULL, 4UL << 30, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	touched(next, n);
	next += n;
}

void map_shared(size_t n) {
	int f = memfd_create("planted", 0);
	if (f < 0 || ftruncate(f, n))
		_exit(3);
	touched(mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_SHARED, f, 0), n);
	close(f);
}

// free_in_main leaves n bytes free in the arena of the calling thread, but for one block in 100.
void free_in_main(size_t n) {
	size_t blocks = n / 1000;
	void **p = malloc(blocks * sizeof *p);
	for (size_t i = 0; i < blocks; i++)
		p[i] = get(1000);
	for (size_t i = 0; i < blocks; i++)
		if (i % 100)
			free(p[i]);
	free(p);
}

static void *fragment(void *n) {
	free_in_main((size_t)n);
	pause();
	return NULL;
}

static void spawn(void *(*f)(void *), void *arg, size_t stack) {
	pthread_t t;
	pthread_attr_t a;
	pthread_attr_init(&a);
	pthread_attr_setstacksize(&a, stack);
	if (pthread_create(&t, &a, f, arg))
		_exit(3);
}

// free_in_arenas does so in each of some threads.
void free_in_arenas(int threads, size_t n) {
	while (threads--)
		spawn(fragment, (void *)n, 1 << 20);
}

static void *deep(void *arg) {
	char frame[1 << 20];
	touched(frame, sizeof frame);
	pause();
	return arg;
}

void stacks_of_threads(int threads) {
	while (threads--)
		spawn(deep, NULL, 2 << 20);
}

static void *thread_leaks(void *arg) {
	for (int i = 0; i < 500; i++) {
		get(100000);
		usleep(10000);
	}
	return arg;
}

static void *thread_churns(void *arg) {
	for (int i = 0; i < 500; i++) {
		for (int k = 1; k < 50; k++)
			free(get(k * 2000));
		usleep(10000);
	}
	return arg;
}

void leaking_threads(int n) {
	while (n--)
		spawn(thread_leaks, NULL, 1 << 20);
}

void busy_threads(int n) {
	while (n--)
		spawn(thread_churns, NULL, 1 << 20);
}

// in_child calls get in a child that never calls exec, count times, and waits for it.
void in_child(int count, size_t n, int pause) {
	pid_t child = fork();
	if (child == 0) {
		while (count--) {
			get(n);
			usleep(pause);
		}
		_exit(0);
	}
	waitpid(child, NULL, 0);
}

void call_back(int n) { goCalledBack(n); }
