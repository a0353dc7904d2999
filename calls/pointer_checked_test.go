//go:build cgo && race && !cheap_gomem

package calls_test

import (
	"testing"
	"unsafe"

	"github.com/cheapgo/cheap/calls"
)

// TestUnpinned records Go pointers that are not pinned.
func TestUnpinned(t *testing.T) {
	c := newCalls()
	b := make([]byte, 100)
	p := unsafe.Pointer(&b[0])
	goPointers(t, func() { c.Sum(p, 100) })
	goPointers(t, func() { c.SumArgs(calls.Pointer(p), calls.Int(100)) })
	goPointers(t, func() { calls.LoadAt(p) })
	goPointers(t, func() { calls.Load32At(p) })
	c.Sum(c.List.Pin(p), 100)
	c.AddArgs(calls.LoadAt(p), calls.Load32At(p)) // it is pinned
	c.Sum(nil, 0)
	mustRun(t, c.List)
}

// TestRefusedPointer looks at what a call leaves whose pointer is refused.
func TestRefusedPointer(t *testing.T) {
	c := newCalls()
	b := make([]byte, 100)
	goPointers(t, func() { c.Sum(unsafe.Pointer(&b[0]), 100) })
	if n := c.List.Len(); n != 0 {
		t.Errorf("%d words were recorded", n)
	}
}
