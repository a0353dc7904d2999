// What is known of the malloc of the program.
#ifndef CHEAP_LIBC_CMALLOC_H
#define CHEAP_LIBC_CMALLOC_H

#include <stddef.h>

enum cheap_malloc { cheap_unknown, cheap_glibc, cheap_jemalloc, cheap_mimalloc, cheap_tcmalloc };

// cheap_malloc_is says whose malloc it is.
enum cheap_malloc cheap_malloc_is(void);

// cheap_malloc_read sets used to the bytes of blocks in use, and unused to the bytes that malloc has
// from the system beside them, some of which may not be resident. It returns 0 if these are not known. glibc
// walks its free blocks for that, and locks one arena after the other.
int cheap_malloc_read(size_t *used, size_t *unused);

// cheap_malloc_trim has malloc give free memory back to the system.
void cheap_malloc_trim(void);

// cheap_malloc_keep has glibc keep up to n free bytes at the end of an arena when a block is freed, until
// cheap_malloc_trim. With n = 0 it keeps 8 MiB.
void cheap_malloc_keep(size_t n);

// cheap_malloc_arenas returns how many arenas glibc has.
int cheap_malloc_arenas(void);

// cheap_malloc_info returns what malloc_info of glibc says, which the caller frees, or NULL.
char *cheap_malloc_info(void);

// A cheap_arena is what an arena has: bytes from the system, and those of them that are in no block in use.
struct cheap_arena {
	size_t system, unused;
};

// cheap_malloc_each writes what each arena of jemalloc has, or the page heap of tcmalloc, at most so many. It
// returns how many. mimalloc says nothing of its arenas, and for glibc there is cheap_malloc_info.
int cheap_malloc_each(struct cheap_arena *to, int most);

#endif
