package main

// #include <regex.h>
// #include <stdlib.h>
//
// // regexp_new returns NULL if expr is no expression, or there is no memory.
// regex_t *regexp_new(const char *expr) {
// 	regex_t *re = malloc(sizeof *re);
// 	if (re && regcomp(re, expr, REG_EXTENDED | REG_NOSUB) != 0) {
// 		free(re);
// 		return NULL;
// 	}
// 	return re;
// }
//
// int regexp_match(const regex_t *re, const char *text) { return regexec(re, text, 0, NULL, 0) == 0; }
//
// // regexp_free is not static: Go takes its address.
// void regexp_free(void *re) {
// 	regfree(re);
// 	free(re);
// }
import "C"

import (
	"fmt"
	"unsafe"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/libc"
	"github.com/cheapgo/cheap/own"
)

// A Regexp is a regular expression of the C library. C frees it when it is closed, or after
// the program has forgotten it.
type Regexp struct{ h own.Handle[*C.regex_t] }

var regexps = own.NewPool(own.Options{
	Name: "Regexp", CHeap: true, // its memory is malloc's
	Release: libc.Destructor(unsafe.Pointer(C.regexp_free)),
})

func newRegexp(p *C.regex_t) (*Regexp, error) {
	re := new(Regexp)
	if err := re.h.Own(regexps, p, regexpBytes); err != nil {
		C.regexp_free(unsafe.Pointer(p)) // the pool did not take it
		return nil, err
	}
	return re, nil
}

// regexpBytes is about what a short expression takes: its automaton grows as it matches.
const regexpBytes = 8 << 10

// Compile makes a Regexp of an extended regular expression.
func Compile(expr string) (*Regexp, error) {
	a := cheap.GetArena()
	defer a.Put() // which frees what C has read
	p := C.regexp_new((*C.char)(cheap.CString(a, expr)))
	if p == nil {
		return nil, fmt.Errorf("no regular expression: %q", expr)
	}
	return newRegexp(p)
}

// Match reports whether a part of text matches. It returns own.ErrClosed after Close.
func (re *Regexp) Match(text string) (matches bool, err error) {
	a := cheap.GetArena()
	defer a.Put()
	err = re.h.TryUse(func(p *C.regex_t) error { // C does not free it meanwhile
		matches = C.regexp_match(p, (*C.char)(cheap.CString(a, text))) != 0
		return nil
	})
	return matches, err
}

// Close frees the expression now. A program need not call it.
func (re *Regexp) Close() error { return re.h.Close() }
