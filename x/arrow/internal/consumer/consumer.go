//go:build cgo

// Package consumer is a C program that takes arrays through the C data interface,
// keeps them, and releases them later, from a thread of its own. It is written from
// the specification of the interface alone.
package consumer

/*
#cgo LDFLAGS: -lpthread
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct ArrowArray {
	int64_t length, null_count, offset, n_buffers, n_children;
	const void **buffers;
	struct ArrowArray **children;
	struct ArrowArray *dictionary;
	void (*release)(struct ArrowArray *);
	void *private_data;
};

// kept is the array that the program has taken: a struct of an int64 and a utf8 column.
static struct ArrowArray kept;

// keep moves an array here, as the interface says: it belongs to this program now.
static void keep(void *from) {
	memcpy(&kept, from, sizeof kept);
	((struct ArrowArray *)from)->release = NULL;
}

// aligned returns whether all buffers start at multiples of 64.
static int aligned(void) {
	for (int64_t c = 0; c < kept.n_children; c++)
		for (int64_t b = 0; b < kept.children[c]->n_buffers; b++)
			if ((uintptr_t)kept.children[c]->buffers[b] % 64 && kept.children[c]->length)
				return 0;
	return 1;
}

// sum adds up the int64 column and the lengths of the strings.
static int64_t sum(int64_t *bytes) {
	struct ArrowArray *numbers = kept.children[0], *strings = kept.children[1];
	const int64_t *n = numbers->buffers[1];
	const int32_t *offsets = strings->buffers[1];
	int64_t total = 0;
	for (int64_t i = 0; i < kept.length; i++)
		total += n[numbers->offset + i];
	*bytes = offsets[strings->offset + kept.length] - offsets[strings->offset];
	return total;
}

static void *release_kept(void *unused) {
	kept.release(&kept);
	return unused;
}

// release releases the array, in a thread that Go does not know.
static int release(void) {
	pthread_t thread;
	if (pthread_create(&thread, NULL, release_kept, NULL) || pthread_join(thread, NULL))
		return -1;
	return kept.release == NULL;
}

static void *new_array(void) { return calloc(1, sizeof(struct ArrowArray)); }
*/
import "C"

import "unsafe"

// NewArray returns an ArrowArray of zeros, in C memory.
func NewArray() unsafe.Pointer { return C.new_array() }

// FreeArray frees an ArrowArray of NewArray, not the buffers that it describes.
func FreeArray(array unsafe.Pointer) { C.free(array) }

// Keep moves array, a record of an int64 and a string column, to C, which owns it from
// now on.
func Keep(array unsafe.Pointer) { C.keep(array) }

// Aligned reports whether all buffers of the array that C keeps start at multiples of
// 64.
func Aligned() bool { return C.aligned() != 0 }

// Sum returns the sum of the numbers, and of the lengths of the strings, of the array
// that C keeps.
func Sum() (numbers, bytes int64) {
	var n C.int64_t
	return int64(C.sum(&n)), int64(n)
}

// Release has a thread of C release the array that C keeps, and reports whether it is
// released.
func Release() bool { return C.release() == 1 }
