//go:build cgo

#include <ctype.h>
#include <pthread.h>
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

unsigned char *image_line(image *m, int y) { return m->pixels + (size_t)y * m->width; }

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

char *upper(const char *text) {
	char *copy = strdup(text);
	for (char *p = copy; p && *p; p++) *p = (char)toupper((unsigned char)*p);
	return copy;
}

struct store {
	int drawers;
	atomic_int users;
};
struct drawer { char inside[100]; };

static atomic_int mistakes;

static void enter(store *s) {
	if (s->users++ != 0) mistakes++;
}

static void leave(store *s) { s->users--; }

store *store_new(void) { return calloc(1, sizeof(store)); }

void store_free(void *p) {
	store *s = p;
	enter(s);
	if (s->drawers != 0) mistakes++;
	free(s);
}

drawer *drawer_new(store *s) {
	enter(s);
	drawer *d = calloc(1, sizeof *d);
	if (d) s->drawers++;
	leave(s);
	return d;
}

void drawer_free(store *s, drawer *d) {
	enter(s);
	s->drawers--;
	free(d);
	leave(s);
}

int drawers(store *s) {
	enter(s);
	int n = s->drawers;
	leave(s);
	return n;
}

int store_mistakes(void) { return mistakes; }

struct journal { int room, lost; };

journal *journal_new(int room) {
	journal *j = calloc(1, sizeof *j);
	if (j) j->room = room;
	return j;
}

void journal_write(journal *j, const char *line) {
	(void)line; // this library keeps none
	if (j->room > 0) j->room--;
	else j->lost++;
}

int journal_close(void *p) {
	journal *j = p;
	int lost = j->lost;
	free(j);
	return lost;
}

static pthread_t painter;
static unsigned last;
static int strangers;

static void enter_texture(void) {
	if (!painter) painter = pthread_self();
	if (!pthread_equal(painter, pthread_self())) strangers++;
}

unsigned texture_new(void) {
	enter_texture();
	return ++last;
}

int texture_delete(unsigned texture) {
	(void)texture;
	enter_texture();
	return strangers;
}
