package cheap

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/cheapgo/cheap/internal/test/testcall"
	"github.com/cheapgo/cheap/internal/test/testenv"
	"github.com/cheapgo/cheap/internal/test/testheap"
	"github.com/cheapgo/cheap/internal/test/testwait"
)

func TestPooledArenaIsReused(t *testing.T) {
	testenv.Skip(t, "asan", "package asan, by cgo, is called for each block of an Arena and a FixedBlock; what they have not handed out may not be looked at")
	a := GetArena()
	p := a.Malloc(100)
	b := GetArena()
	if q := b.Malloc(100); a == b || p == q {
		t.Fatal("two users of one arena")
	}
	b.Put()
	a.Put()
	for range 100 {
		GetArena().Put()
	}
	if n := testing.AllocsPerRun(100, func() {
		a := GetArena()
		a.Malloc(1)
		a.Malloc(1000)
		a.Put()
	}); n != 0 {
		t.Errorf("%v Go allocations", n)
	}
	calls := runtime.NumCgoCall()
	for range 100 {
		GetArena().Put()
	}
	if n := runtime.NumCgoCall() - calls; n > testheap.FewCgoCalls() {
		t.Errorf("%d cgo calls", n)
	}
}

func TestPooledArenaKeepsLittle(t *testing.T) {
	a := GetArena()
	for range 100 {
		a.Malloc(pooledChunk / 8)
		a.Malloc(pooledChunk * 2)
	}
	m := a.mem
	if len(m.large) == 0 || len(m.chunks) <= pooledChunks {
		t.Fatalf("%d large blocks, %d chunks", len(m.large), len(m.chunks))
	}
	a.Put()
	if len(m.large) != 0 || len(m.chunks) > pooledChunks {
		t.Errorf("%d large blocks and %d chunks kept", len(m.large), len(m.chunks))
	}
}

func TestPooledArenaMisuse(t *testing.T) {
	a := GetArena()
	m := a.Mark()
	wantMisuse(t, "Arena.Destroy", func() { a.Destroy() }, "Put")
	p := a.Malloc(1)
	a.Put()
	for op, use := range arenaUses(a, m) {
		wantMisuse(t, "Arena."+op, use, "GetArena")
	}
	wantMisuse(t, "Arena.Destroy", func() { a.Destroy() }, "Put")
	wantMisuse(t, "Arena.Free", func() { a.Free(p) }, "GetArena")
	for range 20 { // until the pool gives out the same again
		if b := GetArena(); b == a {
			wantMisuse(t, "Arena.Release", func() { b.Release(m) }, "stale")
			b.Put()
			return
		}
	}
}

func TestPooledArenaWithoutMemory(t *testing.T) {
	// An arena whose first chunk was refused gets one later.
	a := GetArena()
	a.FreeAll()
	a.Put()
	a = GetArena()
	if a.Malloc(1) == nil {
		t.Error("no block after FreeAll and Put")
	}
	a.Put()
}

// lockedFake is a fakeAlloc for several goroutines.
type lockedFake struct {
	mu sync.Mutex
	f  *fakeAlloc
}

func (a *lockedFake) Malloc(size int) unsafe.Pointer {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.f.Malloc(size)
}

func (a *lockedFake) Free(p unsafe.Pointer) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.f.Free(p)
}

func (a *lockedFake) live() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.f.live()
}

// TestPooledArenaDropped drops arenas that were never put back, and waits for
// their chunks to be freed and their homes to be free for others.
func TestPooledArenaDropped(t *testing.T) {
	inner := &lockedFake{f: newFake(t)}
	var homes [10]arenaBox
	done := make(chan bool)
	go func() { // not on this goroutine's stack
		for i := range homes {
			homes[i].owned.Store(true)
			a := newPooledArena(inner, &homes[i])
			a.state = arenaTaken
			a.Malloc(3 * pooledChunk)
		}
		close(done)
	}()
	<-done
	if inner.live() < len(homes)*4*pooledChunk {
		t.Fatalf("%d bytes live", inner.live())
	}
	testwait.Until(t, "dropped arenas have no memory and no home", func() bool {
		runtime.GC()
		for i := range homes {
			if homes[i].owned.Load() {
				return false
			}
		}
		return inner.live() == 0
	})
}

// TestPooledArenaWaitsAtHome: one that waits is not dropped.
func TestPooledArenaWaitsAtHome(t *testing.T) {
	inner := &lockedFake{f: newFake(t)}
	var home arenaBox
	home.owned.Store(true)
	home.put(newPooledArena(inner, &home))
	for range 5 {
		runtime.GC()
	}
	if inner.live() != pooledChunk || !home.owned.Load() {
		t.Errorf("%d bytes live", inner.live())
	}
	if home.take() == nil || home.take() != nil {
		t.Error("the box does not hold one arena")
	}
}

// TestHammerPooledArenas moves arenas between goroutines while others take
// them and collect, with contents verified, under changing GOMAXPROCS.
func TestHammerPooledArenas(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	type job struct {
		a *Arena
		p unsafe.Pointer
		v uint64
	}
	jobs := make(chan job, 8)
	var done atomic.Bool
	var wg, readers sync.WaitGroup
	for range 2 {
		readers.Go(func() {
			for j := range jobs {
				if *(*uint64)(j.p) != j.v {
					t.Errorf("block holds %#x, want %#x", *(*uint64)(j.p), j.v)
				}
				j.a.Put()
			}
		})
	}
	for g := range 4 {
		wg.Go(func() {
			for i := range 3000 {
				v := uint64(g)<<32 + uint64(i)
				a := GetArena()
				p := a.Malloc(8 + i%2000)
				*(*uint64)(p) = v
				if i%3 == 0 {
					jobs <- job{a, p, v}
					continue
				}
				b := GetArena()
				q := b.Malloc(8)
				*(*uint64)(q) = ^v
				if i%500 == 0 {
					runtime.GOMAXPROCS(1 + i/500%4)
				}
				if *(*uint64)(p) != v || *(*uint64)(q) != ^v {
					t.Errorf("blocks hold %#x and %#x", *(*uint64)(p), *(*uint64)(q))
				}
				b.Put()
				a.Put()
			}
		})
	}
	readers.Go(func() {
		for !done.Load() {
			runtime.GC()
		}
	})
	wg.Wait()
	done.Store(true)
	close(jobs)
	readers.Wait()
}

func BenchmarkPooledArena(b *testing.B) {
	for b.Loop() {
		func() {
			a := GetArena()
			defer a.Put()
			a.Malloc(1)
			a.Malloc(10)
			a.Malloc(100)
			a.Malloc(1000)
		}()
	}
}

// TestPooledArenaFinalizer sets a finalizer on an arena of the pool, which collects. Until then the
// arena has not lost its memory.
func TestPooledArenaFinalizer(t *testing.T) {
	done := make(chan bool, 1)
	testcall.Aside(func() {
		a := GetArena()
		a.Malloc(64)
		runtime.SetFinalizer(a, func(a *Arena) {
			testheap.Collect()
			done <- len(a.mem.chunks) > 0
		})
	})
	testwait.Until(t, "the finalizer has ended", func() bool {
		runtime.GC()
		return len(done) == 1
	})
	if !<-done {
		t.Error("its memory is gone before its finalizer has run")
	}
}
