package workloads

import (
	"errors"
	"fmt"

	"github.com/cheapgo/cheap"
)

// A Workload is one program.
type Workload struct {
	Name    string
	Ops     int  // in a round, about a tenth of a second
	Threads bool // runs one goroutine or thread for each processor, or two

	places func(threads int) int // of its table
	heap   func(m *cheap.Heap, s table, n, threads int) Tally
	local  func(m *cheap.Local, s table, n int) Tally // nil with Threads
}

// All returns the workloads in the order of the report.
func All() []Workload {
	return []Workload{
		{Name: "larson", Ops: 2_000_000, Threads: true, places: each(larsonPlaces), heap: larson},
		single("alloc-test", 2_000_000, allocTestPlaces, allocTestOnHeap, allocTestOnLocal),
		{Name: "rptest", Ops: 500_000, Threads: true, places: each(rpPlaces), heap: rptest},
		single("sh6bench", 3_000_000, 3*shThird, shOnHeap, shOnLocal),
		single("glibc-simple", 3_000_000, simplePlaces, simpleOnHeap, simpleOnLocal),
		single("mixture", 600_000, mixturePlaces, mixtureOnHeap, mixtureOnLocal),
		{Name: "xmalloc", Ops: 1_500_000, Threads: true, places: each(xmallocQueue * xmallocBatch), heap: xmalloc},
		{Name: "cache-scratch", Ops: 2_000_000, Threads: true, places: each(1), heap: cacheScratch},
		{Name: "mstress", Ops: 1_000_000, Threads: true, places: each(stressPlaces), heap: mstress},
		single("sawtooth", 1_360_000, toothPlaces+keptPlaces, sawtoothOnHeap, sawtoothOnLocal),
		single("large", 40, largePlaces, largeOnHeap, largeOnLocal),
	}
}

// each is a number of places for each thread.
func each(places int) func(threads int) int {
	return func(threads int) int { return threads * places }
}

// single is a workload of one goroutine.
func single(name string, ops, places int, heap func(*cheap.Heap, table, int) Tally, local func(*cheap.Local, table, int) Tally) Workload {
	return Workload{
		Name: name, Ops: ops,
		places: func(int) int { return places },
		heap:   func(m *cheap.Heap, s table, n, _ int) Tally { return heap(m, s, n) },
		local:  local,
	}
}

// The allocators that a Runner has. Native is C's malloc, or the library that was
// preloaded instead.
const (
	Heap   = "heap"
	Local  = "local"
	Native = "native"
)

// Allocators returns those that this build has for a workload.
func (w *Workload) Allocators() []string {
	list := []string{Heap}
	if w.local != nil {
		list = append(list, Local)
	}
	if natives[w.Name] != nil {
		list = append(list, Native)
	}
	return list
}

// MissingNative says why this build does not have Native, "" if it has.
func MissingNative() string { return missingNative }

// A Runner runs a workload on one allocator, which keeps its memory from run to run.
type Runner struct {
	run     func(n int) Tally
	open    func() error // nil when it has been called
	close   func() error
	threads bool // several may have freed
}

// Open makes a Runner. The allocator takes no memory before the
// first run.
func (w *Workload) Open(allocator string, threads int) (*Runner, error) {
	s := newTable(w.places(threads))
	r := &Runner{close: func() error { return nil }, threads: w.Threads}
	switch {
	case allocator == Native && natives[w.Name] != nil:
		r.run = func(n int) Tally { return natives[w.Name](s, n, threads) }
	case allocator == Heap:
		r.open = func() error {
			h, err := cheap.NewHeap(cheap.HeapOptions{})
			if err != nil {
				return err
			}
			r.run = func(n int) Tally { return w.heap(h, s, n, threads) }
			r.close = h.Destroy
			return nil
		}
	case allocator == Local && w.local != nil:
		r.open = func() error {
			h, err := cheap.NewHeap(cheap.HeapOptions{})
			if err != nil {
				return err
			}
			l := h.NewLocal()
			r.run = func(n int) Tally { return w.local(l, s, n) }
			r.close = func() error { return errors.Join(l.Destroy(), h.Destroy()) }
			return nil
		}
	default:
		return nil, fmt.Errorf("%s does not run on %s here", w.Name, allocator)
	}
	return r, nil
}

// Run does n operations.
func (r *Runner) Run(n int) (Tally, error) {
	if r.open != nil {
		if err := r.open(); err != nil {
			return Tally{}, err
		}
		r.open = nil
	}
	if n < 1 {
		return Tally{}, nil
	}
	t := r.run(n)
	if r.threads {
		t.Freed = 0 // the scheduler decides
	}
	return t, nil
}

// Close releases the allocator. The error says that blocks are live.
func (r *Runner) Close() error { return r.close() }
