// Package testcall has tests call functions: on another goroutine, or expecting a panic.
//
// Only tests import it.
package testcall

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
