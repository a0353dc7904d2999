//go:build race && cheap_gomem

package heap

import (
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"
	"unsafe"

	"github.com/cheapgo/cheap/internal/mem/osmem"
	"github.com/cheapgo/cheap/internal/mem/percpu"
	"github.com/cheapgo/cheap/internal/mem/span"
	"github.com/cheapgo/cheap/internal/test/shadow"
	"github.com/cheapgo/cheap/internal/test/testcall"
	"github.com/cheapgo/cheap/internal/test/testheap"
	"github.com/cheapgo/cheap/internal/watch/sample"
)

// What is tested here is what the race detector says, so each program runs in a
// child process, whose output tells.

// TestSharedReported uses allocators for one goroutine from two that have nothing to do with each other,
// or of which one has passed the allocator to the other.
func TestSharedReported(t *testing.T) {
	for name, use := range map[string]func(h *Heap) func(){
		"Local.Malloc, Free": func(h *Heap) func() { l := h.NewLocal(); return func() { l.Free(l.Malloc(100)) } },
		"Local.TryMalloc":    func(h *Heap) func() { l := h.NewLocal(); return func() { l.TryMalloc(100) } },
		"Local.Calloc":       func(h *Heap) func() { l := h.NewLocal(); return func() { l.Calloc(1, 100) } },
		"Local.Realloc":      func(h *Heap) func() { l := h.NewLocal(); return func() { l.Realloc(nil, 100) } },
		"Local.Destroy":      func(h *Heap) func() { l := h.NewLocal(); return func() { l.Destroy() } },
	} {
		t.Run(name, func(t *testing.T) {
			testheap.MustReport(t, true, func() {
				f := use(Default())
				testheap.InTurns(f, f)
			})
		})
		t.Run("passed/"+name, func(t *testing.T) {
			testheap.MustReport(t, false, func() {
				f, passed := use(Default()), make(chan bool, 1)
				testheap.InTurns(func() { f(); passed <- true }, func() { <-passed; f() })
			})
		})
	}
}

// TestRaceReported writes to a block from two goroutines that have nothing to do
// with each other.
func TestRaceReported(t *testing.T) {
	t.Run("same block", func(t *testing.T) {
		testheap.MustReport(t, true, func() {
			p := (*int)(Default().Malloc(100))
			testheap.InTurns(func() { *p = 1 }, func() { *p = 2 })
		})
	})
	t.Run("after free", func(t *testing.T) {
		testheap.MustReport(t, true, func() {
			runtime.GOMAXPROCS(1) // so that the second gets the block of the first
			p := (*int)(Default().Malloc(100))
			testheap.InTurns(func() { Default().Free(unsafe.Pointer(p)) }, func() { *(*int)(Default().Malloc(100)) = 1 }, func() { *p = 2 })
		})
	})
	// That both use the heap must not look like synchronization, whatever locks
	// they come by. What the first frees, the second does not get.
	for name, size := range map[string]int{"class": 64, "not cached": 20_000, "large": 100_000, "mapping": span.OwnMapping} {
		t.Run("allocating "+name, func(t *testing.T) {
			testheap.MustReport(t, true, func() {
				p := (*int)(Default().Malloc(8))
				freed, kept := Default().Malloc(48), Default().Malloc(48)
				testheap.InTurns(func() {
					*p = 1
					Default().Free(freed)
					busy(size)
				}, func() {
					busy(size)
					*p = 2
				})
				Default().Free(kept)
			})
		})
	}
	t.Run("resizing in place", func(t *testing.T) {
		testheap.MustReport(t, true, func() {
			sample.SetRate(0) // a sampled block moves
			p, first, second := (*int)(Default().Malloc(8)), Default().Malloc(33_000), Default().Malloc(33_000)
			testheap.InTurns(func() { *p = 1; Default().Realloc(first, 50_000) }, func() { Default().Realloc(second, 50_000); *p = 2 })
		})
	})
}

// busy allocates blocks that it keeps.
func busy(size int) {
	for range 20 {
		Default().Malloc(size)
	}
}

// notes are addresses that the test keeps without the detector's knowledge.
type notes struct {
	addr [32]uintptr
	n    int
}

//go:norace
func (s *notes) add(p unsafe.Pointer) {
	s.addr[s.n] = uintptr(p)
	s.n++
}

//go:norace
func (s *notes) at(i int) uintptr { return s.addr[i] }

//go:norace
func (s *notes) has(p unsafe.Pointer) bool {
	for _, a := range s.addr {
		if a == uintptr(p) {
			return true
		}
	}
	return false
}

// TestRaceHandedOn gives blocks from one goroutine to another through Free and
// Malloc, and nothing else. That is enough.
func TestRaceHandedOn(t *testing.T) {
	for name, row := range map[string]struct {
		size int
		last func(h *Heap) // of the first goroutine
		get  func(h *Heap, l *Local, size int) unsafe.Pointer
	}{
		"smallest":   {size: 16},
		"class":      {size: 1000},
		"not cached": {size: 20_000},
		"large":      {size: 100_000},
		"mapping":    {size: span.OwnMapping},
		"Trim":       {size: 1000, last: (*Heap).Trim},
		"Trim large": {size: 100_000, last: (*Heap).Trim},
		"Local":      {size: 1000, last: (*Heap).Trim, get: func(_ *Heap, l *Local, size int) unsafe.Pointer { return l.Malloc(size) }},
		"Calloc":     {size: 1000, get: func(h *Heap, _ *Local, size int) unsafe.Pointer { return h.Calloc(1, size) }},
		"Calloc large": {size: 100_000, get: func(h *Heap, _ *Local, size int) unsafe.Pointer {
			return h.Calloc(1, size)
		}},
		"Realloc": {size: 1000, get: func(h *Heap, _ *Local, size int) unsafe.Pointer {
			return h.Realloc(h.Malloc(10), size)
		}},
		"Realloc larger": {size: 100_000, get: func(h *Heap, _ *Local, size int) unsafe.Pointer {
			return h.Realloc(h.Malloc(65_536), size)
		}},
		"other class": {size: 1000, last: (*Heap).Trim, get: func(h *Heap, _ *Local, size int) unsafe.Pointer {
			return h.Malloc(65_536) // in the same span
		}},
	} {
		t.Run(name, func(t *testing.T) {
			testheap.MustReport(t, false, func() {
				runtime.GOMAXPROCS(1) // so that the second gets the blocks of the first
				h, err := New(Options{})
				if err != nil {
					panic(err)
				}
				l := h.NewLocal()
				var freed notes
				again := 0
				testheap.InTurns(func() {
					for range 5 {
						p := h.Malloc(row.size)
						shadow.Fill(p, row.size, 1)
						freed.add(p)
					}
					for i := range 5 {
						h.Free(osmem.Pointer(freed.at(i)))
					}
					if row.last != nil {
						row.last(h)
					}
				}, func() {
					for range 20 {
						var p unsafe.Pointer
						if row.get == nil {
							p = h.Malloc(row.size)
						} else {
							p = row.get(h, l, row.size)
						}
						if freed.has(p) {
							again++
						}
						shadow.Fill(p, row.size, 2)
					}
				})
				// A mapping goes back to the system, and what Realloc needs
				// first may take the others' place. The portable twin
				// gives each goroutine a cache.
				if again == 0 && name != "mapping" && name != "Realloc" && !percpu.Portable {
					panic("no block was handed out again; this says nothing")
				}
			})
		})
	}
}

// TestRaceOfAllocator has the allocator alone hammered, with every byte of every
// block written. Nothing of it is a race.
func TestRaceOfAllocator(t *testing.T) {
	testheap.MustReport(t, false, func() {
		span.SetDecay(time.Millisecond)
		var wg sync.WaitGroup
		for g := range 6 {
			wg.Go(func() {
				for i := range 8 {
					h, err := New(Options{})
					if err != nil {
						panic(err)
					}
					l := h.NewLocal()
					for j, a := range []Allocator{Default(), h, l, Default().NewLocal()} {
						var blocks []unsafe.Pointer
						for k := range 60 {
							size := []int{16, 200, 3000, 20_000, 70_000}[(g+i+j+k)%5]
							p := a.Malloc(size)
							clear(unsafe.Slice((*byte)(p), size))
							blocks = append(blocks, p)
						}
						if i == g {
							blocks = append(blocks, a.Malloc(span.OwnMapping))
						}
						for k, p := range blocks {
							if j == 0 && k%7 == 0 {
								p = Default().Realloc(p, 40_000)
							}
							a.Free(p)
						}
						if l, ok := a.(*Local); ok && i%2 == 0 {
							l.Destroy()
						}
					}
					Trim()
					h.Stats()
					h.DestroyAll()
				}
			})
		}
		wg.Wait()
	})
}

// TestRaceOfMessages has goroutines make mistakes, and get no memory, at the same time.
// What they are told is text that package fmt has made, with locks that the detector must
// see.
func TestRaceOfMessages(t *testing.T) {
	for name, f := range map[string]func(h *Heap, wait func()){
		"mistakes": func(h *Heap, wait func()) {
			l := h.NewLocal()
			p, large := h.Malloc(100), h.Malloc(100_000)
			h.Free(p)
			h.Free(large)
			wait() // or another goroutine gets p, and the second Free frees the block of that one
			for range 100 {
				testcall.Catch(func() { h.Free(p) })
				testcall.Catch(func() { h.Free(large) })
				testcall.Catch(func() { l.Free(p) })
				testcall.Catch(func() { h.Free(unsafe.Pointer(l)) })
			}
		},
		"no memory": func(h *Heap, _ func()) {
			for range 100 {
				for _, size := range []int{1000, 30_000, 100_000, span.OwnMapping} {
					for {
						if _, err := h.TryMalloc(size); err != nil {
							_ = err.Error()
							break
						}
					}
				}
			}
		},
		"destroyed": func(h *Heap, _ func()) {
			other, err := New(Options{})
			if err != nil {
				panic(err)
			}
			other.DestroyAll()
			for range 100 {
				testcall.Catch(func() { other.Calloc(1, 1) })
				testcall.Catch(func() { new(Heap).Destroy() })
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			testheap.MustReport(t, false, func() {
				h, err := New(Options{})
				if err != nil {
					panic(err)
				}
				if name == "no memory" {
					h.Free(h.Malloc(1))
					fault := func(osmem.Op, uintptr) error { return testheap.ErrRefused }
					osmem.Fault.Store(&fault)
				}
				const goroutines = 4
				var wg, all sync.WaitGroup
				all.Add(goroutines)
				for range goroutines {
					wg.Go(func() {
						f(h, func() {
							all.Done()
							all.Wait()
						})
					})
				}
				wg.Wait()
			})
		})
	}
}

// TestRaceOfCheckedDestroy destroys a checked heap, at whose headers Destroy looks: with blocks in
// use, and with blocks in quarantine. Another goroutine gets their memory from another heap.
func TestRaceOfCheckedDestroy(t *testing.T) {
	for name, destroy := range map[string]func(h *Heap, blocks []unsafe.Pointer) error{
		"in use": func(h *Heap, _ []unsafe.Pointer) error { return h.DestroyAll() },
		"quarantine": func(h *Heap, blocks []unsafe.Pointer) error {
			testheap.FreeAll(h, blocks)
			return h.Destroy()
		},
	} {
		t.Run(name, func(t *testing.T) {
			testheap.MustReport(t, false, func() {
				var heaps [2]*Heap
				for i := range heaps {
					var err error
					if heaps[i], err = New(Options{Check: CheckBlocks}); err != nil {
						panic(err)
					}
				}
				var blocks []unsafe.Pointer
				for range 100 {
					blocks = append(blocks, heaps[0].Malloc(1000), heaps[0].Malloc(100_000))
				}
				testheap.InTurns(func() {
					if err := destroy(heaps[0], blocks); err != nil {
						panic(err)
					}
				}, func() {
					for range 1000 {
						heaps[1].Malloc(1000)
					}
					heaps[1].Malloc(100_000)
				})
			})
		})
	}
}

// TestRaceOfSamples has goroutines sample the first blocks of a heap at the same time, and free
// so many that their pages are released, some of them later by a timer.
func TestRaceOfSamples(t *testing.T) {
	for _, rate := range []int64{1, 64 << 10} {
		t.Run(fmt.Sprint("rate=", rate), func(t *testing.T) {
			testheap.MustReport(t, false, func() {
				sample.SetRate(rate)
				var wg sync.WaitGroup
				for range 20 {
					h, err := New(Options{})
					if err != nil {
						panic(err)
					}
					for range 4 {
						wg.Go(func() {
							var blocks []unsafe.Pointer
							for i := range 100 {
								blocks = append(blocks, h.Malloc(32_000-i*16))
							}
							testheap.FreeAll(h, blocks)
						})
					}
				}
				wg.Wait()
				for h := range heaps.Range {
					if all := h.(*Heap).sampled.Load(); all != nil {
						for all.putOff.Load() { // its timer has not run
							time.Sleep(time.Millisecond)
						}
					}
				}
			})
		})
	}
}
