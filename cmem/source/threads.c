//go:build ignore

// The counts of each thread (struct thread), which the thread alone writes, so that a call of malloc
// needs no atomic operation. The first call of a thread gives it a record, and the destructor of a
// pthread key gives the record to the next thread that begins. Readers add all records up.

#define _GNU_SOURCE
#include "internal.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

static const uint8_t slow[1 << filter_bits] = {[0 ...(1 << filter_bits) - 1] = 255};
in_shared struct thread cmem_none = {.filter = slow};
__thread struct thread *cmem_mine tls = &cmem_none;
uint8_t cmem_filter[1 << filter_bits];
#ifndef CMEM_SHARED
struct waits cmem_waits;
#endif

in_shared static struct thread *all_threads, *free_threads; // the lock is held to write

// ended says that the destructor of the thread's key has run. The C library still frees, and other
// destructors may allocate, but no destructor would give a record back.
static __thread volatile int ended tls;

static pthread_key_t key;
static int have_key;

static void release(struct thread *t) {
	sigset_t old;
	cmem_lock(&old);
	t->free = free_threads;
	free_threads = t;
	cmem_unlock(&old);
}

// end is the destructor of the key.
static void end(void *mine) {
	ended = 1;
	cmem_mine = &cmem_none;
	release(mine);
}

void cmem_threads_start(void) {
	cmem_filter[filter_of(0)] = 255;
	have_key = pthread_key_create(&key, end) == 0;
}

void cmem_set_left(struct thread *t, uint64_t left) {
	uint32_t n = t->setting;
	__atomic_store_n(&t->setting, n + 1, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_RELEASE);
	__atomic_store_n(&t->drawn, t->drawn + (left - t->left), __ATOMIC_RELAXED);
	__atomic_store_n(&t->left, left, __ATOMIC_RELAXED);
	__atomic_store_n(&t->setting, n + 2, __ATOMIC_RELEASE);
}

// bytes_of returns the bytes that a thread has allocated; or those that it had when they were read
// last, if it was interrupted in cmem_set_left. The caller holds the lock, and does not wait for it.
static uint64_t bytes_of(struct thread *t) {
	for (int tries = 0; tries < 100; tries++) {
		uint32_t n = __atomic_load_n(&t->setting, __ATOMIC_ACQUIRE);
		uint64_t bytes = __atomic_load_n(&t->drawn, __ATOMIC_RELAXED) - __atomic_load_n(&t->left, __ATOMIC_RELAXED);
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		if (n % 2 == 0 && __atomic_load_n(&t->setting, __ATOMIC_RELAXED) == n) {
			t->seen = bytes;
			break;
		}
	}
	return t->seen;
}

struct thread *cmem_take_record(void) {
	sigset_t old;
	struct thread *t;
	if (!have_key || ended)
		return &cmem_none;
	cmem_lock(&old);
	if (!free_threads) {
		enum { bytes = 16 << 10 };
		struct thread *more = cmem_map(bytes);
		for (size_t i = 0; more && i < bytes / sizeof *more; i++) {
			more[i].filter = cmem_filter;
			more[i].free = free_threads;
			free_threads = &more[i];
			more[i].all = all_threads;
			all_threads = &more[i];
		}
	}
	if ((t = free_threads) != 0)
		free_threads = t->free;
	cmem_unlock(&old);
	if (!t)
		return &cmem_none;
	if (t->random == 0) {
		// Not getrandom of the C library: it is a place where a thread can be cancelled.
		syscall(SYS_getrandom, &t->random, sizeof t->random, 1 /* do not wait */);
		t->random ^= (uintptr_t)t * 2685821657736338717u;
		t->random += t->random == 0;
	}
	cmem_set_left(t, 0); // what the thread before has not used
	t->rate = 0;
	if (pthread_setspecific(key, t) != 0) {
		release(t);
		return &cmem_none;
	}
	return cmem_mine = t;
}

void cmem_read_threads(struct cmem_counts *to) {
	for (struct thread *t = all_threads;; t = t->all) {
		if (!t)
			t = &cmem_none;
		to->records++;
		to->mallocs += __atomic_load_n(&t->mallocs, __ATOMIC_RELAXED);
		to->frees += __atomic_load_n(&t->frees, __ATOMIC_RELAXED);
		to->held += __atomic_load_n(&t->held, __ATOMIC_RELAXED);
		to->bytes += bytes_of(t);
		if (t == &cmem_none)
			break;
	}
	for (struct thread *t = free_threads; t; t = t->free)
		to->records--;
}

#ifdef CMEM_SHARED
void cmem_threads_child(int fresh) {
	for (size_t i = 0; fresh && i < sizeof cmem_filter; i++)
		if (cmem_filter[i] != 255)
			cmem_filter[i] = 0;
	cmem_mine = &cmem_none;
	pthread_setspecific(key, 0); // the record is the parent's
}

void cmem_thread_fields(struct fields *f) {
	f->threads = (uintptr_t)&all_threads;
	f->none = (uintptr_t)&cmem_none;
	f->thread_all = offsetof(struct thread, all);
	f->thread_left = offsetof(struct thread, left);
	f->thread_drawn = offsetof(struct thread, drawn);
	f->thread_mallocs = offsetof(struct thread, mallocs);
	f->thread_frees = offsetof(struct thread, frees);
}
#endif
