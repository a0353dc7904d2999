package heap

import (
	"fmt"
	"math/bits"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/cheapgo/cheap/internal/heap/block"
	"github.com/cheapgo/cheap/internal/sizeclass"
	"github.com/cheapgo/cheap/internal/testcall"
	"github.com/cheapgo/cheap/internal/testheap"
)

// repeated returns a word that repeats the lowest period bytes of w.
func repeated(w uint64, period int) uint64 {
	b := 8 * period
	w &= ^uint64(0) >> (64 - b)
	for ; b < 64; b *= 2 {
		w |= w << b
	}
	return w
}

// inPlace are operations that a program does to both words of a block, because it
// does them to a whole buffer. The lowest bits of what they return depend on the
// same bits of what they get, and on no others.
func inPlace() map[string]func(w uint64) uint64 {
	ops := map[string]func(uint64) uint64{}
	xor := func(mask uint64) { ops[fmt.Sprintf("XOR %#x", mask)] = func(w uint64) uint64 { return w ^ mask } }
	add := func(n uint64) { ops[fmt.Sprintf("add %#x", n)] = func(w uint64) uint64 { return w + n } }
	xor(repeated(0x20, 1)) // upper and lower case
	for _, period := range []int{1, 2, 4, 8} {
		first, last := uint64(1), uint64(1)<<(8*period-1)
		for _, mask := range []uint64{first, last, first | last, 3 * (last / 2), -first} {
			xor(repeated(mask, period))
		}
		for range 8 {
			xor(repeated(rand.Uint64()|last, period))
		}
	}
	for shift := range 64 {
		xor(1 << shift)
		add(1 << shift)
		add(-(1 << shift))
		add((rand.Uint64() | 1) << shift)
	}
	return ops
}

// randomBlock returns the address of a block and a link as blocks have them: to no
// block, to a block beside it, in its span or elsewhere.
func randomBlock() (p uintptr, link uint64) {
	const most = 1<<47 - 1
	p = uintptr(rand.Uint64() & most &^ 15)
	switch rand.IntN(4) {
	case 1:
		link = uint64(p) ^ 16<<rand.IntN(12)
	case 2:
		link = uint64(p)&^0xffff | rand.Uint64()&0xfff0
	case 3:
		link = rand.Uint64() & most &^ 15
	}
	return p, link | rand.Uint64N(4)
}

// TestSealFactors counts, for changes of both words of a block by one operation,
// the factors with which the changed mark is that of the changed link. Of all 2⁶³
// it may be one. The lowest bits of a seal depend on the same bits of the factor
// alone, so the search goes from one bit to the next. Where many factors have all
// bits right so far, it goes on with some of them.
func TestSealFactors(t *testing.T) {
	for name, op := range inPlace() {
		for range 30 {
			p, link := randomBlock()
			changed := op(link)
			factors := []uint64{1}
			for bit := 2; bit <= 64; bit++ {
				low := ^uint64(0) >> (64 - bit)
				var longer []uint64
				for _, f := range factors {
					for _, f := range []uint64{f, f | 1<<(bit-1)} {
						if (op(block.Checksum(p, link, f))^block.Checksum(p, changed, f))&low == 0 {
							longer = append(longer, f)
						}
					}
				}
				rand.Shuffle(len(longer), func(i, j int) { longer[i], longer[j] = longer[j], longer[i] })
				factors = longer[:min(len(longer), 20)]
			}
			if len(factors) > 1 {
				t.Fatalf("%s: at %#x with the link %#x, factors %#x", name, p, link, factors)
			}
		}
	}
}

// TestChecksumDamage writes to free blocks in the ways of programs that use a pointer
// after Free, and counts how many still look free. Of 2¹⁸ tries 4 may.
func TestChecksumDamage(t *testing.T) {
	tries := testheap.HammerRounds(1 << 18)
	type words = [2]uint64
	attacks := map[string]func(b words) words{
		"one bit": func(b words) words {
			i := rand.IntN(128)
			b[i/64] ^= 1 << (i % 64)
			return b
		},
		"the link": func(b words) words {
			_, link := randomBlock()
			if link == b[0] {
				link ^= 64
			}
			return words{link, b[1]}
		},
		"zeros":       func(words) words { return words{} },
		"a constant":  func(words) words { c := repeated(rand.Uint64(), 1); return words{c, c} },
		"two numbers": func(words) words { return words{rand.Uint64N(1000), rand.Uint64N(1000)} },
		"add a constant": func(b words) words {
			n := rand.Uint64()<<rand.IntN(64) | 1<<63
			return words{b[0] + n, b[1] + n}
		},
		"add a small number": func(b words) words {
			n := rand.Uint64N(64) + 1
			return words{b[0] - n, b[1] - n}
		},
		"inverted":   func(b words) words { return words{^b[0], ^b[1]} },
		"swapped":    func(b words) words { return words{b[1], b[0]} },
		"byte order": func(b words) words { return words{bits.ReverseBytes64(b[0]), bits.ReverseBytes64(b[1])} },
		"negated":    func(b words) words { return words{-b[0], -b[1]} },
		"doubled":    func(b words) words { return words{2 * b[0], 2 * b[1]} },
		"moved by a byte": func(b words) words {
			return words{b[0]<<8 | rand.Uint64N(256), b[1]<<8 | b[0]>>56}
		},
		"XOR of 16 bytes": func(b words) words { return words{b[0] ^ rand.Uint64(), b[1] ^ rand.Uint64()} },
		"add to 4 bytes": func(b words) words {
			n := rand.Uint32() | 1
			for i, w := range b {
				b[i] = uint64(uint32(w)+n) | uint64(uint32(w>>32)+n)<<32
			}
			return b
		},
		"add to each byte": func(b words) words {
			n := byte(rand.Uint32()) | 1
			for i := range 16 {
				old := byte(b[i/8] >> (i % 8 * 8))
				b[i/8] += uint64(old+n)<<(i%8*8) - uint64(old)<<(i%8*8)
			}
			return b
		},
	}
	for _, period := range []int{1, 2, 4, 8} {
		attacks[fmt.Sprintf("XOR of period %d", period)] = func(b words) words {
			mask := repeated(rand.Uint64()|1<<(8*period-1), period)
			return words{b[0] ^ mask, b[1] ^ mask}
		}
	}
	for name, attack := range attacks {
		tries := tries
		passed := 0
		for range tries {
			p, link := randomBlock()
			factor := block.FactorOf(uintptr(rand.Uint32N(1 << 20)))
			before := words{link, block.Checksum(p, link, factor) ^ rand.Uint64N(2)*block.SortedBit}
			after := attack(before)
			b := block.Block{Link: after[0], Canary: after[1]}
			wasSorted := before[1] != block.Checksum(p, link, factor)
			if wasSorted && b.IsSorted(p, factor) || !wasSorted && b.IsCached(p, factor) {
				passed++
			}
		}
		if passed > tries>>16 {
			t.Errorf("%s: %d of %d pass", name, passed, tries)
		}
	}
}

// TestSealCopies compares the marks of blocks with what is right at other addresses,
// in other classes and in other heaps.
func TestSealCopies(t *testing.T) {
	passed, tries := 0, testheap.HammerRounds(1<<18)
	for range tries {
		p, link := randomBlock()
		q, _ := randomBlock()
		tag, other := uintptr(rand.Uint32N(1<<16)), uintptr(rand.Uint32N(1<<16))
		b := block.Block{}
		b.SetCached(p, block.NextOf(link), block.StateOf(link), block.FactorOf(tag))
		switch rand.IntN(3) {
		case 0:
			q ^= p&^0xffff ^ q&^0xffff // in the same span
		case 1:
			q ^= p ^ q ^ 16<<rand.IntN(12)
		}
		if p != q && b.IsFree(q, block.FactorOf(tag)) {
			passed++
		}
		if tag != other && (b.IsFree(p, block.FactorOf(other)) || b.IsFree(q, block.FactorOf(other))) {
			passed++
		}
	}
	if passed > tries>>16 {
		t.Errorf("%d of %d pass", passed, tries)
	}
}

// TestFactors looks at the factors of many tags: heaps and classes.
func TestFactors(t *testing.T) {
	seen := map[uint64]uintptr{}
	for tag := range uintptr(testheap.HammerRounds(1 << 18)) {
		f := block.FactorOf(tag)
		if f&1 == 0 || f == 1 {
			t.Fatalf("the factor of %#x is %#x", tag, f)
		}
		if other, is := seen[f]; is {
			t.Fatalf("%#x and %#x have the factor %#x", tag, other, f)
		}
		seen[f] = tag
	}
}

// TestBlockStates looks at the three questions that are asked of a block, in each
// state.
func TestBlockStates(t *testing.T) {
	h := newHeap(t, Options{})
	p := uintptr(h.Malloc(64))
	defer h.Free(unsafe.Pointer(block.At(p)))
	b, factor := block.At(p), h.classes[sizeclass.Of(64)].factor
	look := func(name string, cached, sorted bool, next uintptr, state block.State) {
		t.Helper()
		if b.IsCached(p, factor) != cached || b.IsSorted(p, factor) != sorted || b.IsFree(p, factor) != (cached || sorted) {
			t.Errorf("%s: cached is %v, sorted %v, free %v", name, b.IsCached(p, factor), b.IsSorted(p, factor), b.IsFree(p, factor))
		}
		if (cached || sorted) && (block.NextOf(b.Link) != next || block.StateOf(b.Link) != state) {
			t.Errorf("%s: link %#x", name, b.Link)
		}
	}
	look("in use", false, false, 0, 0)
	for state := range block.StateBits + 1 {
		for _, next := range []uintptr{0, p + 64, p - 64} {
			b.SetCached(p, next, state, factor)
			look("in a cache", true, false, next, state)
			b.Canary ^= block.SortedBit
			look("sorted", false, true, next, state)
			b.SetSorted(p, next, state, factor)
			look("sorted", false, true, next, state)
		}
	}
	b.Canary = 0
	look("handed out", false, false, 0, 0)
	*b = block.Block{}
	look("zero", false, false, 0, 0)
}

// TestWriteAfterFreeInPlace changes a free block as programs do that work on a
// buffer in place, and lets each way out of the heap's lists find it: none follows
// the link, and no block is handed out twice.
func TestWriteAfterFreeInPlace(t *testing.T) {
	testheap.WithRate(t, 0) // it looks at lists of blocks that are not sampled
	const size = 64
	ways := map[string]func(h *Heap, l *Local) unsafe.Pointer{
		"Heap.Malloc":     func(h *Heap, _ *Local) unsafe.Pointer { return h.Malloc(size) },
		"Heap.TryMalloc":  func(h *Heap, _ *Local) unsafe.Pointer { p, _ := h.TryMalloc(size); return p },
		"Heap.Calloc":     func(h *Heap, _ *Local) unsafe.Pointer { return h.Calloc(1, size) },
		"Local.Malloc":    func(_ *Heap, l *Local) unsafe.Pointer { return l.Malloc(size) },
		"Local.TryMalloc": func(_ *Heap, l *Local) unsafe.Pointer { p, _ := l.TryMalloc(size); return p },
		"Heap.Trim":       func(h *Heap, l *Local) unsafe.Pointer { l.empty(); h.Trim(); return nil },
		"from a span":     nil,
	}
	for opName, op := range inPlace() {
		for wayName, way := range ways {
			if rand.IntN(4) > 0 {
				continue
			}
			h, err := New(Options{})
			if err != nil {
				t.Fatal(err)
			}
			l := h.NewLocal()
			var blocks []unsafe.Pointer
			for range 64 {
				blocks = append(blocks, h.Malloc(size))
			}
			free := h.Free
			if wayName[0] == 'L' {
				free = l.Free
			}
			free(blocks[2])
			free(blocks[10])
			written := blocks[10]
			live := map[unsafe.Pointer]bool{}
			for i, p := range blocks {
				live[p] = i != 2 && i != 10
			}
			if wayName == "from a span" {
				h.Trim() // its list begins with a block that came last
				way = ways["Heap.Malloc"]
			}
			b := unsafe.Slice((*uint64)(written), 2)
			b[0], b[1] = op(b[0]), op(b[1])
			var found *MisuseError
			for range 4 * 64 {
				v := testcall.Catch(func() {
					if p := way(h, l); p != nil {
						if live[p] || p == written && found == nil {
							t.Fatalf("%s, %s: %p is handed out; the block at %p was written to", opName, wayName, p, written)
						}
						live[p] = true
					}
				})
				if v != nil {
					if found != nil {
						t.Fatalf("%s, %s: a second panic: %v", opName, wayName, v)
					}
					if found, _ = v.(*MisuseError); found == nil {
						t.Fatalf("%s, %s: %v", opName, wayName, v)
					}
				}
			}
			if found == nil { // it is in the cache of another P
				found, _ = testcall.Catch(h.Trim).(*MisuseError)
			}
			if found == nil || found.Addr != uintptr(written) {
				t.Fatalf("%s, %s: the block at %p: %v", opName, wayName, written, found)
			}
			l.Destroy()
			h.DestroyAll()
		}
	}
}
