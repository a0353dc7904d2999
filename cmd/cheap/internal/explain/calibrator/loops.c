//go:build cgo

#include "_cgo_export.h"
#include "loops.h"

void calibrator_nothing(void) {}

static void (*volatile nothing)(void) = calibrator_nothing;

void calibrator_nothings(long n) {
	for (long i = 0; i < n; i++) {
		nothing();
	}
}

void calibrator_back(long n) {
	for (long i = 0; i < n; i++) {
		calibratorGoNothing();
	}
}
