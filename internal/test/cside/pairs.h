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
