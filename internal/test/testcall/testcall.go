// Package testcall has tests call functions: on another goroutine, deep in the stack, by one of many
// stacks, expecting a panic, or expecting no error.
//
// Only tests import it.
package testcall

import (
	"runtime"
	"strings"
	"testing"
)

// Aside calls f on a goroutine of its own, and waits until it has returned. So no reference stays
// behind in the registers or the stack of the caller.
func Aside(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	<-done
}

// Catch calls f, and returns what it panics with, or nil.
func Catch(f func()) (v any) {
	defer func() { v = recover() }()
	f()
	return nil
}

// Deep calls f below n frames, each of more than 1 KiB, so that the stack grows and moves.
func Deep(n int, f func()) {
	var page [1 << 10]byte
	if page[n%len(page)]++; n > 0 {
		Deep(n-1, f)
	} else {
		f()
	}
	runtime.KeepAlive(&page)
}

// Site calls f by one of many stacks, which the bits of n below the highest choose, the lowest first.
func Site(n int, f func()) {
	switch {
	case n <= 1:
		f()
	case n&1 == 0:
		even(n>>1, f)
	default:
		odd(n>>1, f)
	}
}

//go:noinline
func even(n int, f func()) { Site(n, f) }

//go:noinline
func odd(n int, f func()) { Site(n, f) }

// SiteOf returns the n of a stack that Site has made, from the names of its functions, innermost first.
func SiteOf(functions []string) int {
	n := 1
	for _, name := range functions {
		switch {
		case strings.HasSuffix(name, "testcall.even"):
			n <<= 1
		case strings.HasSuffix(name, "testcall.odd"):
			n = n<<1 + 1
		}
	}
	return n
}

// Must ends the test if err is not nil. Only the goroutine of the test calls it.
func Must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Want fails the test if err is not nil, and lets it go on.
func Want(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
}
