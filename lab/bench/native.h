#include <stddef.h>
#include <stdint.h>

// A step of Replace, as Go's Step lays it out.
struct cheap_step {
	uint32_t slot;
	uint32_t size;
};

// cheap_pairs allocates and frees a block of size bytes, n times. It returns how often
// malloc succeeded.
size_t cheap_pairs(size_t n, size_t size);

// cheap_replace does n steps, with the first of count again after the last: it frees
// the block in a slot and puts another there. It returns how often malloc succeeded.
size_t cheap_replace(size_t n, const struct cheap_step *steps, size_t count, uintptr_t *slots);

// cheap_free_all frees the blocks in n slots.
void cheap_free_all(uintptr_t *slots, size_t n);
