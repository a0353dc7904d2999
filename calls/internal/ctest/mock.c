//go:build cgo

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "mock.h"
#include "_cgo_export.h"

int ctest_add(int a, int b) { return (int)((unsigned)a + (unsigned)b); }

double ctest_mix(int a, int b, int c, int d, double e, double f, double g, double h) {
	return a + 2.0 * b + 3.0 * c + 4.0 * d + 5.0 * e + 6.0 * f + 7.0 * g + 8.0 * h;
}

static uint64_t mix(ctest_machine *machine, uint64_t x, uint64_t y) {
	machine->calls++;
	machine->state = (machine->state ^ x) * 0x9e3779b97f4a7c15u + y;
	return machine->state ^ machine->state >> 29;
}

int64_t ctest_mul(ctest_machine *machine, int64_t x, int64_t y) {
	return (int64_t)mix(machine, (uint64_t)x, (uint64_t)y) % 16;
}

double ctest_scale(ctest_machine *machine, double x, int y) {
	uint64_t bits;
	memcpy(&bits, &x, sizeof bits);
	return (double)(mix(machine, bits, (uint64_t)(int64_t)y) % 1000) / 8;
}

void ctest_note(ctest_machine *machine, uint32_t x) { mix(machine, x, 3); }

ctest_machine *ctest_self(ctest_machine *machine) {
	mix(machine, 1, 2);
	return machine;
}

int ctest_new(ctest_machine **machine) {
	*machine = calloc(1, sizeof **machine);
	return *machine == NULL ? -1 : 0;
}

void ctest_free(ctest_machine *machine) { free(machine); }

signed char ctest_char(signed char x) { return x - 1; }
uint8_t ctest_byte(uint8_t x) { return x - 1; }
short ctest_short(short x) { return x - 1; }
uint16_t ctest_ushort(uint16_t x) { return x - 1; }
unsigned ctest_uint(unsigned x) { return x - 1; }
bool ctest_not(bool x) { return !x; }
float ctest_float(float x) { return x - 1; }
enum ctest_color ctest_darker(enum ctest_color x) { return x - 1; }

size_t ctest_length(const char *text) { return strlen(text); }

uint64_t ctest_sum(const uint8_t *p, size_t n) {
	uint64_t sum = 0;
	for (size_t i = 0; i < n; i++) sum = sum * 31 + p[i];
	return sum;
}

void ctest_fill(uint8_t *p, size_t n, int value) { memset(p, value, n); }

int ctest_fail(int e) {
	if (e == 0) return 0;
	errno = e;
	return -1;
}

int64_t ctest_callback(int64_t x) { return ctestCallback(x); }

int ctest_next(ctest_cursor *cursor) {
	if (cursor->row >= cursor->rows) return CTEST_DONE;
	cursor->row++;
	int n = ctest_bytes(cursor);
	memset(cursor->text, 'a' + cursor->row % 26, n);
	return CTEST_ROW;
}

int64_t ctest_integer(ctest_cursor *cursor) { return cursor->row * (cursor->row % 2 ? 1 : -1); }
double ctest_real(ctest_cursor *cursor) { return cursor->row / 4.0; }

const unsigned char *ctest_text(ctest_cursor *cursor) {
	return cursor->row % 7 == 0 ? NULL : (const unsigned char *)cursor->text;
}

int ctest_bytes(ctest_cursor *cursor) {
	return cursor->row % 7 == 0 ? 0 : cursor->row % 1000 == 999 ? 4000 : cursor->row % 40;
}
