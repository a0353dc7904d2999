#include <stddef.h>
#include <stdint.h>

// sum adds up n numbers, and keeps nothing.
int64_t sum(const int32_t *numbers, size_t n);

// longest returns the index of the longest string of argv, which ends with NULL.
int longest(const char *const *argv);

// From count_into on, event counts in *counter; NULL ends that.
typedef struct { int64_t events, bytes; } counter;
void count_into(counter *counter);
void event(size_t bytes);

// An image is the library's own, from image_new to image_free.
typedef struct { int width, height; unsigned char pixels[]; } image;
image *image_new(int width, int height);
void image_free(void *image);
int64_t images_alive(void);

// tally counts in h how often each byte occurs among n bytes.
typedef struct { uint32_t of[256]; } histogram;
void tally(histogram *h, const unsigned char *bytes, size_t n);

// A row has a name and its cells; print_row writes it to out, a buffer of size
// bytes, as snprintf would.
typedef struct { const char *name; const int32_t *cells; size_t n; } row;
int print_row(const row *row, char *out, size_t size);
