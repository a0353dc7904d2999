//go:build cgo

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "library.h"

int64_t sum(const int32_t *numbers, size_t n) {
	int64_t total = 0;
	for (size_t i = 0; i < n; i++) total += numbers[i];
	return total;
}

int longest(const char *const *argv) {
	int best = 0;
	for (int i = 0; argv[i]; i++) {
		if (strlen(argv[i]) > strlen(argv[best])) best = i;
	}
	return best;
}

static counter *counting;

void count_into(counter *counter) { counting = counter; }

void event(size_t bytes) {
	if (counting) {
		counting->events++;
		counting->bytes += bytes;
	}
}

static atomic_int_least64_t alive;

image *image_new(int width, int height) {
	image *m = calloc(1, sizeof *m + (size_t)width * height);
	if (m) {
		m->width = width;
		m->height = height;
		alive++;
	}
	return m;
}

void image_free(void *m) {
	alive--;
	free(m);
}

int64_t images_alive(void) { return alive; }

void tally(histogram *h, const unsigned char *bytes, size_t n) {
	for (size_t i = 0; i < n; i++) h->of[bytes[i]]++;
}

int print_row(const row *row, char *out, size_t size) {
	int n = snprintf(out, size, "%s:", row->name);
	for (size_t i = 0; i < row->n; i++) {
		size_t at = (size_t)n < size ? (size_t)n : size;
		n += snprintf(out + at, size - at, " %d", (int)row->cells[i]);
	}
	return n;
}
