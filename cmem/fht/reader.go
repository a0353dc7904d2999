package fht

import (
	"sync/atomic"
	"time"
)

// A Reader reads the events of a ring until it is stopped.
type Reader struct {
	Decoder Decoder // after Stop

	ring  *Ring
	ended chan uint64 // the position before which to stop
	done  chan bool   // whether all events until there were read
}

// Read starts a goroutine that calls do with the operations of all events, from the next one on.
func Read(ring *Ring, do func(Op)) *Reader {
	r := &Reader{ring: ring, ended: make(chan uint64, 1), done: make(chan bool)}
	r.Decoder.Start(atomic.LoadUint64(ring.Read))
	go func() { r.done <- r.read(do) }()
	return r
}

// Stop returns when all events were read for which a position was taken before. It reports whether
// none was missing. Threads of C write no more events, or will not for long.
func (r *Reader) Stop() (whole bool) {
	r.ended <- atomic.LoadUint64(r.ring.Head)
	whole = <-r.done
	return whole && atomic.LoadUint64(r.ring.Over) == 0
}

func (r *Reader) read(do func(Op)) (whole bool) {
	const patience = time.Second // for threads that are about to write an event
	events := make([]uint64, 2*4096)
	var end uint64
	ended := false
	last := time.Now()
	for {
		n := r.ring.Take(events)
		r.Decoder.Decode(events[:2*n], do)
		switch {
		case n > 0:
			last = time.Now()
		case ended && atomic.LoadUint64(r.ring.Read) >= end:
			return true
		case ended && time.Since(last) > patience:
			return false
		}
		switch {
		case n == len(events)/2:
		case ended:
			time.Sleep(time.Millisecond)
		default:
			select {
			case end = <-r.ended:
				ended, last = true, time.Now()
			case <-time.After(time.Millisecond):
			}
		}
	}
}
