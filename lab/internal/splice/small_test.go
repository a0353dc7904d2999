//go:build cgo && unix

package splice

import (
	"runtime"
	"testing"
	"unsafe"

	"github.com/cheapgo/cheap/internal/cside"
)

// TestSmallRows checks what C counts, and that a small object has 8 bytes.
func TestSmallRows(t *testing.T) {
	if size := unsafe.Sizeof(small{}); size != 8 {
		t.Errorf("a small object has %d bytes", size)
	}
	for _, row := range smallRows() {
		t.Run(row.Name, func(t *testing.T) {
			work, err := row.Open(1)
			if err != nil {
				t.Fatal(err)
			}
			for _, n := range []int{1, 3000} {
				before := cside.Count()
				work.Run(n)
				if err := work.Settle(); err != nil {
					t.Fatal(err)
				}
				if err := work.Check(n); err != nil {
					t.Error(err)
				}
				if after := cside.Count(); after.Created-before.Created != uint64(n) || after.Destroyed != after.Created {
					t.Errorf("%d objects: C counts %+v, then %+v", n, before, after)
				}
			}
			if work.Check(1) == nil {
				t.Error("a round without objects passes for one of 1")
			}
		})
	}
}

// TestAlone fails if other objects are in the spans of small objects.
func TestAlone(t *testing.T) {
	class := func() uint64 {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.BySize[1].Mallocs // objects of 8 bytes, with and without pointers
	}
	const n = 4000
	before := class()
	for range n {
		smallSink = smallWithFinalizer()
	}
	if got := class() - before; got < n || got > n+n/100 {
		t.Errorf("%d small objects are %d of 8 bytes", n, got)
	}
	if err := settle(); err != nil {
		t.Fatal(err)
	}
}
