#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Functions of all shapes, for the tests of package calls.

int ctest_add(int a, int b);
double ctest_mix(int a, int b, int c, int d, double e, double f, double g, double h);

// A machine has a state that each call mixes its arguments into: two machines that had the
// same calls in the same order have the same state.
typedef struct ctest_machine {
	uint64_t state;
	int64_t calls;
} ctest_machine;

int64_t ctest_mul(ctest_machine *machine, int64_t x, int64_t y);
double ctest_scale(ctest_machine *machine, double x, int y);
void ctest_note(ctest_machine *machine, uint32_t x);
ctest_machine *ctest_self(ctest_machine *machine);
int ctest_new(ctest_machine **machine);
void ctest_free(ctest_machine *machine);

// Narrow numbers: each returns its argument less 1.
signed char ctest_char(signed char x);
uint8_t ctest_byte(uint8_t x);
short ctest_short(short x);
uint16_t ctest_ushort(uint16_t x);
unsigned ctest_uint(unsigned x);
bool ctest_not(bool x);
float ctest_float(float x);
enum ctest_color { CTEST_RED = -1, CTEST_GREEN = 0, CTEST_BLUE = 1 };
enum ctest_color ctest_darker(enum ctest_color x);

// Memory.
size_t ctest_length(const char *text);
uint64_t ctest_sum(const uint8_t *p, size_t n);
void ctest_fill(uint8_t *p, size_t n, int value);

// Sets errno, and returns -1, for any e but 0.
int ctest_fail(int e);

// Calls Go, by way of ctestCallback, with x. Returns what Go returns.
int64_t ctest_callback(int64_t x);

// Rows: a cursor over made-up rows, as that of a database.
typedef struct ctest_cursor {
	int64_t row, rows;
	char text[4096];
} ctest_cursor;
enum { CTEST_ROW = 100, CTEST_DONE = 101 };
int ctest_next(ctest_cursor *cursor);
int64_t ctest_integer(ctest_cursor *cursor);
double ctest_real(ctest_cursor *cursor);
const unsigned char *ctest_text(ctest_cursor *cursor); // NULL in every seventh row
int ctest_bytes(ctest_cursor *cursor);
