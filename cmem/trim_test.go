//go:build linux && cgo && !asan && !msan

package cmem_test

import (
	"testing"
	"unsafe"

	"github.com/cheapgo/cheap/internal/test/testenv"
	"github.com/cheapgo/cheap/libc"
)

// TestTrim frees blocks between others that live. Package libc has the malloc below this package's give
// their memory back.
func TestTrim(t *testing.T) {
	testenv.Skip(t, "musl", "malloc of musl has no figure of this")
	const n, size = 2000, 32 << 10
	var a libc.Allocator
	blocks := make([]unsafe.Pointer, n)
	for i := range blocks {
		blocks[i] = a.Malloc(size)
		clear(unsafe.Slice((*byte)(blocks[i]), size))
	}
	for i, p := range blocks {
		if i%100 != 0 {
			a.Free(p)
		}
	}
	if got := libc.Trim(); got < n*size/2 {
		t.Errorf("Trim returned %d bytes, of %d that are free", got, n*size)
	}
	for i := 0; i < n; i += 100 {
		a.Free(blocks[i])
	}
}
