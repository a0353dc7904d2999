//go:build cgo && cxx && linux && !cxx_replaced

#include "cxxtest.h"

int cxxtest_replaced;
long cxxtest_news, cxxtest_deletes;
