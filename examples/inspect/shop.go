package main

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/own"
	"github.com/cheapgo/cheap/pace"
)

// A shop stands for a service that uses memory outside the Go heap.
//
//   - Each request reads an upload into buffers of the heap "uploads", and frees them.
//   - Its results are kept for a while as blocks of the own.Memory "thumbnails", which the
//     collector frees after they were dropped.
//   - It borrows a decoder, a resource of the pool "decoder", and closes it; one request in ten
//     forgets that. The page shows these as released by the collector.
//
// A library that keeps memory of its own reports it to the account "font cache".
type shop struct {
	uploads    *cheap.Heap
	thumbnails *own.Memory
	decoders   *own.Pool
	fonts      *pace.Account
	made       atomic.Uint64 // decoders
}

func newShop() (*shop, error) {
	uploads, err := cheap.NewHeap(cheap.HeapOptions{Name: "uploads", Limit: 128 << 20})
	if err != nil {
		return nil, err
	}
	s := &shop{
		uploads:    uploads,
		thumbnails: own.NewMemory(cheap.Default(), own.MemoryOptions{Name: "thumbnails"}),
		decoders: own.NewPool(own.Options{
			Name: "decoder", Numbers: true, // a real one would be a pointer of C
			Release: func(_ any, resources []uintptr) error { return nil },
		}),
		fonts: pace.NewAccount(pace.AccountOptions{Name: "font cache", Limit: 32 << 20, Manual: true}),
	}
	return s, s.fonts.Add(20 << 20)
}

// close ends the shop. What requests have forgotten is left to the collector.
func (s *shop) close() {
	s.fonts.Close()
	_ = s.uploads.DestroyAll() // returns an error if it is called twice
}

// A decoder is a resource with an owner.
type decoder struct{ n own.Number[uint64] }

// visit makes requests until ctx is done.
func (s *shop) visit(ctx context.Context, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 1))
	var shelf [400]*own.Bytes // the thumbnails that are kept
	for i := 0; ctx.Err() == nil; i++ {
		s.request(random, &shelf[random.IntN(len(shelf))])
		if i%20 == 0 {
			time.Sleep(time.Millisecond)
		}
	}
}

// request is one request, whose thumbnail takes the place of another one.
func (s *shop) request(random *rand.Rand, place **own.Bytes) {
	var d decoder
	if err := d.n.Own(s.decoders, s.made.Add(1), 4<<10); err != nil {
		return
	}
	if random.IntN(10) > 0 {
		defer d.n.Close() // nothing is released that could fail
	}
	for range 8 {
		size := 1 + random.IntN(32<<10)
		upload := s.uploads.Malloc(size)
		if upload == nil {
			return // at the limit
		}
		clear(unsafe.Slice((*byte)(upload), size)) // a block of that size, which this request has
		defer s.uploads.Free(upload)
	}
	if thumbnail, err := s.thumbnails.NewBytes(1 + random.IntN(16<<10)); err == nil {
		*place = thumbnail
	}
}
