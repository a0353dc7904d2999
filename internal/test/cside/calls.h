#include <stddef.h>

// cside_add returns a + b. A caller that adds 1 to the result of its last call counts
// its calls.
int cside_add(int a, int b);

// cside_add_quiet is the same.
int cside_add_quiet(int a, int b);

// cside_mix returns the sum of its arguments, each by another factor.
double cside_mix(int a, int b, int c, int d, double e, double f, double g, double h);

// cside_malloc, cside_calloc and cside_free are those of the C library, for bytes: cgo checks a
// void pointer in each call.
char *cside_malloc(size_t size);
char *cside_calloc(size_t size);
void cside_free(char *block);
