#include <stddef.h>
#include <stdint.h>

// One operation of a trace, as Go's trace.Op lays it out.
struct cheap_op {
	size_t size;
	uint32_t slot;
	uint8_t kind;
	uint8_t align_log;
	uint8_t thread;
	uint8_t touch;
};

// cheap_replay performs n operations and returns how many it performed: less
// than n when there was no memory for the next. slots holds an address for each
// live block.
size_t cheap_replay(const struct cheap_op *ops, size_t n, uintptr_t *slots);

// cheap_malloc_file returns the file that has the malloc of the process. The
// string is static.
const char *cheap_malloc_file(void);

// cheap_malloc_name says which malloc the process is linked with. The string is
// static and made by the first call; calls must not overlap.
const char *cheap_malloc_name(void);
