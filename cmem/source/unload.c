//go:build ignore

// dlclose, which is counted: when a library is unloaded another one may get its addresses, so a stack
// that was seen before must not be named by the library that lies there now.

#define _GNU_SOURCE
#include "internal.h"

#include <dlfcn.h>

in_shared uint32_t cmem_closed;

uint32_t cmem_unloaded(void) { return __atomic_load_n(&cmem_closed, __ATOMIC_SEQ_CST); }

EXPORT(int, dlclose, (void *), cmem_dlclose)

// The count changes before and after, so that a stack that is seen meanwhile differs from both.
int cmem_dlclose(void *handle) {
	static int (*next)(void *);
	int (*f)(void *) = __atomic_load_n(&next, __ATOMIC_RELAXED);
	if (!f) {
		*(void **)&f = dlsym(RTLD_NEXT, "dlclose");
		__atomic_store_n(&next, f, __ATOMIC_RELAXED);
	}
	__atomic_fetch_add(&cmem_closed, 1, __ATOMIC_SEQ_CST);
	int r = f ? f(handle) : -1;
	__atomic_fetch_add(&cmem_closed, 1, __ATOMIC_SEQ_CST);
	return r;
}
