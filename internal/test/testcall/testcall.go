// Package testcall has tests call functions: on another goroutine, deep in the stack, expecting a
// panic, or expecting no error.
//
// Only tests import it.
package testcall

import (
	"runtime"
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
