//go:build cgo

package libc

/*
#cgo noescape cheap_malloc_read
#cgo nocallback cheap_malloc_read
#cgo nocallback cheap_malloc_trim
#cgo nocallback cheap_malloc_keep
#cgo nocallback cheap_malloc_arenas
#cgo nocallback cheap_malloc_info
#cgo noescape cheap_malloc_each
#cgo nocallback cheap_malloc_each
#include <stdlib.h>
#include "cmalloc.h"
*/
import "C"

import (
	"os"
	"strings"
	"unsafe"

	"github.com/cheapgo/cheap/internal/mem/account"
)

// libcHost has the methods of package libc that package account calls, by an interface of its
// own. Package libc gives it to package account in this file only.
type libcHost struct{}

func init() { account.Process.SetMalloc(libcHost{}) }

func (libcHost) Read() (used, free int64, ok bool) {
	var u, f C.size_t
	ok = C.cheap_malloc_read(&u, &f) != 0
	return int64(u), int64(f), ok
}

func (libcHost) Trim() { C.cheap_malloc_trim() }

// Keep reads the environment by package os: getenv of C may read it while os.Setenv changes it.
func (libcHost) Keep(bytes int64) {
	for _, name := range []string{"trim_threshold", "top_pad", "mmap_threshold", "mmap_max"} {
		if _, set := os.LookupEnv("MALLOC_" + strings.ToUpper(name) + "_"); set || strings.Contains(os.Getenv("GLIBC_TUNABLES"), name) {
			return // the user has set a number that this depends on
		}
	}
	C.cheap_malloc_keep(C.size_t(bytes))
}

func (u libcHost) Arenas() int {
	if !u.known() {
		return 0
	}
	return int(C.cheap_malloc_arenas())
}

func (u libcHost) ReadArenas() []account.Arena {
	if !u.known() {
		return nil
	}
	text := C.cheap_malloc_info()
	if text == nil {
		return otherArenas()
	}
	defer C.free(unsafe.Pointer(text)) // it is a block of malloc that nobody else has
	return arenasIn(C.GoString(text))
}

// mostArenas is how many arenas of another malloc than glibc's are read. jemalloc has four for each processor.
const mostArenas = 1024

// otherArenas returns the arenas of jemalloc, or the page heap of tcmalloc.
func otherArenas() (all []account.Arena) {
	var list [mostArenas]C.struct_cheap_arena
	for _, a := range list[:C.cheap_malloc_each(&list[0], mostArenas)] {
		all = append(all, account.Arena{System: int64(a.system), Free: int64(a.unused)})
	}
	return all
}

// known reports whether malloc says what it has. glibc has an arena also in a program whose malloc does not
// call glibc's.
func (u libcHost) known() bool {
	_, _, ok := u.Read()
	return ok
}
