#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

// A kind of resource is what Go calls for one: make, number and destroy. A resource has
// the number that it was made with.
struct cxxtest_kind {
	const char *name;
	void *(*make)(int number);
	int (*number)(void *resource);
	void (*destroy)(void *resource);
	long deleters; // calls of a deleter of the tests for each resource
};

// cxxtest_kind_at returns the kind of an index, or NULL behind the last one.
const struct cxxtest_kind *cxxtest_kind_at(int i);

#define CXXTEST_POOL "cxxtest.Thing"

void *cxxtest_make(int kind, int number);
int cxxtest_number(int kind, void *resource);

// How many things there are, the sum of the numbers of those that were destroyed, and how
// often a deleter of the tests was called.
long cxxtest_alive(void);
long cxxtest_destroyed(void);
long cxxtest_deleted(void);

// The number of blocks that new has allocated and delete has not freed, in the program.
// While cxxtest_refuse is not 0, new has no memory for those who ask without exceptions.
long cxxtest_blocks(void);
extern int cxxtest_refuse;

// Resources of nothing: what give makes of an empty pointer, which is NULL.
void *cxxtest_empty(int i);

// cxxtest_share makes a shared resource that a shared_ptr of C++ shares with it, and
// returns the number of owners. cxxtest_unshare drops that shared_ptr.
void *cxxtest_share(int number, long *owners);
void cxxtest_unshare(void);
void cxxtest_destroy_shared(void *resource);

// Things that end the program when they are destroyed, of a pool "cxxtest.Broken", or are
// destroyed by a thing of that pool.
#define CXXTEST_BROKEN "cxxtest.Broken"
#define CXXTEST_INNER "cxxtest.Inner"

struct cxxtest_breaker {
	const char *name;
	void *(*make)(void);
	void (*destroy)(void *resource);
};

// cxxtest_breaker_at returns the breaker of an index, or NULL behind the last one.
const struct cxxtest_breaker *cxxtest_breaker_at(int i);

void *cxxtest_make_broken(int breaker);

// cxxtest_handler installs a terminate handler that prints a line, and calls the one
// before or aborts.
void cxxtest_handler(int calls_the_one_before);

// cxxtest_throw lets an exception out to Go.
void cxxtest_throw(void);

// For a benchmark: a number is deleted without cheap.hpp, and with it.
void cxxtest_delete_small(void *p);
void cxxtest_destroy_small(void *p);

#ifdef __cplusplus
}
#endif
