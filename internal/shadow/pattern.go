package shadow

import (
	"encoding/binary"
	"fmt"
	"unsafe"
)

// whole is the size in bytes up to which all of a block bears the pattern. A
// larger one bears it at both ends and in some bytes of every stride, so that
// tests of large blocks take neither the time nor the memory.
const (
	whole  = 64 << 10
	edge   = 4 << 10
	stride = 1 << 20
	some   = 64
)

// Fill writes a pattern into the block of n bytes at p that no other seed has.
func Fill(p unsafe.Pointer, n int, seed uint64) {
	windows(n, func(from, to int) bool {
		mem := unsafe.Slice((*byte)(p), n)[from:to]
		i := 0
		for ; i+8 <= len(mem); i += 8 {
			binary.LittleEndian.PutUint64(mem[i:], word(seed, from+i))
		}
		for ; i < len(mem); i++ {
			mem[i] = pattern(seed, from+i)
		}
		return true
	})
}

// Check reports the first byte of a block that is not as Fill left it.
func Check(p unsafe.Pointer, n int, seed uint64) error { return check(p, n, n, seed) }

// check is Check of the first limit bytes of what was filled as n.
func check(p unsafe.Pointer, n, limit int, seed uint64) (err error) {
	windows(n, func(from, to int) bool {
		if to = min(to, limit); from >= to {
			return false
		}
		mem := unsafe.Slice((*byte)(p), limit)[from:to]
		i := 0
		for i+8 <= len(mem) && binary.LittleEndian.Uint64(mem[i:]) == word(seed, from+i) {
			i += 8
		}
		for ; i < len(mem); i++ {
			if want := pattern(seed, from+i); mem[i] != want {
				err = fmt.Errorf("byte %d is %#x, and was written as %#x", from+i, mem[i], want)
				return false
			}
		}
		return true
	})
	return err
}

// Zero reports the first byte of the block that is not 0, among those that Fill
// would write.
func Zero(p unsafe.Pointer, n int) (err error) {
	windows(n, func(from, to int) bool {
		for i, b := range unsafe.Slice((*byte)(p), n)[from:to] {
			if b != 0 {
				err = fmt.Errorf("byte %d of a zeroed block is %#x", from+i, b)
				return false
			}
		}
		return true
	})
	return err
}

// word is the eight bytes of the pattern of a seed from byte i on, a multiple of
// eight. None of them is 0, so that lost writes show.
func word(seed uint64, i int) uint64 {
	w := (seed ^ uint64(i)*0xD1342543DE82EF95) * 0x9E3779B97F4A7C15
	return (w ^ w>>32) | 0x0101010101010101
}

// pattern is byte i of the pattern of a seed.
func pattern(seed uint64, i int) byte { return byte(word(seed, i&^7) >> (i % 8 * 8)) }

// windows calls f for the parts of a block of n bytes that bear the pattern,
// until it returns false. Each starts at a multiple of eight.
func windows(n int, f func(from, to int) bool) {
	if n <= whole {
		f(0, n)
		return
	}
	if !f(0, edge) {
		return
	}
	for i := stride; i < n-edge-some; i += stride {
		if !f(i, i+some) {
			return
		}
	}
	f((n-edge)&^7, n)
}
