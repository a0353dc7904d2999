//go:build cgo

package bench

import (
	"testing"

	original "github.com/CannibalVox/cgoparam"

	dropin "github.com/cheapgo/cheap/x/cgoparam"
)

// The two benchmarks of cgoparam v1.1.0 that are not of C's malloc: four blocks,
// which fit in the original's page, and ten, which do not.
var theTwo = []struct {
	name             string
	n                int // operations in a round of a comparison
	dropin, original work
}{
	{"CgoparamSmallBatch", 50_000, repeat(dropinSmallBatch), repeat(originalSmallBatch)},
	{"CgoparamMultipage", 20_000, repeat(dropinMultipage), repeat(originalMultipage)},
}

func repeat(f func()) work {
	return func(n int) {
		for range n {
			f()
		}
	}
}

func originalSmallBatch() {
	alloc := original.GetAlloc()
	defer original.ReturnAlloc(alloc)

	_ = alloc.Malloc(1)
	_ = alloc.Malloc(10)
	_ = alloc.Malloc(100)
	_ = alloc.Malloc(1000)
}

func dropinSmallBatch() {
	alloc := dropin.GetAlloc()
	defer dropin.ReturnAlloc(alloc)

	_ = alloc.Malloc(1)
	_ = alloc.Malloc(10)
	_ = alloc.Malloc(100)
	_ = alloc.Malloc(1000)
}

func originalMultipage() {
	alloc := original.GetAlloc()
	defer original.ReturnAlloc(alloc)

	for range 10 {
		_ = alloc.Malloc(1000)
	}
}

func dropinMultipage() {
	alloc := dropin.GetAlloc()
	defer dropin.ReturnAlloc(alloc)

	for range 10 {
		_ = alloc.Malloc(1000)
	}
}

// cgoparamRows compares the drop-in with the original.
func cgoparamRows() []row {
	var all []row
	for _, s := range theTwo {
		always := func(w work) contender { return func(testing.TB) work { return w } }
		all = append(all, row{s.name + "/allocator=dropin", "cgoparam", paired(s.n, always(s.dropin), always(s.original))})
	}
	return all
}

// BenchmarkCgoparam runs the two on the original and through the drop-in.
func BenchmarkCgoparam(b *testing.B) {
	for _, s := range theTwo {
		b.Run("work="+s.name+"/package=original", func(b *testing.B) { s.original(b.N) })
		b.Run("work="+s.name+"/package=dropin", func(b *testing.B) { s.dropin(b.N) })
	}
}
