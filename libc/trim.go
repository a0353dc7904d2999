//go:build cgo

package libc

/*
#cgo linux LDFLAGS: -ldl
#cgo nocallback cheap_malloc_trim
#include "cmalloc.h"
*/
import "C"

import "github.com/cheapgo/cheap/internal/watch/procfs"

// Trim has malloc give its free memory back to the operating system, for the whole process. It
// returns by how many bytes the resident memory of the process is smaller after that, or 0 if it is
// not smaller, because other threads allocate meanwhile.
//
// It knows the malloc of glibc, and that of jemalloc, mimalloc and tcmalloc where the program is
// linked with it or preloads it. With another malloc, in a program that is linked statically, and on
// systems other than Linux, it does nothing.
//
// It takes about 0.1 ms for each megabyte that is given back; threads that allocate wait
// meanwhile. Memory that is needed later has to be taken from the system again, which costs more
// than that. Package pace gives memory back by itself.
func Trim() (returned int64) {
	before, _ := procfs.Self()
	C.cheap_malloc_trim()
	after, _ := procfs.Self()
	return max(before-after, 0)
}
