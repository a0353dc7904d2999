package heap_test

import (
	"bytes"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"os"
	"testing"
	"unsafe"

	. "github.com/cheapgo/cheap/internal/heap"
	"github.com/cheapgo/cheap/internal/mem/osmem"
	"github.com/cheapgo/cheap/internal/mem/race"
	"github.com/cheapgo/cheap/internal/mem/sizeclass"
	"github.com/cheapgo/cheap/internal/mem/span"
	"github.com/cheapgo/cheap/internal/test/shadow"
	"github.com/cheapgo/cheap/internal/test/testchild"
	"github.com/cheapgo/cheap/internal/test/testheap"
)

// matrixSizes are sizes up to twice the largest of a class: all up to dense, and from
// there on those beside the borders of classes, units and powers of two, and a few others.
func matrixSizes(dense int) (sizes []int) {
	const most = 2 * sizeclass.MaxSize
	border := map[int]bool{}
	for _, c := range sizeclass.Classes {
		border[int(c.Size)] = true
	}
	for n := 1; n <= most; n *= 2 {
		border[n] = true
	}
	for size := 0; size <= most+1; size++ {
		if size <= dense || size%997 == 0 || border[size-1] || border[size] || border[size+1] {
			sizes = append(sizes, size)
		}
	}
	return sizes
}

// TestAlignmentMatrix allocates some blocks of each size with each alignment, by a heap
// and by a Local. They are aligned and long enough, and do not overlap.
func TestAlignmentMatrix(t *testing.T) {
	h, l := NewHeapAndLocal(t, Options{})
	dense, count := 2048, 4
	if race.Build || osmem.GoBacked {
		dense, count = 256, 2
	}
	if *testheap.Long {
		dense, count = 2*sizeclass.MaxSize, 10
	}
	ways := []Allocator{h, l}
	blocks := make([]unsafe.Pointer, count)
	for _, size := range matrixSizes(dense) {
		for align := 1; align <= 2*span.UnitSize; align *= 2 {
			if align > max(64, 2*size) && !*testheap.Long && size%16 != 1 {
				continue
			}
			for i := range blocks {
				p := ways[i%2].AlignedMalloc(size, align)
				if usable := h.UsableSize(p); p == nil || uintptr(p)%uintptr(max(align, sizeclass.Quantum)) != 0 || usable < size {
					t.Fatalf("a block of %d bytes, aligned to %d: %p with %d bytes", size, align, p, usable)
				}
				markEnds(p, size, i+1)
				blocks[i] = p
			}
			for i, p := range blocks {
				if !hasEnds(p, size, i+1) {
					t.Fatalf("blocks of %d bytes, aligned to %d, overlap", size, align)
				}
				ways[(i/2)%2].Free(p)
			}
		}
	}
}

// markEnds writes to the first and to the last byte of a block.
func markEnds(p unsafe.Pointer, size, seed int) {
	if size > 0 {
		*(*byte)(p), *(*byte)(unsafe.Add(p, size-1)) = byte(seed), byte(seed)
	}
}

// hasEnds reports whether they are as markEnds has written them.
func hasEnds(p unsafe.Pointer, size, seed int) bool {
	return size == 0 || *(*byte)(p) == byte(seed) && *(*byte)(unsafe.Add(p, size-1)) == byte(seed)
}

// TestReallocMatrix makes a block of each size one of each other size, and back. It keeps
// the contents, up to the smaller size, also those that Calloc has zeroed, and all of its
// bytes may be written to. What is allocated zeroed afterwards is zero.
func TestReallocMatrix(t *testing.T) {
	h, l := NewHeapAndLocal(t, Options{})
	sizes := []int{0, 1, 15, 16, 17, 100, 127, 128, 129, 1023, 1024, 1025, 4095, 4096, 4097, 12_000, 32_767, 32_768, 32_769, 50_000,
		span.UnitSize - 1, span.UnitSize, span.UnitSize + 1, 3 * span.UnitSize, 1<<20 - 1, 1 << 20, 1<<20 + 1}
	if *testheap.Long {
		sizes = append(matrixSizes(0), sizes...)
	}
	slow := race.Build || osmem.GoBacked
	for i, from := range sizes {
		for j, to := range sizes {
			if !*testheap.Long && (slow && (i*7+j)%4 > 0 || max(from, to) > 100_000 && (i+j)%3 > 0) {
				continue
			}
			a := interface {
				Allocator
				Allocator
			}(h)
			if (i+j)%2 == 0 {
				a = l
			}
			reallocZeroed(t, a, from, to)
			reallocFilled(t, a, from, to)
			most := max(from, to)
			p := a.Calloc(most, 1)
			mustBeZero(t, p, most, "Calloc of %d bytes, after Realloc from %d to %d", most, from, to)
			a.Free(p)
			if t.Failed() {
				return
			}
		}
	}
}

// reallocZeroed makes a zeroed block of one size one of another.
func reallocZeroed(t *testing.T, a Allocator, from, to int) {
	t.Helper()
	p := a.Calloc(1, from)
	mustBeZero(t, p, from, "Calloc of %d bytes", from)
	p = a.Realloc(p, to)
	kept := min(from, to)
	mustBeZero(t, p, kept, "the first bytes of a zeroed block, after Realloc from %d to %d", from, to)
	p = a.Realloc(p, from)
	mustBeZero(t, p, kept, "the first bytes of a zeroed block, after Realloc from %d to %d and back", from, to)
	a.Free(p)
}

// reallocFilled does the same with a block all of whose bytes are written to.
func reallocFilled(t *testing.T, a Allocator, from, to int) {
	t.Helper()
	p := a.Malloc(from)
	for i, size := range []int{to, from} {
		usable := UsableSize(p)
		shadow.Fill(p, usable, uint64(i))
		p = a.Realloc(p, size)
		if usable > shadow.Whole {
			continue // the pattern has windows from there on, which end elsewhere in another size
		}
		if err := shadow.Check(p, min(usable, size), uint64(i)); err != nil {
			t.Errorf("Realloc from %d to %d bytes: %v", from, to, err)
		}
	}
	shadow.Fill(p, UsableSize(p), 9)
	a.Free(p)
}

var zeros [1 << 20]byte

// mustBeZero looks at n bytes from p on.
func mustBeZero(t *testing.T, p unsafe.Pointer, n int, what string, args ...any) {
	t.Helper()
	for b := unsafe.Slice((*byte)(p), n); len(b) > 0; b = b[min(len(b), len(zeros)):] {
		if part := b[:min(len(b), len(zeros))]; !bytes.Equal(part, zeros[:len(part)]) {
			t.Errorf(what+" are not zero", args...)
			return
		}
	}
}

// TestCallocOfTails makes large blocks smaller after all of their bytes were written to,
// and allocates zeroed blocks, which may lie in what was cut off.
func TestCallocOfTails(t *testing.T) {
	const unit = span.UnitSize
	page := int(osmem.PageSize)
	h := NewHeap(t, Options{})
	for _, row := range [][2]int{{8 * unit, 3 * unit}, {2 * unit, unit + 1}, {2 * unit, 2*unit - page}, {1 << 20, 40_000}, {span.OwnMapping, span.OwnMapping - 5*unit}} {
		for _, free := range []bool{false, true} {
			MakeRoom(t, h, 20)
			p := h.Malloc(row[0])
			bytes := unsafe.Slice((*byte)(p), row[0])
			for i := range bytes {
				bytes[i] = 0x77
			}
			p = h.Realloc(p, row[1])
			if free {
				h.Free(p)
				p = nil
			}
			var blocks []unsafe.Pointer
			for _, size := range []int{row[0] - row[1], row[0], unit, 10_000, 10_000, 100} {
				q := h.Calloc(1, size)
				mustBeZero(t, q, size, "Calloc of %d bytes, after Realloc from %d to %d", size, row[0], row[1])
				blocks = append(blocks, q)
			}
			if p = h.Realloc(p, row[0]); !free && *(*byte)(unsafe.Add(p, row[1]-1)) != 0x77 {
				t.Errorf("from %d to %d and back: byte %d is lost", row[0], row[1], row[1]-1)
			}
			for _, q := range append(blocks, p) {
				h.Free(q)
			}
			MustHoldNothing(t, h)
		}
	}
}

// TestForeignNumbers frees numbers that are no block's: at random, and near blocks. On
// 32-bit systems some are addresses in free parts of the Go heap, which the runtime does
// not accept in a pointer unless it is told not to look.
func TestForeignNumbers(t *testing.T) {
	out, status := testchild.Run(t, func() {
		defer func() { // Fatalf ends the goroutine
			if t.Failed() {
				fmt.Println("a number was taken for a block, or is named wrongly")
				os.Exit(1)
			}
		}()
		freeForeignNumbers(t)
	}, "GODEBUG=invalidptr=0")
	if status != 0 || out != "" {
		t.Errorf("status %d:\n%s", status, out)
	}
}

func freeForeignNumbers(t *testing.T) {
	h, l := NewHeapAndLocal(t, Options{})
	live := map[uintptr]bool{}
	var some []uintptr
	for i := range 300 {
		size := i * i
		if i%50 == 0 {
			size += 1 << 20
		}
		p := uintptr(h.Malloc(size))
		live[p] = true
		some = append(some, p)
	}
	numbers := []uint64{ // others have found faults with these
		5351867499084745203, 5351867499084745200, 4406726867650173363, 17592186048512, 1<<64 - 1,
		0xDEAD_BEEF, 0xDEADBEEF0000000,
	}
	count := testheap.HammerRounds(40_000)
	if *testheap.Long {
		count = 200_000
	}
	r := rand.New(rand.NewPCG(3, 4))
	for range count {
		n := r.Uint64() >> r.IntN(56)
		switch r.IntN(3) {
		case 0:
			n = uint64(some[r.IntN(len(some))]) + n%(1<<22) - 1<<21
		case 1:
			n = uint64(some[r.IntN(len(some))]) ^ 1<<r.IntN(bits.UintSize)
		}
		numbers = append(numbers, n)
	}
	for i, n := range numbers {
		p := uintptr(n)
		if got := h.Owns(osmem.Pointer(p)); got != live[p] {
			t.Fatalf("Owns(%#x) = %v", p, got)
		}
		if p != 0 && !live[p] && (i < 7 || i%400 == 0) {
			MustAccuseAll(t, h, l, p)
		}
	}
	for _, p := range some {
		h.Free(osmem.Pointer(p))
	}
}
