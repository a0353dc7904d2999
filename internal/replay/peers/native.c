//go:build cgo && unix

#define _GNU_SOURCE // RTLD_DEFAULT and dladdr on Linux
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef __GLIBC__
#include <gnu/libc-version.h>
#endif

#include "native.h"

// The loop is that of the Go allocators: the same arrays, the same two bytes
// written. Every address is stored in memory that the compiler must assume to be
// read, so no call can be left out.
size_t cheap_replay(const struct cheap_op *ops, size_t n, uintptr_t *slots) {
	for (size_t i = 0; i < n; i++) {
		const struct cheap_op *op = &ops[i];
		// A size of 0 asks for 1 byte: the answer to 0 may be NULL, and
		// realloc may free the block.
		size_t size = op->size ? op->size : 1;
		void *ptr = NULL;
		switch (op->kind) {
		case 1:
			ptr = malloc(size);
			break;
		case 2:
			free((void *)slots[op->slot]);
			continue;
		case 3:
			ptr = calloc(1, size);
			break;
		case 4:
			ptr = realloc((void *)slots[op->slot], size);
			break;
		case 5: {
			size_t align = (size_t)1 << op->align_log;
			if (align < sizeof(void *)) {
				align = sizeof(void *);
			}
			// aligned_alloc wants a size that is a multiple of align.
			if (posix_memalign(&ptr, align, size) != 0) {
				ptr = NULL;
			}
			break;
		}
		}
		if (ptr == NULL) {
			return i;
		}
		slots[op->slot] = (uintptr_t)ptr;
		if (op->touch) {
			((volatile char *)ptr)[0] = (char)0xa5;
			((volatile char *)ptr)[op->size - 1] = (char)0xa5;
		}
	}
	return n;
}

const char *cheap_malloc_file(void) {
	Dl_info info;
	void *at = dlsym(RTLD_DEFAULT, "malloc");
	if (at != NULL && dladdr(at, &info) != 0 && info.dli_fname != NULL) {
		return info.dli_fname;
	}
	return "an unknown library";
}

const char *cheap_malloc_name(void) {
	static char name[256];
	const char *path = cheap_malloc_file();
	const char *slash = strrchr(path, '/');
	const char *file = slash != NULL ? slash + 1 : path;
#ifdef __GLIBC__
	if (strncmp(file, "libc.", 5) == 0 || strncmp(file, "libc-", 5) == 0) {
		snprintf(name, sizeof name, "glibc %s (%s)", gnu_get_libc_version(), file);
		return name;
	}
#endif
	snprintf(name, sizeof name, "%s", file);
	return name;
}
