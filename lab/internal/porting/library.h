// The library that the packages bind. Each of them compiles it.

#include <stddef.h>
#include <stdint.h>

// count_lines counts the lines of a text that ends with a zero.
int count_lines(const char *text);

// A shape is the library's own, from shape_new to shape_free.
typedef struct { int sides; } shape;
shape *shape_new(int sides);
void shape_free(void *shape);
int shape_sides(const shape *shape);
int shapes_alive(void);

// tally counts in h how often each byte occurs among n bytes.
typedef struct { uint32_t of[256]; } histogram;
void tally(histogram *h, const unsigned char *bytes, size_t n);

// sum_pair adds up what is in a pair.
typedef struct { int64_t a, b; } pair;
int64_t sum_pair(const pair *pair);
