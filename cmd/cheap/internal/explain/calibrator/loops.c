//go:build cgo

#include "_cgo_export.h"
#include "loops.h"

void calibrator_nothing(void) {}
int calibrator_number(int number) { return number; }
struct calibrator_node calibrator_node(struct calibrator_node node) { return node; }

static void (*volatile nothing)(void) = calibrator_nothing;
static int (*volatile number)(int) = calibrator_number;
static struct calibrator_node (*volatile node)(struct calibrator_node) = calibrator_node;

void calibrator_nothings(long n) {
	for (long i = 0; i < n; i++) {
		nothing();
	}
}

void calibrator_numbers(long n) {
	int last = 1;
	for (long i = 0; i < n; i++) {
		last = number(last);
	}
}

void calibrator_nodes(long n) {
	struct calibrator_node last = {{0}, 0, 0};
	for (long i = 0; i < n; i++) {
		last = node(last);
	}
}

void calibrator_back(long n) {
	for (long i = 0; i < n; i++) {
		calibratorGoNothing();
	}
}
