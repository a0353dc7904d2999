package worker

import (
	"errors"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cheapgo/cheap/internal/test/testcall"
	"github.com/cheapgo/cheap/own/internal/batch"
)

// TestHelpReleasesSeveral queues batches of one resource, which are released apart, as
// parents are. A call of Help releases many of them.
func TestHelpReleasesSeveral(t *testing.T) {
	const n = 500
	call, released := NewDispatcher(0, true), 0
	k := batch.Spec{Name: "helped", Releaser: call, Release: func(_ any, words []uintptr) error {
		released += len(words)
		return nil
	}}
	call.help.armed = true // so that no worker serves
	kill(&k, n, 1, 1<<20)
	calls := 0
	for ; released < n && calls < n; calls++ {
		call.Help()
	}
	if released != n || calls > n/2 {
		t.Errorf("%d calls released %d of %d", calls, released, n)
	}
	if st := CurrentState(); st != (State{}) || !Idle() {
		t.Errorf("%+v", st)
	}
}

// TestHelpIsBounded has releases become slow before, or in the middle of a call of Help. It ends
// with the call of the release function that passes a moment, and what it leaves is released by
// later calls, each resource once.
func TestHelpIsBounded(t *testing.T) {
	const jobs, size = 8, 200
	for _, slow := range []time.Duration{10, 10 * time.Microsecond, 50 * time.Microsecond, 700 * time.Microsecond, 5 * time.Millisecond} {
		for _, from := range []int{0, 1, 100, 777, jobs * size} {
			call := NewDispatcher(0, true)
			var released []uintptr
			var longest time.Duration // a call of the release function
			k := batch.Spec{Name: "slow", Releaser: call, Release: func(_ any, words []uintptr) error {
				begin := Now()
				for range words {
					if len(released) >= from {
						pass(slow)
					} else {
						pass(10)
					}
					released = append(released, 0)
				}
				copy(released[len(released)-len(words):], words)
				if len(words) > 16 {
					t.Errorf("a call has %d resources", len(words))
				}
				longest = max(longest, Now().Sub(begin))
				return nil
			}}
			call.help.armed = true // so that no worker serves
			call.bundles(mostBundle)
			kill(&k, jobs, size, 1<<20)
			calls := 0
			for ; calls < jobs*size && !Idle(); calls++ {
				begin := Now()
				call.Help()
				took := Now().Sub(begin)
				if took > aMoment+longest {
					t.Fatalf("%v each from %d on: Help takes %v, and the longest call of the release function %v", slow, from, took, longest)
				}
				// A call has twice as many resources as the one before, so it takes as long as all before.
				if from == 0 && took > 2*aMoment+slow {
					t.Fatalf("%v each: Help takes %v", slow, took)
				}
			}
			slices.Sort(released)
			if len(released) != jobs*size || len(slices.Compact(released)) != jobs*size {
				t.Errorf("%v each from %d on: %d of %d are released, or some twice", slow, from, len(released), jobs*size)
			}
			if st := CurrentState(); st != (State{}) || !Idle() {
				t.Errorf("%+v", st)
			}
			if fast := slow == 10; fast && calls > 2 {
				t.Errorf("%d calls of Help for %d quick releases", calls, jobs*size)
			}
		}
	}
}

// TestHelpLeavesARest has a call of Help leave something, and no other follow. A goroutine of
// its own releases that, in one call.
func TestHelpLeavesARest(t *testing.T) {
	call := NewDispatcher(0, true)
	var mu sync.Mutex
	var calls []int
	k := batch.Spec{Name: "rest", Releaser: call, Release: func(_ any, words []uintptr) error {
		mu.Lock()
		defer mu.Unlock()
		calls = append(calls, len(words))
		pass(aMoment)
		return nil
	}}
	call.help.armed = true // the test is the timer
	kill(&k, 1, 500, 1<<20)
	call.Help()
	if len(calls) != 1 || len(call.help.rests) != 1 || Idle() || !call.help.helped {
		t.Fatalf("calls of %d resources, and %d rests; helped: %v", calls, len(call.help.rests), call.help.helped)
	}
	call.unhelped() // a goroutine has helped, so another one may come
	call.help.helped = false
	call.unhelped()
	mustEnd(t)
	if len(calls) != 2 || calls[1] != 499 {
		t.Errorf("calls of %d resources", calls)
	}
}

// TestHelpTellsAMoment has OnReleaseError and OnCollect take long. A call of Help ends with the call
// of one of them that passes a moment, and each is told of all in the end, also if no other call
// of Help follows the first ones.
func TestHelpTellsAMoment(t *testing.T) {
	const jobs, size = 200, 20
	for _, slow := range []time.Duration{10, 100 * time.Microsecond, 5 * time.Millisecond} {
		for _, helps := range []int{1, 3, jobs * size} {
			call := NewDispatcher(0, true)
			var failed, told atomic.Int64
			k := batch.Spec{
				Name: "chatty", Releaser: call,
				Release:        func(any, []uintptr) error { return errors.New("no") },
				OnReleaseError: func(n int, _ error) { failed.Add(int64(n)); pass(slow) },
				OnCollect:      func(n int, _ string) { told.Add(int64(n)); pass(slow) },
			}
			call.help.armed = true // the test is the timer
			call.bundles(mostBundle)
			for range jobs {
				b := batch.New(&k, nil, nil, size, batch.OneSentinel)
				b.SealStock()
				b.Stock = false // its entries had owners
				call.Dead(batch.JobOf(b, batch.All))
			}
			for range helps {
				begin := Now()
				call.Help()
				if took := Now().Sub(begin); took > aMoment+slow {
					t.Errorf("%v each: Help takes %v", slow, took)
				}
			}
			call.help.helped = false
			call.unhelped()
			mustEnd(t)
			if n := int64(jobs * size); failed.Load() != n || told.Load() != n {
				t.Errorf("%v each: OnReleaseError is told of %d, OnCollect of %d of %d", slow, failed.Load(), told.Load(), n)
			}
		}
	}
}

// TestHelpPanics has the release function panic, or end its goroutine, in the middle of a bundle.
// The panic reaches who helps, and a goroutine releases what is left.
func TestHelpPanics(t *testing.T) {
	for _, goexit := range []bool{false, true} {
		const size = 500
		call := NewDispatcher(0, true)
		var mu sync.Mutex
		n := 0
		k := batch.Spec{Name: "hot", Releaser: call, Release: func(_ any, words []uintptr) error {
			mu.Lock()
			defer mu.Unlock()
			if n += len(words); n == 31 && goexit {
				runtime.Goexit()
			} else if n == 31 {
				panic("the oven is hot")
			}
			return nil
		}}
		call.help.armed = true
		kill(&k, 1, size, 1<<20)
		var v any
		testcall.Aside(func() {
			defer func() { v = recover() }()
			call.Help()
		})
		if err, ok := v.(error); !goexit && (!ok || err.Error() != "cheap: hot: the release function panicked: the oven is hot") || goexit && v != nil {
			t.Errorf("goexit=%v: the panic is %v", goexit, v)
		}
		mustEnd(t)
		if n != size {
			t.Errorf("goexit=%v: %d of %d are released", goexit, n, size)
		}
	}
}
