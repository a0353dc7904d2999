package heap

import (
	"math/rand/v2"
	"sync"
	"testing"
	"unsafe"

	"github.com/cheapgo/cheap/internal/mem/account"
	"github.com/cheapgo/cheap/internal/test/testcall"
)

// TestCheckedModel does random operations by several goroutines, and compares contents and
// counts.
func TestCheckedModel(t *testing.T) {
	for _, level := range []CheckLevel{CheckBlocks, CheckStacks} {
		h := newCheckedHeap(t, Options{Check: level, Quarantine: 1 << 20})
		var loops sync.WaitGroup
		for g := range 4 {
			loops.Go(func() {
				r := rand.New(rand.NewPCG(uint64(g), 7))
				l := h.NewLocal()
				defer l.Destroy()
				type one struct {
					p    unsafe.Pointer
					size int
					fill byte
				}
				var blocks []one
				for i := range 20_000 {
					if len(blocks) > 50 || len(blocks) > 0 && r.IntN(2) == 0 {
						k := r.IntN(len(blocks))
						b := blocks[k]
						for j, c := range unsafe.Slice((*byte)(b.p), b.size) {
							if c != b.fill {
								t.Errorf("byte %d of %d is %#x, want %#x", j, b.size, c, b.fill)
								return
							}
						}
						if r.IntN(4) == 0 {
							size := r.IntN(500)
							b.p = h.Realloc(b.p, size)
							for _, c := range unsafe.Slice((*byte)(b.p), min(size, b.size)) {
								if c != b.fill {
									t.Error("Realloc lost a byte")
									return
								}
							}
							b.size = min(size, b.size)
							blocks[k] = b
							continue
						}
						if r.IntN(2) == 0 {
							h.Free(b.p)
						} else {
							l.Free(b.p)
						}
						blocks[k] = blocks[len(blocks)-1]
						blocks = blocks[:len(blocks)-1]
						continue
					}
					size := r.IntN(300)
					if i%500 == 0 {
						size = r.IntN(200_000)
					}
					b := one{size: size, fill: byte(r.Uint32())}
					switch r.IntN(5) {
					case 4:
						align := 16 << r.IntN(10)
						if b.p = l.AlignedMalloc(size, align); uintptr(b.p)%uintptr(align) != 0 {
							t.Errorf("%p is not aligned to %d", b.p, align)
						}
					case 0:
						b.p = h.Malloc(size)
					case 1:
						b.p = l.Malloc(size)
					case 2:
						b.p = h.Calloc(1, size)
						for _, c := range unsafe.Slice((*byte)(b.p), size) {
							if c != 0 {
								t.Error("Calloc returns a block that is not zero")
								return
							}
						}
					case 3:
						align := 16 << r.IntN(10)
						if b.p = h.AlignedMalloc(size, align); uintptr(b.p)%uintptr(align) != 0 {
							t.Errorf("%p is not aligned to %d", b.p, align)
						}
					}
					for j := range size {
						*(*byte)(unsafe.Add(b.p, j)) = b.fill
					}
					blocks = append(blocks, b)
				}
				for _, b := range blocks {
					h.Free(b.p)
				}
			})
		}
		loops.Wait()
		if s := h.Stats(); s.Blocks != 0 || s.Bytes != 0 || s.Mallocs != s.Frees {
			t.Errorf("%+v", s)
		}
		if n := len(h.checked.known); n != 0 {
			t.Errorf("%d blocks are still known", n)
		}
		testcall.Want(t, h.Destroy())
	}
}

// TestCheckedLimit needs what is in quarantine.
func TestCheckedLimit(t *testing.T) {
	h := newCheckedHeap(t, Options{Check: CheckBlocks, Limit: 4 << 20})
	for i := range 1000 {
		p := h.Malloc(100_000)
		if p == nil {
			t.Fatalf("block %d is refused", i)
		}
		h.Free(p)
	}
	for range 100_000 {
		p := h.Malloc(500)
		if p == nil {
			t.Fatal("a small block is refused")
		}
		h.Free(p)
	}
	testcall.Want(t, h.Destroy())
}

// A reclaimer is a Pacer that counts the calls of Reclaim. The first one frees a block.
type reclaimer struct {
	pressureFunc
	calls *int
	first func()
}

func (r *reclaimer) Reclaim(int64, int, bool) error {
	if *r.calls++; *r.calls == 1 && r.first != nil {
		r.first()
		return nil
	}
	return account.ErrUnpaced
}

// TestCheckedLimitBeforeCollection frees a block and takes another at the limit of a heap: what is in
// quarantine serves, and package pace is asked for no collection, which would take milliseconds. If a
// collection frees a block, that serves as well.
func TestCheckedLimitBeforeCollection(t *testing.T) {
	calls := 0
	r := &reclaimer{func() {}, &calls, nil}
	account.Process.SetPacer(r)
	defer account.Process.SetPacer(nil)
	for _, size := range []int{100, 100_000} {
		h := newCheckedHeap(t, Options{Check: CheckBlocks, Limit: 1 << 20})
		var last unsafe.Pointer
		for p := h.Malloc(size); p != nil; p = h.Malloc(size) {
			last = p
		}
		if calls == 0 {
			t.Errorf("no collection was asked for when the heap was full of blocks of %d bytes", size)
		}
		calls = 0
		for range 10 {
			h.Free(last)
			if last = h.Malloc(size); last == nil || calls != 0 {
				t.Fatalf("Malloc(%d) = %p after a Free, and %d collections", size, last, calls)
			}
		}
		r.first = func() { h.Free(last) }
		if h.Malloc(size) == nil {
			t.Errorf("Malloc(%d) = nil after a collection that freed a block", size)
		}
		calls, r.first = 0, nil
	}
}

// TestCheckedQuarantine counts how many blocks are freed before an address comes again.
func TestCheckedQuarantine(t *testing.T) {
	h := newCheckedHeap(t, Options{Check: CheckBlocks, Quarantine: 1 << 20})
	first := h.Malloc(100)
	h.Free(first)
	n := 0
	for ; n < 1<<20; n++ {
		p := h.Malloc(100)
		h.Free(p)
		if p == first {
			break
		}
	}
	if least := 1 << 20 / 256; n < least || n > 2*least+1000 {
		t.Errorf("the address came again after %d blocks of 256 bytes, want %d", n, least)
	}
}

func BenchmarkChecked(b *testing.B) {
	for _, row := range []struct {
		name  string
		level CheckLevel
	}{{"none", CheckNone}, {"blocks", CheckBlocks}, {"stacks", CheckStacks}} {
		b.Run("level="+row.name, func(b *testing.B) {
			h := newCheckedHeap(b, Options{Check: row.level})
			for b.Loop() {
				h.Free(h.Malloc(64))
			}
		})
	}
}
