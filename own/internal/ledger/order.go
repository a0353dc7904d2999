package ledger

import (
	"math/bits"
	"slices"
)

// Why resources are destroyed in the order of their addresses
//
// A program makes new resources while those of before are destroyed, mostly on another
// processor. C's free puts a block on a list, and malloc takes the one from it that came
// last. Destroyed in the order in which they were made, the blocks on that list are in
// more disorder with each collection, and each malloc waits for a cache line that
// nothing could foresee. In the order of addresses, the processor foresees them. Where
// a pair of glibc's malloc and free took 130 ns on two processors, it takes 70. See
// docs/rationale.md.

// Addresses are compared in units of a cache line.
const lineShift = 6

// Fewer addresses are sorted by comparing them.
const fewAddresses = 64

// sortAddresses sorts words, by all bits but the lowest ones. It uses spare, and returns
// the sorted words, and memory to use as spare the next time. It is a radix sort, the
// lowest digit first, without the digits in which all addresses are equal.
func sortAddresses(words, spare []uintptr) (sorted, rest []uintptr) {
	n := len(words)
	if n < fewAddresses {
		slices.Sort(words)
		return words, spare
	}
	// differ has the bits in which some address differs from the one before.
	differ, before, ordered := uintptr(0), words[0], true
	for _, w := range words {
		differ |= w ^ before
		ordered = ordered && w >= before
		before = w
	}
	if ordered {
		return words, spare
	}
	spare = slices.Grow(spare[:0], n)[:n]
	const mostDigits = 1 << 11
	var next [mostDigits]uint32
	// Counters of about as many values as there are addresses.
	digit := min(max(bits.Len(uint(n))-1, 8), 11)
	mask := uintptr(1)<<digit - 1
	for shift := lineShift; differ>>shift != 0; {
		if skip := bits.TrailingZeros64(uint64(differ >> shift)); skip > 0 {
			shift += skip
		}
		counts := next[:1<<digit]
		clear(counts)
		for _, w := range words {
			next[w>>shift&mask&(mostDigits-1)]++
		}
		sum := uint32(0)
		for i, c := range counts {
			counts[i] = sum
			sum += c
		}
		for _, w := range words {
			at := &next[w>>shift&mask&(mostDigits-1)]
			spare[*at] = w
			*at++
		}
		words, spare = spare, words
		shift += digit
	}
	return words, spare
}
