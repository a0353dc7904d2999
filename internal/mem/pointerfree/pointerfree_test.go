package pointerfree

import (
	"sync"
	"testing"
)

type point struct{ X, Y int32 }

// What is refused, and in which words, is tested in package cheap.

func TestKnown(t *testing.T) {
	type (
		good struct{ A [2]point }
		bad  struct{ S string }
	)
	for range 2 {
		if Known((*bad)(nil)) || Check((*bad)(nil)) == "" {
			t.Error("a type with a pointer is known to have none")
		}
	}
	checkedSlot(addrOf[good]()).Store(0) // the test may have run before
	if Known((*good)(nil)) {
		t.Error("a type is known before it was looked at")
	}
	for range 2 {
		if reason := Check((*good)(nil)); reason != "" || !Known((*good)(nil)) {
			t.Errorf("a type without pointers: %q, and then not known", reason)
		}
	}
}

func TestTypesAreToldApart(t *testing.T) {
	type (
		a *int
		b *point
	)
	first := addrOf[int]()
	if addrOf[a]() == addrOf[b]() || addrOf[int]() == addrOf[uint]() || addrOf[int]() != first {
		t.Error("typeAddr does not tell types apart")
	}
}

// TestHammerCheck has every slot read and written by several goroutines.
func TestHammerCheck(t *testing.T) {
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 1000 {
				if !Known((*int)(nil)) {
					Check((*int)(nil))
				}
				Check((*[8]point)(nil))
				Check((*struct{ P point })(nil))
				checkedSlot(addrOf[int]()).Store(addrOf[point]())
			}
		})
	}
	wg.Wait()
}

func BenchmarkKnown(b *testing.B) {
	Check((*point)(nil))
	for b.Loop() {
		if !Known((*point)(nil)) {
			b.Fatal("not remembered")
		}
	}
}

// addrOf is typeAddr as Known calls it.
func addrOf[T any]() uintptr {
	var e any = (*T)(nil)
	return typeAddr(&e)
}
