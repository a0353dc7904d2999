#include <stddef.h>
#include <stdint.h>

// cside_pairs allocates and frees a block of size bytes, n times. It returns how often
// malloc succeeded.
size_t cside_pairs(size_t n, size_t size);

// A step of cside_replace, as Go's Step lays it out.
struct cside_step {
	uint32_t slot;
	uint32_t size;
};

// cside_replace does n steps, with the first of count, a power of two, again after the last: it
// frees the block in a slot and puts another there. It returns how often malloc succeeded.
size_t cside_replace(size_t n, const struct cside_step *steps, size_t count, uintptr_t *slots);

// cside_free_all frees the blocks in n slots.
void cside_free_all(uintptr_t *slots, size_t n);

enum { cside_malloc_move, cside_realloc_move, cside_free_move, cside_aligned_move };

// A move of cside_play, as Go's Move lays it out.
struct cside_move {
	uint32_t what;
	uint32_t slot;
	uint32_t size;
	uint32_t align;
};

// cside_play does n moves from number at on, with the first of count again after the last. It writes
// to the first byte of each block that it gets, and to the last one of a new block. It returns how
// many moves did what they say.
size_t cside_play(size_t n, size_t at, const struct cside_move *moves, size_t count, uintptr_t *slots);

// cside_sparse fills 2n/3 of n slots with blocks of 256 bytes, frees 49 of 50 at random, and fills the
// last n/3 with blocks of 320 bytes. Then it frees all. It returns how many blocks there were.
size_t cside_sparse(size_t n, uintptr_t *slots);
