#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

// A kind is an operator new and an operator delete that goes with it.
struct cxxtest_kind {
	const char *name;
	void *(*make)(size_t n);
	void (*destroy)(void *p, size_t n);
	size_t align; // of the block, at least
	int throws;   // whether it throws where there is no memory, or returns NULL
};

// cxxtest_kind_at returns the kind of an index, or NULL behind the last one.
const struct cxxtest_kind *cxxtest_kind_at(int i);

// cxxtest_pairs makes times blocks of n bytes one after the other, writes to each, and destroys it.
// It returns what is wrong, or NULL.
const char *cxxtest_pairs(int i, int times, size_t n);

void *cxxtest_make(int i, size_t n);
void cxxtest_destroy(int i, void *p, size_t n);

// cxxtest_fails asks for memory that no system has, with a handler that takes itself away when it
// is called for the third time. It returns what is wrong, or NULL.
const char *cxxtest_fails(int i);

// cxxtest_handled asks for memory that there is only after the handler has given some back. It
// returns what is wrong, or NULL, and the block in *p.
const char *cxxtest_handled(int i, size_t n, void **p);

// cxxtest_throws allocates and throws an exception below depth functions, and catches it. It returns
// how many objects were destroyed on the way.
int cxxtest_throws(int depth);

// How often the operators of the program were called, which tag cxx_replaced adds: new and delete.
extern long cxxtest_news, cxxtest_deletes;
extern int cxxtest_replaced;

// cxxtest_library_called returns how often the operators new of a preloaded library were called.
long cxxtest_library_called(void);

#ifdef __cplusplus
}
#endif
