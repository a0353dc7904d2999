package cheap

import (
	"testing"
	"unsafe"
)

// sizedFake is a fakeAlloc with a largest size.
type sizedFake struct {
	*fakeAlloc
	max int
}

func (a *sizedFake) MaxSize() int { return a.max }

func (a *sizedFake) Malloc(size int) unsafe.Pointer {
	if size > a.max {
		a.t.Fatalf("Malloc(%d) reached a tier of %d", size, a.max)
	}
	return a.fakeAlloc.Malloc(size)
}

func (a *sizedFake) Contains(p unsafe.Pointer) bool {
	_, ok := a.blocks[p]
	return ok
}

func TestFallbackTiers(t *testing.T) {
	small := &sizedFake{fakeAlloc: newFake(t), max: 16}
	medium := &sizedFake{fakeAlloc: newFake(t), max: 100}
	rest := newFake(t)
	f := NewFallback(small, NewFallback(medium, rest))

	var blocks []unsafe.Pointer
	for _, size := range []int{0, 16, 17, 100, 101, 5000} {
		blocks = append(blocks, f.Malloc(size))
	}
	for name, a := range map[string]*fakeAlloc{"small": small.fakeAlloc, "medium": medium.fakeAlloc, "rest": rest} {
		if len(a.blocks) != 2 {
			t.Errorf("%s has %d blocks, want 2", name, len(a.blocks))
		}
	}
	for _, p := range blocks {
		f.Free(p)
	}
	f.Free(nil)
	if n := small.live() + medium.live() + rest.live(); n != 0 {
		t.Errorf("%d bytes live", n)
	}

	// A tier without memory is passed over, and its blocks still find home.
	p := f.Malloc(1)
	small.fail = true
	q := f.Malloc(1)
	if len(medium.blocks) != 1 {
		t.Errorf("the second tier has %d blocks", len(medium.blocks))
	}
	f.Free(p)
	f.Free(q)
}

func TestFallbackAligned(t *testing.T) {
	small := &sizedFake{fakeAlloc: newFake(t), max: 100} // not an AlignedAllocator
	rest := newFake(t)
	if p := NewFallback(small, rest).AlignedMalloc(10, 64); p != nil {
		t.Errorf("AlignedMalloc without a tier that can = %p", p)
	}
	wantMisuse(t, "Fallback.AlignedMalloc", func() { NewFallback(small, rest).AlignedMalloc(10, 12) }, "12")
	p := NewFallback(small, fakeAligned{rest}).AlignedMalloc(10, 4096)
	if p == nil || uintptr(p)%4096 != 0 {
		t.Errorf("AlignedMalloc = %p", p)
	}
}
