#include <stddef.h>
#include <stdint.h>

// The arguments of all calls since the last reset. Calls beyond the room are only
// counted.
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

// ctest_construct makes resources that are numbers, from 1. The two size_t of
// context are the number of the last one made, and the number after which it
// returns NULL.
void *ctest_construct(void *context);

// ctest_construct_into_go is the same, by a Go function.
void *ctest_construct_into_go(void *context);
