package main

import "github.com/cheapgo/cheap/lab/internal/tables"

// unbound runs f in a goroutine that is bound to no thread. From a goroutine that
// is bound to one, each switch to another goroutine is a switch of threads, which
// an ordinary Go program does not pay for. The functions that f passes to
// tables.OnMain run on the thread of unbound's caller.
func unbound(f func() error) (err error) {
	work := make(chan func())
	onMain := tables.OnMain
	defer func() { tables.OnMain = onMain }()
	tables.OnMain = func(g func()) {
		done := make(chan struct{})
		work <- func() {
			defer close(done)
			g()
		}
		<-done
	}
	go func() {
		defer close(work)
		err = f()
	}()
	for g := range work {
		g()
	}
	return err
}
