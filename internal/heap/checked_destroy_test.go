//go:build !race || !cheap_gomem

package heap

// Not where the race detector sees blocks, as in hammer_destroy_test.go.

import (
	"testing"
	"unsafe"

	"github.com/cheapgo/cheap/internal/mem/account"
	"github.com/cheapgo/cheap/internal/mem/span"
	"github.com/cheapgo/cheap/internal/test/testcall"
	"github.com/cheapgo/cheap/internal/test/testheap"
	"github.com/cheapgo/cheap/internal/test/testwait"
)

// mustWait runs use in a goroutine until it calls pause, which returns then. Meanwhile destroy
// runs, and must not come to its end before use goes on.
func mustWait(t *testing.T, use func(pause func()), destroy func() error) {
	t.Helper()
	entered, proceed := make(chan bool), make(chan bool)
	used, destroyed := make(chan any, 1), make(chan any, 1)
	go func() {
		used <- testcall.Catch(func() { use(func() { close(entered); <-proceed }) })
	}()
	<-entered
	go func() {
		var err error
		if v := testcall.Catch(func() { err = destroy() }); v != nil {
			destroyed <- v
		} else {
			destroyed <- err
		}
	}()
	testwait.Until(t, "it waits", func() bool {
		select {
		case v := <-destroyed:
			t.Errorf("the heap is destroyed while a call runs: %v", v)
			destroyed <- v
			return true
		default:
			return waitsIn("(*Heap).destroy")
		}
	})
	close(proceed)
	if m, ok := (<-used).(*MisuseError); ok && m.Reason != "the heap is destroyed" {
		t.Errorf("the call panics: %v", m)
	}
	if v := <-destroyed; v != nil {
		t.Errorf("DestroyAll returns %v", v)
	}
}

// waitsIn reports whether a goroutine is in a function with that name, and yields there or
// waits for a lock.
func waitsIn(name string) bool { return testheap.IsIn(name, "runtime.Gosched(", "sync.(*Mutex).Lock(") }

// TestCheckedDestroyWaits stops calls of a checked heap at places where they have memory in hand.
func TestCheckedDestroyWaits(t *testing.T) {
	other := account.Process.Open(account.Options{Name: "TestCheckedDestroyWaits"})
	defer other.Close()
	for name, c := range map[string]struct {
		notify int  // the call stops where it calls account.Notify so often
		bare   bool // the block has no header yet
		use    func(h *Heap, p unsafe.Pointer)
	}{
		"Malloc, without a header": {1, true, func(h *Heap, p unsafe.Pointer) { h.Malloc(100_000) }},
		"Malloc":                   {2, false, func(h *Heap, p unsafe.Pointer) { h.Malloc(100_000) }},
		"Realloc":                  {1, false, func(h *Heap, p unsafe.Pointer) { h.Realloc(p, 200) }},
		"Calloc":                   {1, false, func(h *Heap, p unsafe.Pointer) { h.Calloc(2, 100) }},
		"Local.Calloc":             {1, false, func(h *Heap, p unsafe.Pointer) { h.NewLocal().Calloc(2, 100) }},
	} {
		t.Run(name, func(t *testing.T) {
			h := newCheckedHeap(t, Options{Check: CheckBlocks})
			p := h.Malloc(100)
			mustWait(t, func(pause func()) {
				calls := 0
				account.Process.SetPacer(pressureFunc(func() {
					if calls++; calls == c.notify {
						account.Process.SetBounds(account.Bounds{HeldAt: account.NoBound, ReclaimableAt: account.NoBound, Ceiling: account.NoBound})
						if c.bare {
							span.Each(h.id, &h.regions, func(s *span.Span) {
								if s.LoadTag()&span.KindMask == span.KindLarge {
									*headerAt(s.Base) = checkedHeader{} // that of an earlier heap, perhaps
									s.Filled = false                    // as after a heap that does not fill
								}
							})
						}
						pause()
					} else {
						other.TryCharge(1) // has the next Notify call Pressure as well
					}
				}))
				account.Process.SetBounds(account.Bounds{HeldAt: 0, ReclaimableAt: account.NoBound, Ceiling: account.NoBound})
				other.TryCharge(1)
				c.use(h, p)
			}, h.DestroyAll)
			account.Process.SetPacer(nil)
			other.Uncharge(other.Held())
		})
	}
	t.Run("under the lock", func(t *testing.T) {
		h := newCheckedHeap(t, Options{Check: CheckBlocks})
		h.Malloc(100)
		mustWait(t, func(pause func()) {
			h.checked.lock("Heap.Malloc") // under which a header is written
			pause()
			h.checked.mu.Unlock()
		}, func() error { return h.destroyQuietly("Heap.DestroyAll", true) }) // without the check, which waits as well
		h.account.Close()
		heaps.Delete(h)
	})
}

// TestLocalCallocInDestroy destroys a heap while a Local that has no cache is about to clear a block
// of it.
func TestLocalCallocInDestroy(t *testing.T) {
	testheap.WithRate(t, 0)
	h := NewHeap(t, Options{Limit: 1 << 20})
	other := account.Process.Open(account.Options{Name: "TestLocalCallocInDestroy"})
	defer other.Close()
	l := h.NewLocal()
	h.Trim()
	l.misses = mostMisses // as where the limit leaves no room for a cache
	mustWait(t, func(pause func()) {
		account.Process.SetPacer(pressureFunc(func() {
			account.Process.SetBounds(account.Bounds{HeldAt: account.NoBound, ReclaimableAt: account.NoBound, Ceiling: account.NoBound})
			pause()
		}))
		account.Process.SetBounds(account.Bounds{HeldAt: 0, ReclaimableAt: account.NoBound, Ceiling: account.NoBound})
		other.TryCharge(1)
		l.Calloc(1, 5000)
	}, h.DestroyAll)
	account.Process.SetPacer(nil)
	other.Uncharge(other.Held())
	l.Destroy()
}
