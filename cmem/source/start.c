//go:build ignore

// What is done before the constructors of the program run, and when it forks.

#define _GNU_SOURCE
#include "internal.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

static const char *off = "the program has not started";

const char *cmem_off(void) { return off; }

static const char *why_off(void) {
	if (cmem_late) // the environment is the program's by now, which may change it
		return "";
	const char *e = getenv("CHEAP_CMEM");
#ifdef SANITIZED
	return "the C code of the program is built with a sanitizer, which has a malloc of its own; leave -fsanitize out";
#endif
	if (!cmem_is_called() || dlsym(RTLD_NEXT, "malloc") == 0)
		return getauxval(AT_BASE) == 0 // where the dynamic linker is
			? "the program is linked statically, so no other malloc can be put in front of its own; link it without "
			  "-static, and run it where its C library is, such as in the image distroless/base"
			: "the program is linked with a malloc of its own";
#ifndef CMEM_SHARED
	if (dlsym(RTLD_DEFAULT, "malloc") != (void *)cmem_malloc)
		return "the process calls another malloc: the program that has loaded this library does not have the package";
#endif
	if (e && strcmp(e, "off") == 0)
		return "CHEAP_CMEM is off in the environment";
	return "";
}

// The thread that forks holds the lock meanwhile, so no other one is in the middle of a change, and
// there is one set of signals that it had blocked.
static sigset_t forking;
static void before_fork(void) {
	sigset_t old;
	cmem_lock(&old);
	forking = old;
}
static void in_parent(void) {
	sigset_t old = forking;
	cmem_unlock(&old);
}
static void in_child(void) {
	cmem_sample_enable(0); // another thread may have had a lock of the unwinder
	cmem_trace_end();
#ifdef CMEM_SHARED
	cmem_threads_child(cmem_shared_child());
#endif
	in_parent();
}

static void begin(void) {
	// 1. Find the next allocator, if no call of malloc has done so, whose operators new are called,
	// and which mmap is next.
	cmem_resolve();
	cmem_find_operators();
	cmem_mmap_start();
	// 2. Find out whether the package works here. The call by which it may do so needs cmem_none, so
	// no thread has a record yet.
	off = why_off();
	// 3. Open /proc/self/mem: the program may leave the folder with /proc behind. Find out how stacks are walked.
	cmem_system_start();
	cmem_memory_start();
	cmem_tables_start();
	cmem_walk_start();
#ifdef CMEM_SHARED
	// 4. Map the file over the variables that it has, which nothing but cmem_none has written.
	struct header *h = cmem_preload_open();
#endif
	// 5. From here on, threads have records, and blocks are sampled. pthread_atfork may allocate: a record that this
	// thread had by then would have a distance that was drawn while nothing was sampled.
	pthread_atfork(before_fork, in_parent, in_child);
	cmem_threads_start();
#ifndef CMEM_SHARED
	cmem_unseen_start();
	const char *e = getenv("CHEAP_CMEM");
	if (*off == 0 && e && strcmp(e, "ready") == 0)
		cmem_sample_wait(cmem_has_early()); // their frees need the filter
#endif
	cmem_sample_enable(*off == 0);
#ifdef CMEM_SHARED
	// 6. Tell the command, and begin to record.
	if (h)
		cmem_preload_begin(h, off);
#endif
}

__attribute__((constructor(101))) static void start(void) {
#ifdef CMEM_SHARED
	if (cmem_attach_load(begin))
		return;
#endif
	begin();
}
