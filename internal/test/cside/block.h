#include <stddef.h>
#include <stdint.h>

enum { cside_block_size = 100 };

struct cside_block; // as a library keeps its types to itself

// cside_create returns a new block, or NULL when memory is out.
struct cside_block *cside_create(void);

// cside_destroy frees a block.
void cside_destroy(struct cside_block *block);

// cside_construct and cside_destruct are the same, as a constructor with a context
// and as a destructor of any type.
void *cside_construct(void *context);
void cside_destruct(void *block);

// cside_destroy_all frees n blocks.
void cside_destroy_all(const uintptr_t *blocks, size_t n);

struct cside_counts {
	uint64_t created, destroyed; // blocks
	int64_t peak;                // bytes that were live at once since the last reset
};

// cside_count adds up the counts of all threads.
struct cside_counts cside_count(void);

// cside_reset_peak takes what is live now for the peak. No other thread may be
// at work.
void cside_reset_peak(void);
