//go:build linux && cgo

package main

import (
	"math"
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"time"
)

// A program serves requests, each of which makes objects in C.
type program struct {
	name, what string

	// start makes what lives for as long as the program, and returns a function that serves a
	// request. Many goroutines call that.
	start func(w *way) func() error

	// needs is what the program is charged at most if objects are freed by hand, in MiB, with 1, 8
	// and 64 goroutines, on 2 cores.
	needs map[int]int64
}

var programs = []program{
	{"server", "an image of 64 KiB to 4 MiB a request", server, map[int]int64{1: 24, 8: 50, 64: 248}},
	{"small", "1,000 blocks of 4 KiB a request", small, map[int]int64{1: 11, 8: 58, 64: 351}},
	{"cache", "100 bytes to 4 KiB, a million of them live beside a Go heap", cache, map[int]int64{1: 1731, 8: 3077, 64: 4575}},
	{"bursts", "an image a request, and 20 for a tenth of each second", bursts, map[int]int64{1: 43, 8: 204, 64: 1180}},
}

// limit returns the size of a container for so many goroutines, in MiB: a quarter more than what the
// program needs, and 16 MiB.
func (p program) limit(goroutines int) int64 { return p.needs[goroutines]*5/4 + 16 }

// goroutines are those for which it is known what programs need.
var goroutines = []int{1, 8, 64}

// between returns a random number of bytes. Small ones are as likely as large ones, by their logarithm.
func between(least, most int) int {
	return int(float64(least) * math.Exp(rand.Float64()*math.Log(float64(most)/float64(least))))
}

// database waits for somebody else.
func database() { time.Sleep(time.Millisecond + rand.N(3*time.Millisecond)) }

// garbage keeps the compiler from removing garbage.
var garbage atomic.Pointer[[4 << 10]byte]

// serve makes n objects, waits, and drops them.
func (w *way) serve(n int, size func() int) error {
	objects := make([]*object, 0, n)
	defer func() {
		for _, o := range objects {
			w.drop(o)
		}
		runtime.KeepAlive(objects)
	}()
	for range n {
		o, err := w.make(size())
		if err != nil {
			return err
		}
		objects = append(objects, o)
	}
	garbage.Store(new([4 << 10]byte))
	database()
	return nil
}

func image() int { return between(64<<10, 4<<20) }

func server(w *way) func() error {
	return func() error { return w.serve(1, image) }
}

func small(w *way) func() error {
	return func() error { return w.serve(1000, func() int { return 4 << 10 }) }
}

// cache has a million objects in C and two fifths of as many bytes in Go. A request replaces a hundred.
func cache(w *way) func() error {
	const live, replaced = 1_000_000, 100
	size := func() int { return between(100, 4<<10) }
	objects := make([]atomic.Pointer[object], live)
	bytes := 0
	for i := range objects {
		n := size()
		o, err := w.make(n)
		if err != nil {
			panic(err)
		}
		objects[i].Store(o)
		bytes += n
	}
	heap := make([]*[4 << 10]byte, bytes*2/5>>12)
	for i := range heap {
		heap[i] = new([4 << 10]byte)
		heap[i][0] = 1
	}
	return func() error {
		for range replaced {
			o, err := w.make(size())
			if err != nil {
				return err
			}
			if was := objects[rand.IntN(live)].Swap(o); was != nil {
				w.drop(was)
			}
		}
		garbage.Store(new([4 << 10]byte))
		database()
		runtime.KeepAlive(heap)
		return nil
	}
}

func bursts(w *way) func() error {
	begin := time.Now()
	return func() error {
		n := 1
		if time.Since(begin)%time.Second < time.Second/10 {
			n = 20
		}
		return w.serve(n, image)
	}
}
