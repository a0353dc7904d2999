//go:build !cheap_gomem

package pace

import (
	"testing"
	"unsafe"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/internal/mem/span"
	"github.com/cheapgo/cheap/internal/test/testcall"
)

// TestIdleMemory frees blocks of a heap. A collection returns what is idle beyond what may
// come, and all of it if it is for a request at a limit.
func TestIdleMemory(t *testing.T) {
	defer cheap.SetDecay(cheap.SetDecay(-1)) // nothing else returns it
	defer cheap.Trim()
	b := newBuffers()
	a := newAccount(t, AccountOptions{Limit: 100 * mib})
	free := func() {
		const size = 256 * kib // a megabyte has a mapping of its own on 32-bit systems
		var all []unsafe.Pointer
		for range 64 * mib / size {
			p := b.heap.Malloc(size)
			fill(p, size)
			all = append(all, p)
		}
		for _, p := range all {
			b.heap.Free(p)
		}
	}
	p := start(t, Options{})
	free()
	testcall.Must(t, a.Add(40*mib))
	paced(t, p, a)
	if idle, most := int64(span.Idle()), max(p.bound.Load()-auto(), 0)+spareIdle; idle > most || idle < mib {
		t.Errorf("%d MiB are idle after a collection, want at most %d, and some", idle/mib, most/mib)
	}
	free()
	if err := a.Wait(t.Context(), 100*mib); err == nil {
		t.Error("not refused")
	}
	settled(t, p)
	if idle := int64(span.Idle()); idle > mib {
		t.Errorf("%d MiB are idle after a collection at a limit", idle/mib)
	}
	free()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.bound.Store(0)
	if p.trim(false); int64(span.Idle()) > spareIdle || span.Idle() < mib {
		t.Errorf("%d KiB are idle, where nothing may come until the next collection", span.Idle()/kib)
	}
	p.scarce.Store(true)
	if p.trim(false); span.Idle() > mib {
		t.Errorf("%d MiB are idle where there is no room", span.Idle()/mib)
	}
	p.scarce.Store(false)
}
