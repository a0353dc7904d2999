#include <stddef.h>
#include <stdint.h>

// What the last functions were called with, from the first call after the last
// reset on. Calls beyond the room are counted only.
struct ctest_call {
	uintptr_t context, resource;
};

enum { ctest_room = 1024 };

extern struct ctest_call ctest_calls[ctest_room];
extern size_t ctest_count;

void ctest_destroy(void *resource);
void ctest_destroy_with(void *context, void *resource);
void ctest_destroy_into_go(void *resource);
void ctest_destroy_with_into_go(void *context, void *resource);

// ctest_construct numbers what it makes, from 1, in the two size_t of context:
// the number of the last one, and that of the last one there is to be.
void *ctest_construct(void *context);

// ctest_construct_into_go is the same, by a Go function.
void *ctest_construct_into_go(void *context);
