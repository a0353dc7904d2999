//go:build cgo && unix

#include <stdlib.h>

#include "calls.h"

int cside_add(int a, int b) { return a + b; }

int cside_add_quiet(int a, int b) { return a + b; }

char *cside_malloc(size_t size) { return malloc(size); }

char *cside_calloc(size_t size) { return calloc(size, 1); }

void cside_free(char *block) { free(block); }
