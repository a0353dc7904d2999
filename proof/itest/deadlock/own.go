package main

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/cheapgo/cheap/own"
)

// useOwn uses package own, and waits until nothing is to be released any more. A worker or
// a timer of own would keep Go from noticing.
func useOwn() {
	var released atomic.Int64
	stuck := make(chan struct{})
	p := own.NewPool(own.Options{Numbers: true, Release: func(_ any, r []uintptr) error {
		if r[0] == 1 {
			<-stuck // so that own arms a timer
		}
		released.Add(int64(len(r)))
		return nil
	}})
	const n = 100
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range n {
			var size int
			if i%10 == 0 {
				size = 1 << 20 // has a batch of its own
			}
			if err := new(own.Number[int]).Own(p, 1+i%2, size); err != nil {
				panic(err)
			}
		}
	}()
	<-done
	var held, closed own.Number[int]
	for _, o := range []*own.Number[int]{&held, &closed} {
		if err := o.Own(p, 3, 16); err != nil {
			panic(err)
		}
	}
	closed.Close()
	for own.ReadReleases().Oldest < 150*time.Millisecond {
		runtime.GC()
		time.Sleep(time.Millisecond)
	}
	fmt.Println("busy:", own.ReadReleases().Workers > 0)
	close(stuck)
	for released.Load() < n+1 {
		runtime.GC()
		if err := own.Flush(context.Background()); err != nil {
			panic(err)
		}
	}
	for own.ReadReleases() != (own.ReleaseStats{}) {
		time.Sleep(time.Millisecond)
	}
	fmt.Println("busy:", own.ReadReleases().Workers > 0)
}
