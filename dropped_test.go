package cheap

import (
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/cheapgo/cheap/internal/test/testcall"
	"github.com/cheapgo/cheap/internal/test/testchild"
	"github.com/cheapgo/cheap/internal/test/testwait"
)

// TestNothingIsLost drops Locals and pooled arenas in a program one of whose cleanups,
// or one of whose finalizers, never returns. Their memory comes back.
func TestNothingIsLost(t *testing.T) {
	type object [100]byte
	for name, block := range map[string]func(*atomic.Bool){
		"cleanup":   func(b *atomic.Bool) { runtime.AddCleanup(new(object), func(int) { b.Store(true); select {} }, 0) },
		"finalizer": func(b *atomic.Bool) { runtime.SetFinalizer(new(object), func(*object) { b.Store(true); select {} }) },
	} {
		t.Run(name, func(t *testing.T) {
			output, passed := testchild.Test(t, func(t *testing.T) {
				var blocked atomic.Bool
				testcall.Aside(func() { block(&blocked) })
				testwait.Until(t, "the queue of the runtime is blocked", func() bool {
					runtime.GC()
					return blocked.Load()
				})
				h, err := NewHeap(HeapOptions{})
				if err != nil {
					t.Fatal(err)
				}
				inner := &lockedFake{f: newFake(t)}
				home := new(arenaBox)
				home.owned.Store(true)
				testcall.Aside(func() {
					l := h.NewLocal()
					l.Free(l.Malloc(100))
					newPooledArena(inner, home)
				})
				if h.Stats().Cached == 0 || inner.live() == 0 {
					t.Fatal("nothing to lose")
				}
				testwait.Until(t, "their memory has come back", func() bool {
					runtime.GC()
					h.Trim()
					return h.Stats().Cached == 0 && inner.live() == 0 && !home.owned.Load()
				})
			}, "GOMAXPROCS=2", "GOGC=off")
			if !passed {
				t.Error(output)
			}
		})
	}
}
