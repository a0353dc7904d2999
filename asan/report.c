//go:build asan

#define _GNU_SOURCE // process_vm_readv
#include "report.h"

#include <inttypes.h>
#include <pthread.h>
#include <sanitizer/asan_interface.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

// The header at the start of a block: checkedHeader of package cheap.
struct header {
	uint64_t link, mark;
	uint64_t seal, size;
	uint32_t state, front;
	uint64_t whole;
	uint32_t allocated, freed;
};
_Static_assert(sizeof(struct header) == 56, "differs from checkedHeader");

enum { in_use = 0x11, page = 4096, quantum = 16 };

static uint64_t factor;

void cheap_report_factor(uint64_t f) { factor = f; }

// The texts of stacks. A text never changes once it is there.
static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER;
static char **stacks;
static uint32_t num_stacks;

void cheap_report_stack(uint32_t id, char *text) {
	pthread_mutex_lock(&mu);
	if (id >= num_stacks) {
		uint32_t n = 2 * id + 64;
		char **more = realloc(stacks, n * sizeof *more);
		if (more) {
			memset(more + num_stacks, 0, (n - num_stacks) * sizeof *more);
			stacks = more;
			num_stacks = n;
		}
	}
	if (id < num_stacks && !stacks[id]) {
		stacks[id] = text;
		text = NULL;
	}
	pthread_mutex_unlock(&mu);
	free(text);
}

static uint64_t rotl(uint64_t x, int n) { return x << n | x >> (64 - n); }

// is_sealed reports whether h is the header of a block at base: checkedHeader.sealOf.
static int is_sealed(const struct header *h, uintptr_t base) {
	uint64_t x = (uint64_t)base ^ h->size ^ rotl(h->whole, 16) ^ rotl((uint64_t)h->state << 32 | h->front, 32) ^
		rotl((uint64_t)h->allocated << 32 | h->freed, 48);
	x *= factor;
	return h->seal == (x ^ x >> 32) * factor;
}

// copy_page copies a page, and returns 0 if it cannot be read. The memory before a block may be
// reserved only.
static int copy_page(uintptr_t from, char *to) {
	struct iovec local = {to, page}, remote = {(void *)from, page};
	return process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == page;
}

// find looks for the header of the block that p is in, from p towards lower addresses.
static uintptr_t find(uintptr_t p, struct header *h) {
	static char buf[page + sizeof *h]; // a page, and the beginning of the one behind it
	uintptr_t q = p & ~(uintptr_t)(quantum - 1);
	for (uintptr_t start = q & ~(uintptr_t)(page - 1);; start -= page) {
		memcpy(buf + page, buf, sizeof *h);
		if (!copy_page(start, buf)) {
			return 0;
		}
		for (; q >= start; q -= quantum) {
			memcpy(h, buf + (q - start), sizeof *h);
			if (is_sealed(h, q) && p - q < h->whole) {
				return q;
			}
		}
	}
}

static void print_stack(const char *title, uint32_t id) {
	if (id < num_stacks && stacks[id]) {
		fprintf(stderr, "%s%s\n", title, stacks[id]);
	}
}

// describe is called by the sanitizer, at the end of each report.
static void describe(const char *report) {
	(void)report;
	struct header h;
	char *p = __asan_get_report_address();
	if (!p || !__asan_region_is_poisoned(p, 1) && !__asan_region_is_poisoned(p, 64)) {
		return;
	}
	p = __asan_region_is_poisoned(p, 64) ? __asan_region_is_poisoned(p, 64) : p;
	uintptr_t at = (uintptr_t)p, base = find(at, &h);
	if (!base) {
		return;
	}
	uintptr_t user = base + ((uintptr_t)1 << h.front);
	fprintf(stderr, "cheap: %#" PRIxPTR " is ", at);
	if (at < user) {
		fprintf(stderr, "%" PRIuPTR " bytes before", user - at);
	} else if (at - user >= h.size) {
		fprintf(stderr, "%" PRIu64 " bytes behind", (uint64_t)(at - user) - h.size);
	} else {
		fprintf(stderr, "byte %" PRIuPTR " of", at - user);
	}
	const char *kind = h.state == in_use ? "" : "free ";
	fprintf(stderr, " the %sblock at %#" PRIxPTR " (%" PRIu64 " bytes)", kind, user, h.size);
	int chunk = h.state == in_use && at >= user && at - user < h.size;
	fprintf(stderr, "%s\n", chunk ? ", a chunk of an Arena or a FixedBlock, in a part that is free" : "");
	print_stack("allocated by", h.allocated);
	if (h.state != in_use) {
		print_stack("freed by", h.freed);
	}
}

void cheap_report_init(void) { __asan_set_error_report_callback(describe); }
