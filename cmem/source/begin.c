//go:build ignore

// pthread_create, so that the stacks of a thread that C has made go on with the one that has made it.

#define _GNU_SOURCE
#include "internal.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>

// thrd_create came with glibc 2.28.
#ifndef __GLIBC__
#define HAS_THREADS 1
#else
#define HAS_THREADS __GLIBC_PREREQ(2, 28)
#endif

#if !HAS_THREADS
int cmem_pthread_create(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
#else
EXPORT(int, pthread_create, (pthread_t *, const pthread_attr_t *, void *(*)(void *), void *), cmem_pthread_create)
#endif

// In a program that is linked statically, pthread_create is the function of this file, and that of the C library has a
// name for itself. thrd_create brings it along.
#ifdef __GLIBC__
#define __pthread_create __pthread_create_2_1 // before 2.34 the shorter one is nowhere defined
#endif
extern int __pthread_create(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *) __attribute__((weak));
#if !defined CMEM_SHARED && HAS_THREADS
extern int thrd_create();
__attribute__((used)) static int (*const bring)() = thrd_create;
#endif

struct begin {
	void *(*f)(void *);
	void *arg;
	const struct cmem_stack *maker;
};

// begun has the function that the thread began with, and its argument. Package resident finds it by the mark, in the
// end of the stack, where the C library has the variables of a thread.
static __thread volatile struct {
	uint64_t mark;
	void *(*f)(void *);
	void *arg;
} begun tls;

// begin_thread is called in the new thread. It has no frame when it calls f.
static void *begin_thread(void *p) {
	struct begin b = *(struct begin *)p;
	cmem_next.free(p);
	cmem_maker = b.maker;
	begun.mark = 0x6d656d2062656775;
	begun.f = b.f;
	begun.arg = b.arg;
	return b.f(b.arg);
}

int cmem_pthread_create(pthread_t *to, const pthread_attr_t *attr, void *(*f)(void *), void *arg) {
	static int (*next)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
	int (*create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *) =
		__atomic_load_n(&next, __ATOMIC_RELAXED);
	if (!create) {
		*(void **)&create = dlsym(RTLD_NEXT, "pthread_create");
		if (!create)
			create = __pthread_create;
		if (!create)
			return EAGAIN; // the program is linked without threads
		__atomic_store_n(&next, create, __ATOMIC_RELAXED);
	}
	const struct cmem_stack *maker = cmem_note_thread(__builtin_return_address(0));
	struct begin *b = maker ? cmem_next.malloc(sizeof *b) : 0;
	if (!b)
		return create(to, attr, f, arg);
	*b = (struct begin){f, arg, maker};
	int r = create(to, attr, begin_thread, b);
	if (r != 0)
		cmem_next.free(b);
	return r;
}
