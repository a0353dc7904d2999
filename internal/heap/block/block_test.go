package block

import (
	"fmt"
	"math/bits"
	"math/rand/v2"
	"testing"

	"github.com/cheapgo/cheap/internal/test/testheap"
)

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
	for name, op := range testheap.InPlace() {
		for range 30 {
			p, link := randomBlock()
			changed := op(link)
			factors := []uint64{1}
			for bit := 2; bit <= 64; bit++ {
				low := ^uint64(0) >> (64 - bit)
				var longer []uint64
				for _, f := range factors {
					for _, f := range []uint64{f, f | 1<<(bit-1)} {
						if (op(Checksum(p, link, f))^Checksum(p, changed, f))&low == 0 {
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
		"a constant":  func(words) words { c := testheap.Repeated(rand.Uint64(), 1); return words{c, c} },
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
			mask := testheap.Repeated(rand.Uint64()|1<<(8*period-1), period)
			return words{b[0] ^ mask, b[1] ^ mask}
		}
	}
	for name, attack := range attacks {
		tries := tries
		passed := 0
		for range tries {
			p, link := randomBlock()
			factor := FactorOf(uintptr(rand.Uint32N(1 << 20)))
			before := words{link, Checksum(p, link, factor) ^ rand.Uint64N(2)*SortedBit}
			after := attack(before)
			b := Block{Link: after[0], Canary: after[1]}
			wasSorted := before[1] != Checksum(p, link, factor)
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
		b := Block{}
		b.SetCached(p, NextOf(link), StateOf(link), FactorOf(tag))
		switch rand.IntN(3) {
		case 0:
			q ^= p&^0xffff ^ q&^0xffff // in the same span
		case 1:
			q ^= p ^ q ^ 16<<rand.IntN(12)
		}
		if p != q && b.IsFree(q, FactorOf(tag)) {
			passed++
		}
		if tag != other && (b.IsFree(p, FactorOf(other)) || b.IsFree(q, FactorOf(other))) {
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
		f := FactorOf(tag)
		if f&1 == 0 || f == 1 {
			t.Fatalf("the factor of %#x is %#x", tag, f)
		}
		if other, is := seen[f]; is {
			t.Fatalf("%#x and %#x have the factor %#x", tag, other, f)
		}
		seen[f] = tag
	}
}

// TestUnseal looks whether a seal says what the link was.
func TestUnseal(t *testing.T) {
	for range 100_000 {
		p, link, factor := uintptr(rand.Uint64())&^15, rand.Uint64(), rand.Uint64()|1
		if got := Invert(p, Checksum(p, link, factor), factor); got != link {
			t.Fatalf("the link of the seal of %#x is %#x", link, got)
		}
	}
}
