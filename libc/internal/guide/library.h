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
unsigned char *image_line(image *image, int y); // valid as long as the image

// tally counts in h how often each byte occurs among n bytes.
typedef struct { uint32_t of[256]; } histogram;
void tally(histogram *h, const unsigned char *bytes, size_t n);

// A row has a name and its cells; print_row writes it to out, a buffer of size
// bytes, as snprintf would.
typedef struct { const char *name; const int32_t *cells; size_t n; } row;
int print_row(const row *row, char *out, size_t size);

// upper returns a copy of text in capital letters, which the caller passes to free.
char *upper(const char *text);

// A store has drawers, which are freed before it. One thread at a time may use a store
// and its drawers.
typedef struct store store;
typedef struct drawer drawer;
store *store_new(void);
void store_free(void *store);
drawer *drawer_new(store *store);
void drawer_free(store *store, drawer *drawer);
int drawers(store *store);
int store_mistakes(void); // two threads at once, a store that is freed before a drawer

// A journal has room for some lines. journal_close returns how many did not fit.
typedef struct journal journal;
journal *journal_new(int room);
void journal_write(journal *journal, const char *line);
int journal_close(void *journal);

// A texture is a number. Textures are made and deleted on one thread, the first that
// makes one: texture_delete returns the number of calls of others.
unsigned texture_new(void);
int texture_delete(unsigned texture);
