#include <stdatomic.h>
#include <stdint.h>

// An object calls a function with user data. Objects are never given back to malloc, so that a
// test may look at one that was freed.
typedef struct ctest_object {
	_Atomic int alive;
	_Atomic(void *) data; // NULL if there is no function
	struct ctest_object *next; // the object that was freed before
} ctest_object;

// ctest_new returns an object, or NULL if there is no memory.
ctest_object *ctest_new(void);

// ctest_free calls the function, and frees the object.
void ctest_free(void *object);

// ctest_alive returns the number of objects that are not freed.
int ctest_alive(void);

// ctest_connect makes data the user data of the object's function.
void ctest_connect(ctest_object *object, void *data);

// ctest_emit calls the function, and returns its result, or -2 if there is none.
int ctest_emit(ctest_object *object, int n);

// ctest_repeat calls the function n times; by a cgo.Handle if handle is not 0.
void ctest_repeat(void *data, uintptr_t handle, long n);

// Threads of C that call functions with the data in places, until ctest_stop. They return the
// number of their calls.
enum { ctest_places = 64 };
void ctest_publish(int place, void *data);
int ctest_start(int threads);
long ctest_calls(void);
void ctest_stop(void);

// ctest_data returns the user data of the object's function.
void *ctest_data(ctest_object *object);
