//go:build cgo

package guide

// #include "library.h"
import "C"

import "github.com/cheapgo/cheap"

// Longest passes strings as a char ** in memory that is freed after the call.
func Longest(words []string) string {
	if len(words) == 0 {
		return ""
	}
	a := cheap.GetArena()
	defer a.Put()
	argv := (**C.char)(cheap.CStrings(a, words))
	return words[C.longest(argv)]
}
