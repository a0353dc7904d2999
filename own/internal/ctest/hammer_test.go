//go:build cgo && unix

package ctest

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/cheapgo/cheap/internal/test/testcall"
	"github.com/cheapgo/cheap/internal/test/testwait"
	"github.com/cheapgo/cheap/own"
)

// A struck is an object that the hammer closes, holds and forgets, while threads of C call it.
type struck struct {
	*Object
	thread own.Callback[func(unsafe.Pointer)]
	at     uintptr
	data   atomic.Pointer[byte] // the number of thread
	others [2]*struck           // they may refer to this one
	calls  atomic.Int64
}

// strike makes a struck whose number C has in a place.
func strike(t testing.TB, place int, other *struck, answered *atomic.Int64) *struck {
	s := &struck{Object: must(t)}
	s.at, s.others[0] = s.Address(), other
	connect := func() {
		data := s.ConnectThread(&s.thread, func(data unsafe.Pointer) {
			answered.Add(1)
			s.calls.Add(1)
			if Freed(s.at) {
				t.Error("the object is freed while its function runs")
			}
			if own := s.data.Load(); own != nil && unsafe.Pointer(own) != data {
				t.Errorf("a call with the number %p reached the function of %p", data, own)
			}
			switch rand.IntN(200) {
			case 0:
				s.Close()
			case 1:
				runtime.Gosched()
			}
		})
		s.data.Store((*byte)(data))
		Publish(place, data)
	}
	connect()
	if other != nil {
		other.others[1] = s // a cycle of two, beside those of each with its function
	}
	return s
}

// hit does something to s.
func (s *struck) hit(place int) {
	switch rand.IntN(8) {
	case 0:
		s.Close()
	case 1:
		s.data.Store(nil)
		s.thread.Clear()
	case 2, 3:
		// By the number that C has, also after the end of the callback.
		if data := s.data.Load(); data != nil && Threaded.Hold(unsafe.Pointer(data)) {
			runtime.Gosched()
			Threaded.Weaken(unsafe.Pointer(data))
		}
	case 4:
		if s.thread.Data() != nil {
			s.thread.Bind(s.h.Owner())
		}
	}
	// Else it is forgotten as it is.
}

// TestHammer has threads of C call functions while their objects are closed, cleared, held and
// forgotten, and the collector runs.
func TestHammer(t *testing.T) {
	none(t)
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(4))
	stop, err := Threads(4)
	testcall.Must(t, err)
	var ended atomic.Bool
	var answered atomic.Int64
	before := Threaded.Stats().Ended
	var hands sync.WaitGroup
	const goroutines = 4
	for g := range goroutines {
		hands.Go(func() {
			var last *struck
			for !ended.Load() {
				place := g + goroutines*rand.IntN(Places/goroutines)
				s := strike(t, place, last, &answered)
				s.hit(place)
				if last = s; rand.IntN(4) == 0 {
					last = nil
				}
			}
		})
	}
	hands.Go(func() {
		for i := 0; !ended.Load(); i++ {
			runtime.GC()
			if i%8 == 0 {
				runtime.GOMAXPROCS(1 + i/8%6)
			}
		}
	})
	const calls = 100_000
	testwait.Until(t, "C has called often", func() bool {
		return Made() > calls && answered.Load() > calls/10 && Threaded.Stats().Ended-before > calls/100
	})
	ended.Store(true)
	hands.Wait()
	for place := range Places {
		Publish(place, nil)
	}
	stop()
	t.Logf("%d calls, %d of them by the function", Made(), answered.Load())
	none(t)
	collectUntil(t, "no number is left", func() bool { s := Threaded.Stats(); return s.Live == 0 && s.Held == 0 })
}

// TestHammerOneCallback sets, binds, clears and holds one callback by several goroutines while C
// calls it.
func TestHammerOneCallback(t *testing.T) {
	none(t)
	stop, err := Threads(2)
	testcall.Must(t, err)
	o := must(t)
	var c own.Callback[func(unsafe.Pointer)]
	var ended atomic.Bool
	var answered [2]atomic.Int64
	var hands sync.WaitGroup
	for g := range 2 {
		hands.Go(func() {
			for i := 0; !ended.Load(); i++ {
				Publish(rand.IntN(Places), o.ConnectThread(&c, func(unsafe.Pointer) { answered[g].Add(1) }))
				switch i % 5 {
				case 0:
					c.Clear()
				case 1:
					if data := c.Data(); data != nil {
						Threaded.Hold(data)
					}
				case 2:
					if data := c.Data(); data != nil {
						Threaded.Weaken(data)
					}
				}
			}
		})
	}
	hands.Go(func() {
		for !ended.Load() {
			runtime.GC()
		}
	})
	testwait.Until(t, "both functions have answered", func() bool {
		return Made() > 50_000 && answered[0].Load() > 1000 && answered[1].Load() > 1000
	})
	ended.Store(true)
	hands.Wait()
	stop()
	c.Clear()
	if s := Threaded.Stats(); s.Live != 0 || s.Held != 0 {
		t.Errorf("after Clear: %+v", s)
	}
	o.Close()
}
