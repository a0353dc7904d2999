//go:build cgo && re2

package re2

/*
#cgo pkg-config: re2
#cgo CXXFLAGS: -std=c++17 -Wall -Wextra
// These functions call no Go function, and keep none of their arguments.
#cgo noescape regexp_new
#cgo nocallback regexp_new
#cgo noescape regexp_find
#cgo nocallback regexp_find
#include "re2.h"
*/
import "C"

import (
	"fmt"
	"unsafe"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/libc"
	"github.com/cheapgo/cheap/own"
)

// A Regexp is a regular expression. Goroutines may share it. A program that forgets to
// close it leaks nothing.
type Regexp struct {
	h          own.Handle[*C.regexp]
	expression string
	groups     int
}

var regexps = own.NewPool(own.Options{
	Name:    C.REGEXP_POOL,
	CHeap:   true, // malloc's, which package cmem does not count twice then
	Release: libc.Destructor(unsafe.Pointer(C.regexp_destroy)),
})

// Compile compiles an expression. The syntax is that of package regexp.
func Compile(expression string) (*Regexp, error) {
	// C++ reads the bytes of Go during the call only.
	p := C.regexp_new((*C.char)(unsafe.Pointer(unsafe.StringData(expression))), C.size_t(len(expression)))
	if e := C.regexp_error(p); e != nil {
		defer C.regexp_destroy(unsafe.Pointer(p))
		return nil, fmt.Errorf("re2: %q: %s", expression, cheap.GoString(unsafe.Pointer(e)))
	}
	re := &Regexp{expression: expression, groups: int(C.regexp_groups(p))}
	// RE2 does not say how many bytes it has. These are what 8 expressions had after a
	// match, within a factor of three.
	if err := re.h.Own(regexps, p, 1024+256*int(C.regexp_instructions(p))); err != nil {
		C.regexp_destroy(unsafe.Pointer(p)) // the pool does not own it
		return nil, err
	}
	return re, nil
}

// Close frees the expression at once, or after the calls in progress. It may be called
// again.
func (re *Regexp) Close() error { return re.h.Close() }

// String returns the expression.
func (re *Regexp) String() string { return re.expression }

// NumSubexp returns the number of groups.
func (re *Regexp) NumSubexp() int { return re.groups }

// Find returns where the first match in the text and its groups begin and end, or nil,
// as the method FindSubmatchIndex of package regexp does. If the text is not UTF-8, it may
// return another match. The error is [own.ErrClosed] after Close.
func (re *Regexp) Find(text []byte) (at []int, err error) {
	err = re.h.TryUse(func(p *C.regexp) error {
		places := make([]C.ptrdiff_t, 2*(re.groups+1)) // without Go pointers, so C may write to it
		first := (*C.char)(unsafe.Pointer(unsafe.SliceData(text)))
		if C.regexp_find(p, first, C.size_t(len(text)), &places[0]) == 0 {
			return nil
		}
		for _, n := range places {
			at = append(at, int(n))
		}
		return nil
	})
	return at, err
}

// Alive returns how many objects of C++ this package has made and not freed.
func Alive() int { return int(C.re2_alive()) }
