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

// The status is 0 for resources up to 1000, -1 for those above 1 << 19, and else what
// they are above 1000.
int ctest_destroy_status(void *resource);

// Destructors that are of another type than void (void *).
size_t ctest_destroy_size(uint16_t *resource);
double ctest_destroy_double(struct ctest_call *resource);
char *ctest_destroy_pointer(const void *resource);
void ctest_destroy_with_into_go(void *context, void *resource);

// ctest_construct makes resources that are numbers, from 1. The two size_t of
// context are the number of the last one made, and the number after which it
// returns NULL.
void *ctest_construct(void *context);

// ctest_construct_into_go is the same, by a Go function.
void *ctest_construct_into_go(void *context);
