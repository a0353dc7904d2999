//go:build cgo && linux && !cheap_nocmem && !asan && !msan

#include "source/labels.c"
