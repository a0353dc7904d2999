// What is known of the malloc of the program.
#ifndef CHEAP_LIBC_CMALLOC_H
#define CHEAP_LIBC_CMALLOC_H

#include <stddef.h>

enum cheap_malloc { cheap_unknown, cheap_glibc, cheap_jemalloc, cheap_mimalloc, cheap_tcmalloc };

// cheap_malloc_is says whose malloc it is.
enum cheap_malloc cheap_malloc_is(void);

// cheap_malloc_read sets how many bytes are in blocks that are in use, and how many malloc has from the
// system beside them. Of these some may not be resident. It returns 0 if that is not known. glibc
// goes through its free blocks for that, with each arena locked in turn.
int cheap_malloc_read(size_t *used, size_t *unused);

// cheap_malloc_trim has malloc give free memory back to the system.
void cheap_malloc_trim(void);

// cheap_malloc_arenas returns how many arenas glibc has.
int cheap_malloc_arenas(void);

#endif
