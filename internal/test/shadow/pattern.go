package shadow

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"unsafe"
)

// Whole is the size in bytes up to which a block is filled with the pattern. A larger
// block has it in edge bytes at both ends, and in some bytes of every stride, so that
// tests of large blocks take neither the time nor the memory.
const (
	Whole  = 64 << 10
	edge   = 4 << 10
	stride = 1 << 20
	some   = 64
)

// text is what patterns are taken from: period bytes that are drawn at random, and as
// many of them again as a pattern may need. None of them is 0, so that memory that was
// cleared is noticed.
var text = func() []byte {
	r := rand.New(rand.NewPCG(1, 2))
	b := make([]byte, period)
	for i := range b {
		b[i] = byte(1 + r.UintN(255))
	}
	return append(b, b[:Whole]...)
}()

// The pattern of a seed begins at a multiple of step in the text. A period that is a
// prime gives all seeds below it patterns of their own, and step takes them apart.
const (
	period = 65537
	step   = 40503
)

// pattern returns the pattern of a seed in the bytes [from, to) of a block.
func pattern(seed uint64, from, to int) []byte {
	return text[(seed%period*step+uint64(from))%period:][:to-from]
}

// Fill writes the pattern of a seed into the block of n bytes at p.
func Fill(p unsafe.Pointer, n int, seed uint64) {
	windows(n, func(from, to int) bool {
		copy(unsafe.Slice((*byte)(p), n)[from:to], pattern(seed, from, to))
		return true
	})
}

// Check returns an error that names the first byte that is not as Fill wrote it.
func Check(p unsafe.Pointer, n int, seed uint64) error { return check(p, n, n, seed) }

// check is Check of the first limit bytes of what was filled as n.
func check(p unsafe.Pointer, n, limit int, seed uint64) (err error) {
	windows(n, func(from, to int) bool {
		if to = min(to, limit); from >= to {
			return false
		}
		have, want := unsafe.Slice((*byte)(p), limit)[from:to], pattern(seed, from, to)
		if bytes.Equal(have, want) {
			return true
		}
		i := 0
		for i < len(have)-1 && have[i] == want[i] {
			i++
		}
		err = fmt.Errorf("byte %d is %#x, and %#x was written to it", from+i, have[i], want[i])
		return false
	})
	return err
}

// Zero returns an error that names the first byte that is not 0, of those that Fill
// writes.
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

// windows calls f for each part of a block of n bytes that has the pattern, until f
// returns false.
func windows(n int, f func(from, to int) bool) {
	if n <= Whole {
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
	f(n-edge, n)
}
