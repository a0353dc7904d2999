//go:build cgo && unix

#include <stdlib.h>

#include "calls.h"

int cside_add(int a, int b) { return a + b; }

int cside_add_quiet(int a, int b) { return a + b; }

double cside_mix(int a, int b, int c, int d, double e, double f, double g, double h) {
	return a + 2.0 * b + 3.0 * c + 4.0 * d + 5.0 * e + 6.0 * f + 7.0 * g + 8.0 * h;
}

char *cside_malloc(size_t size) { return malloc(size); }

char *cside_calloc(size_t size) { return calloc(size, 1); }

void cside_free(char *block) { free(block); }
