//go:build cgo && cxx && linux && cxx_replaced && cxx_arrays

// Operators of the program of which those for arrays are its own as well.

#define CXXTEST_ARRAYS
#include "operators.h"

int cxxtest_replaced = 1;
