package batch

import (
	"fmt"
	"slices"
	"testing"
	"unsafe"

	"github.com/cheapgo/cheap/internal/mem/osmem"
	"github.com/cheapgo/cheap/internal/mem/span"
	"github.com/cheapgo/cheap/internal/test/testcall"
)

// TestUnitNames checks that units of the store bear the name of owners, but not more than
// mostNamed at a time, and that of heaps when they go back.
func TestUnitNames(t *testing.T) {
	if osmem.GoBacked {
		return // Go's memory has Go's names
	}
	testcall.Must(t, span.Init())
	store.mu.Lock()
	defer store.mu.Unlock()
	var calls []string
	defer osmem.ReplaceName(func(addr, size uintptr, p osmem.Purpose) error {
		if size == span.UnitSize {
			calls = append(calls, fmt.Sprintf("%#x %s", addr, p))
		}
		return nil
	})()
	var taken []unsafe.Pointer
	for range mostNamed + 10 {
		p := units{}.AlignedMalloc(span.UnitSize, span.UnitSize)
		if p == nil {
			t.Fatal("no unit")
		}
		taken = append(taken, p)
	}
	first := fmt.Sprintf("%p %s", taken[0], osmem.Owners)
	owners := 0
	for _, c := range calls {
		var addr, cheap, what string
		fmt.Sscan(c, &addr, &cheap, &what)
		if what == "owners" {
			owners++
		}
	}
	if owners != mostNamed || !slices.Contains(calls, first) {
		t.Errorf("%d units are named, want %d, with %s", owners, mostNamed, first)
	}
	calls = nil
	for _, p := range taken {
		units{}.Free(p)
	}
	if len(named) != 0 || !slices.Contains(calls, fmt.Sprintf("%p %s", taken[0], osmem.Heap)) {
		t.Errorf("%d units are named, after they went back; calls %q", len(named), calls[:min(3, len(calls))])
	}
}
