#include <stddef.h>
#include <stdint.h>

// The first and the last byte of every text.
enum { cside_text_first = 'a', cside_text_last = 'z' };

// cside_take reads the first and the last of n bytes, n > 0, and counts
// the text if it is intact. One thread at a time may call it.
void cside_take(const char *text, size_t n);

// cside_taken returns how many texts were intact.
uint64_t cside_taken(void);
