package heap_test

import (
	"runtime"
	"strings"
	"testing"
	"unsafe"

	. "github.com/cheapgo/cheap/internal/heap"
	"github.com/cheapgo/cheap/internal/mem/osmem"
	"github.com/cheapgo/cheap/internal/test/testheap"
)

// hotPaths are the calls that promise neither a Go allocation nor a cgo call.
func hotPaths(t *testing.T) map[string]func() {
	h := NewHeap(t, Options{})
	ps := runtime.GOMAXPROCS(4) // leaves caches of Ps that do not run later
	testheap.OnAllPs(4, func() { h.Free(h.Malloc(64)) })
	runtime.GOMAXPROCS(ps)
	l := h.NewLocal()
	t.Cleanup(func() { l.Destroy() })
	p := h.Malloc(100)
	t.Cleanup(func() { h.Free(p) })
	var many [200]unsafe.Pointer // more than a cache holds
	return map[string]func(){
		"Malloc and Free":    func() { h.Free(h.Malloc(64)) },
		"of no size":         func() { h.Free(h.Malloc(0)) },
		"not cached":         func() { h.Free(h.Malloc(30_000)) },
		"large":              func() { h.Free(h.Malloc(70_000)) },
		"TryMalloc":          func() { q, _ := h.TryMalloc(64); h.Free(q) },
		"Calloc":             func() { h.Free(h.Calloc(10, 10)) },
		"AlignedMalloc":      func() { h.Free(h.AlignedMalloc(100, 256)) },
		"Realloc":            func() { h.Free(h.Realloc(h.Malloc(100), 300)) },
		"Realloc in place":   func() { h.Realloc(p, 110) },
		"UsableSize":         func() { h.UsableSize(p) },
		"Owns":               func() { h.Owns(unsafe.Pointer(&testheap.SomeSizes)) },
		"Local":              func() { l.Free(l.Malloc(64)) },
		"Local not cached":   func() { l.Free(l.Malloc(30_000)) },
		"Local Calloc":       func() { l.Free(l.Calloc(10, 10)) },
		"Local to Heap":      func() { h.Free(l.Malloc(64)) },
		"Heap to Local":      func() { l.Free(h.Malloc(64)) },
		"default heap":       func() { Default().Free(Default().Malloc(64)) },
		"Local AlignedBlock": func() { l.Free(l.AlignedMalloc(100, 128)) },
		"many": func() {
			for i := range many {
				many[i] = h.Malloc(128)
			}
			testheap.FreeAll(h, many[:])
		},
	}
}

// TestHotPathAllocs looks for Go allocations.
func TestHotPathAllocs(t *testing.T) {
	testheap.SetDecay(t, -1) // arming a timer allocates one
	for name, f := range hotPaths(t) {
		if n := testing.AllocsPerRun(1000, f); n != 0 {
			t.Errorf("%s: %v Go allocations", name, n)
		}
	}
}

// TestHotPathCgo looks for cgo calls. On Windows, which counts calls of the system, each span that is
// taken is committed by one.
func TestHotPathCgo(t *testing.T) {
	for name, f := range hotPaths(t) {
		before := runtime.NumCgoCall()
		for range 1000 {
			f()
		}
		most := testheap.FewCgoCalls()
		if osmem.DecommitRevokes && (name == "large" || strings.HasSuffix(name, "not cached")) {
			most += 1000
		}
		if n := runtime.NumCgoCall() - before; n > most {
			t.Errorf("%s: %d cgo calls in 1000 rounds", name, n)
		}
	}
}
