package main

import "github.com/cheapgo/cheap/cmd/cheap/internal/tables"

// unbound runs f in a goroutine that is bound to no thread, since one that is
// makes each switch to another goroutine a switch of threads, which no program
// in Go has to pay for. What f gives to tables.OnMain runs here meanwhile.
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
