//go:build cgo

package calls_test

import (
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"github.com/cheapgo/cheap/calls"
)

// goPointers calls f, which must panic as cgo does for a Go pointer in Go memory.
func goPointers(t *testing.T, f func()) {
	t.Helper()
	defer func() {
		t.Helper()
		err, ok := recover().(runtime.Error)
		if !ok || !strings.Contains(err.Error(), "cgo") {
			t.Errorf("no panic of cgo, but %v", err)
		}
	}()
	f()
}

// TestGoPointers has Go pointers in memory that is passed to C.
func TestGoPointers(t *testing.T) {
	l := calls.New()
	inner := new([64]byte)
	outer := &struct {
		p *[64]byte
		n int
	}{inner, 1}
	goPointers(t, func() { l.Pin(unsafe.Pointer(outer)) })
	l.Pin(unsafe.Pointer(inner))
	l.Pin(unsafe.Pointer(outer)) // its pointer is pinned now
	none := &struct{ p *[64]byte }{}
	l.Pin(unsafe.Pointer(none))
	l.Reset()
	goPointers(t, func() { l.Pin(unsafe.Pointer(outer)) }) // unpinned by Reset
	l.Reset()
	runtime.KeepAlive(inner)
}

// TestDroppedPins lets go of lists that have pinned memory, which must not end the program.
func TestDroppedPins(t *testing.T) {
	for range 100 {
		l := calls.New()
		l.Bytes(make([]byte, 2*calls.CopyMax))
		l.String("text")
	}
	for range 5 {
		runtime.GC()
	}
}
