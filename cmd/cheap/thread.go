package main

// unbound runs f in a goroutine that is bound to no thread. From a goroutine that
// is bound to one, each switch to another goroutine is a switch of threads, which
// an ordinary Go program does not pay for.
func unbound(f func() error) (err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		err = f()
	}()
	<-done
	return err
}
