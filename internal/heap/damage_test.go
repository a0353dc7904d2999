package heap

import (
	"fmt"
	"math/bits"
	"math/rand/v2"
	"strings"
	"testing"
	"unsafe"

	"github.com/cheapgo/cheap/internal/heap/block"
	"github.com/cheapgo/cheap/internal/mem/sizeclass"
	"github.com/cheapgo/cheap/internal/test/testcall"
	"github.com/cheapgo/cheap/internal/test/testheap"
)

// TestDamageNamed changes bytes of the link and of the mark of a free block, on each way
// that a free block takes, and looks whether the panic says which.
func TestDamageNamed(t *testing.T) {
	testheap.WithRate(t, 0) // it looks at lists of blocks that are not sampled
	ways := map[string]func(l *Local){
		"in a cache":              func(*Local) {},
		"in its span":             func(l *Local) { l.empty() },
		"in its span, taken back": func(l *Local) { l.empty(); l.Free(l.Malloc(16)); l.h.Trim() },
	}
	for name, way := range ways {
		for _, size := range []int{16, 48, 1024, 16384} {
			for from := range sizeclass.Quantum {
				for _, n := range []int{1, 2, 4, 8, 16} {
					if from+n > sizeclass.Quantum {
						continue
					}
					for _, last := range []bool{false, true} { // in its list
						t.Run(fmt.Sprintf("%s/size=%d/bytes=%d-%d/last=%v", name, size, from, from+n, last), func(t *testing.T) {
							testDamageNamed(t, way, size, from, n, last)
						})
					}
				}
			}
		}
	}
}

func testDamageNamed(t *testing.T, way func(l *Local), size, from, n int, last bool) {
	h, err := New(Options{})
	testcall.Must(t, err)
	defer h.DestroyAll()
	l := h.NewLocal()
	defer l.Destroy()
	blocks := []unsafe.Pointer{l.Malloc(size), l.Malloc(size), l.Malloc(size)}
	l.empty() // what is left of the batch
	p := blocks[1]
	if last {
		l.Free(p)
	} else {
		l.Free(blocks[0])
		l.Free(p)
	}
	way(l)
	b := unsafe.Slice((*byte)(p), sizeclass.Quantum)
	for i := range b[from : from+n] {
		b[from+i] ^= byte(0x35 + i)
	}
	found, _ := testcall.Catch(func() {
		for range 5000 {
			l.Malloc(size)
		}
	}).(*MisuseError)
	want := fmt.Sprintf("the free block at %#x (%d bytes) was written to after it was freed: %d bytes from byte %d on;", p, h.UsableSize(blocks[2]), n, from)
	// Where the link and the mark both changed, or most of the mark, nothing says what was there.
	if from < 8 && from+n > 8 || from >= 8 && n > 4 {
		want = fmt.Sprintf("the free block at %#x (%d bytes) was written to after it was freed: some of its first 16 bytes;", p, h.UsableSize(blocks[2]))
	}
	if found == nil || found.Addr != uintptr(p) || !strings.HasPrefix(found.Reason, want) {
		t.Errorf("%v, want %s", found, want)
	}
}

// TestChangedBytes compares words byte by byte.
func TestChangedBytes(t *testing.T) {
	for range 10_000 {
		was := rand.Uint64()
		is := was
		var from, to, changed uintptr
		for i := range uintptr(8) {
			if rand.IntN(3) == 0 {
				continue
			}
			*(*byte)(unsafe.Add(unsafe.Pointer(&is), i)) ^= 1 << rand.IntN(8)
			if changed++; to == 0 {
				from = i
			}
			to = i + 1
		}
		if f, to2, same := changedBytes(was, is); f != from || to2 != to || same != 8-changed {
			t.Fatalf("from %#x to %#x: [%d, %d), %d the same; want [%d, %d), %d", was, is, f, to2, same, from, to, 8-changed)
		}
	}
}

// TestMayBeLink asks of all kinds of words whether they are links.
func TestMayBeLink(t *testing.T) {
	testheap.WithRate(t, 0) // it looks at lists of blocks that are not sampled
	h := NewHeap(t, Options{})
	p, other, large := uint64(uintptr(h.Malloc(64))), uint64(uintptr(h.Malloc(80))), uint64(uintptr(h.Malloc(100_000)))
	tag := h.classes[sizeclass.Of(64)].tag
	for _, row := range []struct {
		link uint64
		want bool
	}{
		{0, true}, {uint64(block.StateBits), true}, {p, true}, {p | uint64(block.New), true},
		{4, false}, {p + 4, false}, {p + 16, false}, {p &^ 0xFFFF, true}, {p&^0xFFFF + 0xFFC0, false},
		{other, false}, {large, false}, {p + 1<<(bits.UintSize-1), false}, {p | 1<<63, false}, {^uint64(0), false},
	} {
		if got := mayBeLink(row.link, tag); got != row.want {
			t.Errorf("mayBeLink(%#x) = %v; a block is at %#x", row.link, got, p)
		}
	}
	h.DestroyAll()
}
