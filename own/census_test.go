package own

import (
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/internal/test/testcall"
	"github.com/cheapgo/cheap/internal/watch/census"
)

// counted returns what readPools counts of the pool with a name.
func counted(t *testing.T, name string) census.Pool {
	t.Helper()
	for _, c := range readPools(nil) {
		if c.Name == name {
			return c
		}
	}
	t.Fatalf("readPools does not find %s", name)
	return census.Pool{}
}

// TestCensus compares the counts that are read without waiting with Stats.
func TestCensus(t *testing.T) {
	p := NewPool(Options{
		Name: "census", Numbers: true, Batch: 16,
		Release:   func(any, []uintptr) error { return nil },
		Construct: func(r []uintptr) (int, error) { return len(r), nil },
	})
	var kept [100]Number[uintptr]
	for i := range kept {
		var err error
		if i%2 == 0 {
			err = kept[i].Own(p, uintptr(i), i)
		} else {
			err = kept[i].Make(p)
		}
		testcall.Must(t, err)
	}
	for i := range 30 {
		testcall.Must(t, kept[i].Close())
	}
	var c census.Pool
	wait(t, "the pool is not busy", func() bool { c = counted(t, "census"); return !c.Busy })
	s := p.Stats()
	if c.Live != s.Live || c.Bytes != s.Bytes || c.Made != s.Made || c.Created != 100 || c.Live != 70 || c.Open == 0 {
		t.Errorf("%+v, Stats says %+v", c, s)
	}
	if err := p.CloseWait(t.Context()); err == nil {
		t.Error("CloseWait does not say that owners were not closed")
	}
	runtime.KeepAlive(&kept)
}

// TestCensusOfMemory checks that the two pools of a Memory are counted as one.
func TestCensusOfMemory(t *testing.T) {
	m := NewMemory(cheap.Default(), MemoryOptions{Name: "census-memory"})
	b, err := m.NewBytes(100)
	testcall.Must(t, err)
	g, err := m.NewGroup()
	testcall.Must(t, err)
	var c census.Pool
	wait(t, "the pool is not busy", func() bool { c = counted(t, "census-memory"); return !c.Busy })
	if s := m.Stats(); !c.Memory || c.Live != 2 || c.Created != 2 || c.Bytes != s.Bytes {
		t.Errorf("%+v, Stats says %+v", c, s)
	}
	b.Close()
	g.Close()
	if err := m.CloseWait(t.Context()); err != nil { // and so it is not found again
		t.Error(err)
	}
}

// TestHammerCensus reads while batches of two are sealed all the time: no owner is counted
// twice, and none is left out.
func TestHammerCensus(t *testing.T) {
	p := NewPool(Options{Name: "hammer-census", Numbers: true, Batch: 2, Release: func(any, []uintptr) error { return nil }})
	var made atomic.Int64
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range times(200_000) {
			var n Number[uintptr]
			if err := n.Own(p, uintptr(i), 1); err != nil {
				t.Error(err)
				return
			}
			made.Add(1)
			n.Close()
		}
	}()
	read := 0
	for running := true; running; {
		select {
		case <-done:
			running = false
		default:
		}
		before := made.Load()
		c := census.Pool{Name: "hammer-census"}
		p.census(&c)
		if after := made.Load() + 1; !c.Busy && (c.Created < before || c.Created > after) {
			t.Fatalf("%d owners were made, and %d when they were counted as %d", before, after, c.Created)
		}
		if !c.Busy {
			read++
		}
		runtime.Gosched() // the goroutine that makes owners yields once for each batch on a single P
	}
	if read == 0 {
		t.Error("the pool is always busy")
	}
}
