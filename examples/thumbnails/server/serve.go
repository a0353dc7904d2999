//go:build linux && cgo

//cheapvet:ignore perobject this is what owners are compared with

package main

import (
	"math"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/examples/thumbnails/internal/chart"
	"github.com/cheapgo/cheap/examples/thumbnails/internal/sampler"
	"github.com/cheapgo/cheap/libc"
	"github.com/cheapgo/cheap/own"
	"github.com/cheapgo/cheap/pace"
)

// A variant is a way to free images.
type variant struct {
	name, title string
	open        func(size int) (*image, error)
	close       bool
	pace        bool
}

var variants = []variant{
	{name: "cleanup", title: "runtime.AddCleanup", open: cleaned},
	{name: "close", title: "own, closed by hand", open: owned, close: true},
	{name: "pace", title: "own and pace", open: owned, pace: true},
}

// An image is in C memory.
type image struct {
	handle own.Handle[unsafe.Pointer] // not for those with a cleanup
	c      unsafe.Pointer
	size   int
}

// The memory is malloc's. Where a program has package cmem, it is not counted twice.
var images = own.NewPool(own.Options{Name: "image", CHeap: true, Release: func(_ any, resources []uintptr) error {
	for _, r := range resources {
		libc.Allocator{}.Free(cheap.Pointer(r))
	}
	return nil
}})

func owned(size int) (*image, error) {
	m := &image{c: libc.Allocator{}.Malloc(size), size: size}
	return m, m.handle.Own(images, m.c, size)
}

func cleaned(size int) (*image, error) {
	m := &image{c: libc.Allocator{}.Malloc(size), size: size}
	runtime.AddCleanup(m, func(p uintptr) { libc.Allocator{}.Free(cheap.Pointer(p)) }, uintptr(m.c))
	return m, nil
}

// paint writes the image.
func (m *image) paint() {
	x := byte(1)
	for i, b := range unsafe.Slice((*byte)(m.c), m.size) {
		x = x*5 + byte(i)
		*(*byte)(unsafe.Add(m.c, i)) = b ^ x
	}
	runtime.KeepAlive(m)
}

// A measurement is what one process has found.
type measurement struct {
	Points   []chart.Point
	Requests int
	Cycles   uint32
	Waits    int64 // of allocations, for package pace
}

func (m measurement) peak() int64 {
	most := int64(0)
	for _, p := range m.Points {
		most = max(most, p.Bytes)
	}
	return most
}

// sink keeps the compiler from removing the garbage.
var sink atomic.Pointer[[4 << 10]byte]

// request makes an image, and forgets or closes it.
func (v variant) request() error {
	size := int((64 << 10) * math.Exp2(6*rand.Float64()))
	m, err := v.open(size)
	if err != nil {
		return err
	}
	m.paint()
	sink.Store(new([4 << 10]byte))
	time.Sleep(time.Millisecond + rand.N(3*time.Millisecond))
	if v.close {
		return m.handle.Close()
	}
	runtime.KeepAlive(m)
	return nil
}

// measure serves with so many goroutines for a time, in this process. Each serves a request at
// least.
func (v variant) measure(goroutines int, d time.Duration) (m measurement, err error) {
	if v.pace {
		if err := pace.Start(pace.Options{}); err != nil {
			return m, err
		}
		defer pace.Stop()
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	s, err := sampler.Start(10*time.Millisecond, func(int64) {})
	if err != nil {
		return m, err
	}
	var requests atomic.Int64
	var failed atomic.Pointer[error]
	var wg sync.WaitGroup
	for begin := time.Now(); goroutines > 0; goroutines-- {
		wg.Go(func() {
			for {
				if err := v.request(); err != nil {
					failed.Store(&err)
				}
				requests.Add(1)
				if time.Since(begin) >= d || failed.Load() != nil {
					return
				}
			}
		})
	}
	wg.Wait()
	if m.Points, err = s.End(); failed.Load() != nil {
		err = *failed.Load()
	}
	runtime.ReadMemStats(&after)
	m.Requests, m.Cycles, m.Waits = int(requests.Load()), after.NumGC-before.NumGC, pace.ReadStats().Waits
	return m, err
}
