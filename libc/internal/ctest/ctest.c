//go:build cgo

#include "ctest.h"

struct ctest_call ctest_calls[ctest_room];
size_t ctest_count;

void ctest_destroy_with(void *context, void *resource) {
	if (ctest_count < ctest_room) {
		ctest_calls[ctest_count] = (struct ctest_call){(uintptr_t)context, (uintptr_t)resource};
	}
	ctest_count++;
}

void ctest_destroy(void *resource) { ctest_destroy_with(NULL, resource); }

extern void ctestGoDestroy(uintptr_t context, uintptr_t resource);

void ctest_destroy_into_go(void *resource) { ctestGoDestroy(0, (uintptr_t)resource); }

void ctest_destroy_with_into_go(void *context, void *resource) {
	ctestGoDestroy((uintptr_t)context, (uintptr_t)resource);
}

void *ctest_construct(void *context) {
	size_t *numbers = context;
	return numbers[0] < numbers[1] ? (void *)(uintptr_t)++numbers[0] : NULL;
}

extern uintptr_t ctestGoConstruct(uintptr_t context);

void *ctest_construct_into_go(void *context) { return (void *)ctestGoConstruct((uintptr_t)context); }
