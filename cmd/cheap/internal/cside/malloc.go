//go:build cgo && unix

package cside

/*
#cgo nocallback cside_is_jemalloc
#cgo linux CFLAGS: -D_GNU_SOURCE
#cgo linux LDFLAGS: -ldl

#include <dlfcn.h>
#include <stddef.h>

// mallctl is jemalloc's; nobody else has a function of this name.
static int cside_is_jemalloc(void) { return dlsym(RTLD_DEFAULT, "mallctl") != NULL; }
*/
import "C"

// IsJemalloc reports whether jemalloc is the malloc of this process.
func IsJemalloc() bool { return C.cside_is_jemalloc() != 0 }
