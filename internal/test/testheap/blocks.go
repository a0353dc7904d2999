package testheap

import (
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/cheapgo/cheap/internal/test/shadow"
	"github.com/cheapgo/cheap/internal/watch/sample"
)

// An Allocator is a Heap or a Local.
type Allocator interface {
	Malloc(size int) unsafe.Pointer
	Free(ptr unsafe.Pointer)
}

// A Handed block is on its way from one goroutine to another. It is filled with the pattern of its
// seed.
type Handed struct {
	P    unsafe.Pointer
	Size int
	Seed uint64
}

// Wrap allocates a block and fills it.
func Wrap(a Allocator, size int, seed uint64) Handed {
	p := a.Malloc(size)
	shadow.Fill(p, size, seed)
	return Handed{p, size, seed}
}

// Unwrap looks at the contents of a block and frees it.
func (b Handed) Unwrap(t *testing.T, a Allocator) {
	if err := shadow.Check(b.P, b.Size, b.Seed); err != nil {
		t.Errorf("block at %p of %d bytes: %v", b.P, b.Size, err)
	}
	a.Free(b.P)
}

// FreeAll frees blocks.
func FreeAll(a Allocator, blocks []unsafe.Pointer) {
	for _, p := range blocks {
		a.Free(p)
	}
}

// SomeSizes has a size of each kind of class: the smallest, with large batches, with small ones, not
// cached, and the largest.
var SomeSizes = []int{0, 16, 48, 100, 1024, 3000, 4096, 8192, 9000, 16384, 32768, 33_000, 40_000, 50_000, 65_536}

// HugePage is the size of one.
const HugePage = 2 << 20

var names atomic.Int64

// UniqueName returns a name for a heap whose samples are not to be counted with those of another,
// also where a test runs several times.
func UniqueName(t *testing.T) string { return fmt.Sprint(t.Name(), " ", names.Add(1)) }

// SampledIn adds up the sites of a heap whose stacks have a function with that name; all of them if
// it is "".
func SampledIn(heap, function string) (sum sample.Site) {
	for _, s := range sample.Sites() {
		if s.Heap != heap || function != "" && !strings.Contains(stackText(s.PCs), function) {
			continue
		}
		sum.Allocs += s.Allocs
		sum.Frees += s.Frees
		for i, n := range s.Lives {
			sum.Lives[i].Blocks += n.Blocks
		}
	}
	return sum
}

func stackText(pcs []uintptr) string {
	var b strings.Builder
	for frames := runtime.CallersFrames(pcs); ; {
		f, more := frames.Next()
		fmt.Fprintln(&b, f.Function)
		if !more {
			return b.String()
		}
	}
}
