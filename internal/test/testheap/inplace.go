package testheap

import (
	"fmt"
	"math/rand/v2"
)

// Repeated returns a word that repeats the lowest period bytes of w.
func Repeated(w uint64, period int) uint64 {
	b := 8 * period
	w &= ^uint64(0) >> (64 - b)
	for ; b < 64; b *= 2 {
		w |= w << b
	}
	return w
}

// InPlace are operations that a program does to both words of a block, because it
// does them to a whole buffer. The lowest bits of what they return depend on the
// same bits of what they get, and on no others.
func InPlace() map[string]func(w uint64) uint64 {
	ops := map[string]func(uint64) uint64{}
	xor := func(mask uint64) { ops[fmt.Sprintf("XOR %#x", mask)] = func(w uint64) uint64 { return w ^ mask } }
	add := func(n uint64) { ops[fmt.Sprintf("add %#x", n)] = func(w uint64) uint64 { return w + n } }
	xor(Repeated(0x20, 1)) // upper and lower case
	for _, period := range []int{1, 2, 4, 8} {
		first, last := uint64(1), uint64(1)<<(8*period-1)
		for _, mask := range []uint64{first, last, first | last, 3 * (last / 2), -first} {
			xor(Repeated(mask, period))
		}
		for range 8 {
			xor(Repeated(rand.Uint64()|last, period))
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
