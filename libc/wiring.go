//go:build cgo

package libc

/*
#cgo noescape cheap_malloc_read
#cgo nocallback cheap_malloc_read
#cgo nocallback cheap_malloc_trim
#cgo nocallback cheap_malloc_arenas
#include "cmalloc.h"
*/
import "C"

import "github.com/cheapgo/cheap/internal/account"

// upward has the methods of package libc that package account calls, by an interface of its
// own. Package libc gives it to package account in this file only.
type upward struct{}

func init() { account.Process.SetMalloc(upward{}) }

func (upward) Read() (used, free int64, ok bool) {
	var u, f C.size_t
	ok = C.cheap_malloc_read(&u, &f) != 0
	return int64(u), int64(f), ok
}

func (upward) Trim() { C.cheap_malloc_trim() }

func (u upward) Arenas() int {
	if _, _, ok := u.Read(); !ok {
		return 0 // glibc has an arena also in a program whose malloc does not call glibc's
	}
	return int(C.cheap_malloc_arenas())
}
