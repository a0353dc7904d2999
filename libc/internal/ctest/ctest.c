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

int ctest_destroy_status(void *resource) {
	ctest_destroy(resource);
	uintptr_t n = (uintptr_t)resource;
	return n > 1 << 19 ? -1 : n > 1000 ? (int)n - 1000 : 0;
}

size_t ctest_destroy_size(uint16_t *resource) {
	ctest_destroy(resource);
	return 1;
}

double ctest_destroy_double(struct ctest_call *resource) {
	ctest_destroy(resource);
	return 0.5;
}

char *ctest_destroy_pointer(const void *resource) {
	ctest_destroy((void *)resource);
	return (char *)resource;
}

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
