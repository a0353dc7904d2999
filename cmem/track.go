package cmem

import (
	"runtime"
	"runtime/pprof"
	"slices"
	"sync"

	"github.com/cheapgo/cheap/internal/watch/census"
)

// Package inspect/leaktest counts block by block: it asks for that by census.CTracker.
var _ census.CTracker = counted{}

// mostRefreshed is how many threads of Go are told of a new rate at once.
const mostRefreshed = 64

func (counted) Track() (stop func()) {
	old := SetRate(1)
	// A thread reads the rate again with its next large block. As many goroutines as there are threads, each on a
	// thread of its own, reach all threads that are idle.
	var ready, done sync.WaitGroup
	n := min(pprof.Lookup("threadcreate").Count(), mostRefreshed)
	ready.Add(n)
	for range n {
		done.Go(func() {
			runtime.LockOSThread() // while it waits, the thread does nothing else
			defer runtime.UnlockOSThread()
			refresh()
			ready.Done()
			ready.Wait()
		})
	}
	done.Wait()
	return func() { SetRate(old) }
}

func (counted) EachStack(f func(number int, blocks, bytes float64)) {
	unlabelled(eachSite)(func(s *site) { f(s.number, s.allocs-s.frees, s.allocBytes-s.freeBytes) })
	unlabelled(eachMapping)(func(s *site) { f(^s.number, 0, s.allocBytes-s.freeBytes) })
}

func (counted) Named(numbers []int) []census.CSuspect {
	all := make([]census.CSuspect, len(numbers))
	stacks, p, err := snapshot(func(s *site) bool { return slices.Contains(numbers, s.number) })
	if err != nil {
		return all // there is no /proc: the stacks have no names
	}
	maps, q, err := snapshotOf(eachMapping, func(s *site) bool { return slices.Contains(numbers, ^s.number) })
	if err != nil {
		return all
	}
	b, c := p.NewBuilder(1), q.NewBuilder(1)
	for i, number := range numbers {
		for j := range stacks {
			if s := &stacks[j]; s.number == number {
				all[i] = census.CSuspect{Library: s.library, Stack: stackText(framesOf(b.Sample(s.known())))}
			}
		}
		for j := range maps {
			if s := &maps[j]; ^s.number == number {
				all[i] = census.CSuspect{Library: q.Library(s.known()), Stack: stackText(framesOf(c.Sample(s.known())))}
			}
		}
	}
	return all
}
