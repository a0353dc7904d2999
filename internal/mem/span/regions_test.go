package span

import (
	"slices"
	"sync"
	"testing"

	"github.com/cheapgo/cheap/internal/test/testcall"
)

// TestEach finds the spans of a heap.
func TestEach(t *testing.T) {
	const heap, other = 1 << 20, 1<<20 + 1
	var want []uintptr
	small := allocRun(t, nil, 5, 1)
	for i := range 5 {
		s := Find(small.base + uintptr(i)*UnitSize)
		s.Base = small.base + uintptr(i)*UnitSize
		s.StoreTag(uintptr(heap+i%2)<<KindBits | 3)
		if i%2 == 0 {
			want = append(want, s.Base)
		}
	}
	large := allocRun(t, nil, 3, 1)
	own, space, err := AllocMapping(OwnMapping, 1)
	testcall.Must(t, err)
	for _, base := range []uintptr{large.base, own} {
		s := Find(base)
		s.Base = base
		s.StoreTag(heap<<KindBits | KindLarge)
		Find(base + UnitSize).StoreTag(heap<<KindBits | KindBody)
		want = append(want, base)
	}
	var in Regions
	in.Add(small.base)
	in.Add(large.base)
	var got []uintptr
	Each(heap, &in, func(s *Span) { got = append(got, s.Base) })
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("found %x, want %x", got, want)
	}
	Each(heap, &Regions{}, func(s *Span) {
		if s.Base != own {
			t.Errorf("found %#x, in a region that was not added", s.Base)
		}
	})
	for i := range 5 {
		Find(small.base + uintptr(i)*UnitSize).StoreTag(0)
	}
	for _, base := range []uintptr{large.base, large.base + UnitSize, own, own + UnitSize} {
		Find(base).StoreTag(0)
	}
	Each(heap, &in, func(s *Span) { t.Errorf("found %#x, which belongs to no heap", s.Base) })
	if was := Find(own).Was; was>>KindBits != heap {
		t.Errorf("Was is %#x", was)
	}
	Free(small.base, 5)
	Free(large.base, 3)
	FreeMapping(own, space)
}

// TestFilled frees units as filled, and wants them to be so for AllocFilled and AllocCarved until
// another caller has had them, or the system.
func TestFilled(t *testing.T) {
	TrimAll()
	get := func() (base uintptr, fresh, filled bool) {
		t.Helper()
		base, fresh, filled, err := AllocFilled(4, 1, 4*UnitSize)
		testcall.Must(t, err)
		return base, fresh, filled
	}
	want := func(when string, fresh, filled bool) {
		t.Helper()
		base, isFresh, isFilled := get()
		if isFresh != fresh || !isFresh && isFilled != filled {
			t.Errorf("%s: fresh %v, filled %v", when, isFresh, isFilled)
		}
		Free(base, 4)
	}
	base, _, _ := get()
	FreeFilled(base, 4)
	want("filled", false, true)
	want("freed by another", false, false)
	base, _, _ = get()
	FreeFilled(base, 4)
	one, _, filled, err := AllocCarved(UnitSize)
	if err != nil || !filled {
		t.Errorf("one unit: filled %v, %v", filled, err)
	}
	FreeCarved(one)
	want("one of four was another's", false, false)
	base, _, _ = get()
	FreeFilled(base, 4)
	TrimAll()
	want("trimmed", true, true)
	TrimAll()
}

// TestRegions adds regions from several goroutines, in any order.
func TestRegions(t *testing.T) {
	var rs Regions
	bases := make([]uintptr, 3)
	for i := range bases {
		r := allocRun(t, nil, regionUnits/8, 1) // several regions, in most programs
		defer Free(r.base, regionUnits/8)
		bases[i] = r.base
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for i := range 1000 {
				rs.Add(bases[i%len(bases)])
			}
		})
	}
	wg.Wait()
	pages.mu.Lock()
	defer pages.mu.Unlock()
	for i, r := range pages.regions {
		want := slices.ContainsFunc(bases, func(base uintptr) bool { return base&^(RegionSize-1) == r.base })
		if rs.has(i) != want {
			t.Errorf("region %d: %v, want %v", i, rs.has(i), want)
		}
	}
}
