//go:build cgo && re2

package re2

/*
#cgo noescape set_match
#cgo nocallback set_match
#include "re2.h"
*/
import "C"

import (
	"fmt"
	"strings"
	"unsafe"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/libc"
	"github.com/cheapgo/cheap/own"
)

// A Set is several regular expressions that are looked for at once. Goroutines may share
// it. A program that forgets to close it leaks nothing.
type Set struct {
	h   own.Handle[*C.set]
	len int
}

var sets = own.NewPool(own.Options{
	Name:    C.SET_POOL,
	CHeap:   true, // malloc's, which package cmem does not count twice then
	Release: libc.Destructor(unsafe.Pointer(C.set_destroy)),
})

// NewSet compiles expressions.
func NewSet(expressions ...string) (*Set, error) {
	for _, e := range expressions {
		if strings.ContainsRune(e, 0) {
			return nil, fmt.Errorf("re2: %q: a string of C ends at its first zero", e)
		}
	}
	args := cheap.GetArena()
	defer args.Put()
	argv := cheap.CStrings(args, expressions) // an array of pointers, which cannot be Go memory
	if argv == nil {
		return nil, cheap.ErrNoMemory
	}
	p := C.set_new((**C.char)(argv))
	if e := C.set_error(p); e != nil {
		defer C.set_destroy(unsafe.Pointer(p))
		return nil, fmt.Errorf("re2: %q: %s", expressions, cheap.GoString(unsafe.Pointer(e)))
	}
	s := &Set{len: len(expressions)}
	// RE2 does not say how many bytes it has. A set of eight had 120 KB after a match.
	if err := s.h.Own(sets, p, 16<<10*(1+len(expressions))); err != nil {
		C.set_destroy(unsafe.Pointer(p)) // the pool does not own it
		return nil, err
	}
	return s, nil
}

// Close frees the set at once, or after the calls in progress. It may be called again.
func (s *Set) Close() error { return s.h.Close() }

// Match returns the indices of the expressions that match somewhere in the text, in any
// order. The error is [own.ErrClosed] after Close.
func (s *Set) Match(text []byte) (matches []int, err error) {
	err = s.h.TryUse(func(p *C.set) error {
		if s.len == 0 {
			return nil
		}
		indices := make([]C.int, s.len)
		first := (*C.char)(unsafe.Pointer(unsafe.SliceData(text)))
		n := C.set_match(p, first, C.size_t(len(text)), &indices[0])
		for _, i := range indices[:n] {
			matches = append(matches, int(i))
		}
		return nil
	})
	return matches, err
}
