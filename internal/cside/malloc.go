//go:build cgo && unix

package cside

/*
#cgo nocallback cside_is_jemalloc
#cgo linux CFLAGS: -D_GNU_SOURCE
#cgo linux LDFLAGS: -ldl

#include <dlfcn.h>
#include <stddef.h>

// Only jemalloc has a function mallctl.
static int cside_is_jemalloc(void) { return dlsym(RTLD_DEFAULT, "mallctl") != NULL; }
*/
import "C"

// IsJemalloc reports whether jemalloc is the malloc of this process.
func IsJemalloc() bool { return C.cside_is_jemalloc() != 0 }
