package percpu

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"
)

// A counter is what is in the slots of these tests: a Slot, and words that only the
// goroutine that is pinned may touch.
type counter struct {
	Slot
	n     int
	taken bool
}

// counters are globals, because a slot must not move nor be freed.
var counters [2 * Max]counter

// addr returns the address of a counter, as a table holds it.
func addr(i int) uintptr { return uintptr(unsafe.Pointer(&counters[i])) }

// counterAt is the way back. The detector knows nothing of pinning.
//
//go:norace
func counterAt(slot uintptr) *counter {
	return &counters[(slot-addr(0))/unsafe.Sizeof(counter{})]
}

// increment adds to the counter in the slot that the goroutine gets. It reports whether
// there was a slot, and whether the goroutine had it to itself.
//
//go:norace
func increment(t *Table) (got, alone bool) {
	slot := t.Pin()
	alone = true
	if got = slot != 0; got {
		c := counterAt(slot)
		alone = !c.taken
		c.taken = true
		n := c.n
		for range 30_000 { // longer than Seize takes
			c.n = n
		}
		c.n = n + 1 // what another goroutine has added meanwhile is lost
		c.taken = false
	}
	t.Unpin(slot)
	return got, alone
}

//go:norace
func (c *counter) read() int { return c.n }

//go:norace
func (c *counter) clear() { c.n, c.taken = 0, false }

// TestHammerPin counts in slots from many goroutines, while GOMAXPROCS changes
// and slots are installed, seized and put back. No count is lost, and a slot
// that has been seized stays as it is.
func TestHammerPin(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for i := range counters {
		counters[i].clear()
	}
	var table Table
	var mu sync.Mutex // of Install, Seize and Restore
	installed := 0
	var want atomic.Int64
	var stop atomic.Bool
	rounds := 1000
	if testing.Short() {
		rounds = 300
	}
	var users, seizer sync.WaitGroup
	for range 8 {
		users.Go(func() {
			for range rounds {
				got, alone := increment(&table)
				if !alone {
					t.Error("two goroutines are in one slot")
					return
				}
				if got {
					want.Add(1)
					continue
				}
				mu.Lock()
				if place := table.Place(); place >= 0 && installed < len(counters) {
					table.Install(place, addr(installed))
					installed++
				}
				mu.Unlock()
			}
		})
	}
	seizer.Go(func() {
		for i := 0; !stop.Load(); i++ {
			if i%8 == 0 { // it stops the world, so not always right before Seize
				runtime.GOMAXPROCS(i/8%4 + 2)
			}
			mu.Lock()
			seized := table.Seize(func(id int) bool { return i%2 == 0 || id%2 == 0 })
			var before, after int
			for _, s := range seized {
				before += counterAt(s.Slot).read()
			}
			for range 20 {
				runtime.Gosched()
			}
			for _, s := range seized {
				after += counterAt(s.Slot).read()
				if table.Installed(s.ID) != 0 {
					t.Error("a slot that was seized is still in the table")
				}
			}
			if before != after {
				t.Errorf("slots that were seized went from %d to %d", before, after)
			}
			table.Restore(seized)
			mu.Unlock()
			for next := want.Load() + 16; want.Load() < next && !stop.Load(); {
				runtime.Gosched()
			}
		}
	})
	users.Wait()
	stop.Store(true)
	seizer.Wait()
	sum := 0
	for i := range counters {
		sum += counters[i].read()
	}
	if int64(sum) != want.Load() || sum == 0 {
		t.Errorf("counted %d, want %d", sum, want.Load())
	}
}

// enterAndCount adds to the counter of the number that Enter returns, and reports
// whether it had the counter to itself.
//
//go:norace
func enterAndCount() (id uint, alone bool) {
	id = Enter()
	if alone = true; !Portable {
		c := &counters[id]
		alone = !c.taken
		c.taken = true
		n := c.n
		for range 3000 {
			c.n = n
		}
		c.n = n + 1
		c.taken = false
	}
	Leave()
	return id, alone
}

// TestHammerEnter counts by the numbers of Enter from many goroutines, while
// GOMAXPROCS changes. Numbers are small, and none has two goroutines.
func TestHammerEnter(t *testing.T) {
	const procs, users, rounds = 4, 8, 3000
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
	for i := range counters {
		counters[i].clear()
	}
	most := uint(procs)
	if Portable {
		most = Max
	}
	var wg sync.WaitGroup
	for g := range users {
		wg.Go(func() {
			for i := range rounds {
				if id, alone := enterAndCount(); id >= most || !alone {
					t.Errorf("number %d, alone: %v", id, alone)
					return
				}
				if g == 0 && i%100 == 0 {
					runtime.GOMAXPROCS(1 + i/100%procs)
					Wait()
				}
			}
		})
	}
	wg.Wait()
	if id := Here(); id >= most {
		t.Errorf("Here is %d", id)
	}
	sum := 0
	for i := range counters {
		sum += counters[i].read()
	}
	if want := users * rounds; !Portable && sum != want {
		t.Errorf("counted %d, want %d", sum, want)
	}
}

// TestSeize seizes some of the slots.
func TestSeize(t *testing.T) {
	var table Table
	const n = 10
	for i := range n {
		table.Install(i, addr(i))
	}
	seized := table.Seize(func(id int) bool { return id < 3 })
	if len(seized) != 3 {
		t.Fatalf("seized %v", seized)
	}
	for i, s := range seized {
		if s != (Seized{i, addr(i)}) {
			t.Errorf("seized %+v at %d", s, i)
		}
	}
	for i := range n {
		if got := table.Installed(i); (got == 0) != (i < 3) {
			t.Errorf("slot %d is %#x", i, got)
		}
	}
	table.Restore(seized)
	for i := range n {
		if got := table.Installed(i); got != addr(i) {
			t.Errorf("slot %d is %#x after Restore", i, got)
		}
	}
	if seized := table.Seize(func(int) bool { return false }); seized != nil {
		t.Errorf("wanted none, seized %v", seized)
	}
}

// TestDrop takes slots out for good. They serve in another table then.
func TestDrop(t *testing.T) {
	var a, b Table
	for i := range Max {
		a.Install(i, addr(i))
		counters[i].clear()
	}
	if got, _ := increment(&a); !got {
		t.Fatal("no slot in a full table")
	}
	seized := a.Seize(func(int) bool { return true })
	Drop(seized)
	if got, _ := increment(&a); got {
		t.Error("a slot in a table that has none")
	}
	if place := a.Place(); place < 0 {
		t.Error("no place in an empty table")
	}
	for _, s := range seized {
		b.Install(s.ID, s.Slot)
	}
	if got, alone := increment(&b); !got || !alone {
		t.Errorf("slots that were dropped serve in another table: %v, %v", got, alone)
	}
	if place := b.Place(); place >= 0 {
		t.Errorf("place %d in a full table", place)
	}
	Drop(b.Seize(func(int) bool { return true })) // hangs if one is still locked
}

// TestBeyond compares places with GOMAXPROCS.
func TestBeyond(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(3))
	for id := range Max {
		if got, want := Beyond(id), !Portable && id >= 3; got != want {
			t.Fatalf("Beyond(%d) = %v", id, got)
		}
	}
}
