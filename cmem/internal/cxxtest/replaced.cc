//go:build cgo && cxx && linux && cxx_replaced && !cxx_arrays

// Operators of the program: the plain ones, and the aligned ones. All others are to call these.

#include "operators.h"

int cxxtest_replaced = 1;
