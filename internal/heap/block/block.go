// Package block has a free block of a heap: its link, its state and its canary.
package block

import (
	"math/bits"
	"math/rand/v2"
	"unsafe"
)

// A Block is the first 16 bytes of a free block.
type Block struct {
	// Link is the address of the next free block of the list, or 0, and in its
	// lowest bits the state of this block.
	Link uint64

	// Canary is the checksum of the block, with the lowest bit inverted if the block is in
	// the list of its span. The checksum is computed from the link and the block's own
	// address. A block that is handed out gets a canary of 0.
	Canary uint64
}

// A State is what is known about a free block. Blocks are aligned to 16
// bytes, so their addresses have these bits clear.
type State uint64

const (
	Zeroed State = 1 // all bytes behind the first 16 are zero, as they came from the system
	New    State = 2 // not handed out since the block was carved

	StateBits = Zeroed | New
)

// SortedBit is the bit by which the canary of a block in the list of its span differs
// from the canary of a block in a list of a cache. A block that was freed twice may
// be in both lists. Once it is sorted, the cache does not take it: see class.sort.
const SortedBit = 1

var _ [unsafe.Sizeof(Block{})]byte = [16]byte{}

// tagKey and MixFactor are random for each process.
var tagKey, MixFactor = rand.Uint64(), rand.Uint64() | 1

// FactorOf returns the factor for the blocks in spans with that tag: a random odd
// number for each class of each heap. So a canary that another heap or another class
// has left behind is not valid.
//
//go:norace
func FactorOf(tag uintptr) uint64 {
	f := (uint64(tag) ^ tagKey) * MixFactor
	return (f^f>>32)*MixFactor | 1
}

// Checksum returns the checksum of a free block at p with that link; factor is FactorOf the
// tag of its span.
//
// Every step can be undone, so a change of the link alone, of the canary alone or of
// the address alone is detected. A change of both words by XOR or addition of one
// value is undetected with at most one of the 2⁶³ factors: docs/decisions.md has the
// reason. The rotation is needed for that. Without it, the highest bit of the link
// would change only the highest bit of the canary, with every factor.
//
//go:norace
//go:nosplit
func Checksum(p uintptr, link, factor uint64) uint64 {
	return (link<<1 | link>>63 ^ uint64(p)) * factor
}

// Invert returns the link that has the checksum mark: Checksum backwards.
//
//go:norace
func Invert(p uintptr, mark, factor uint64) (link uint64) {
	inverse := factor // of 3 bits; each round doubles the number of bits that are right
	for range 5 {
		inverse *= 2 - factor*inverse
	}
	return bits.RotateLeft64(mark*inverse^uint64(p), -1)
}

// NextOf returns the address of the next block.
//
//go:norace
//go:nosplit
func NextOf(link uint64) uintptr { return uintptr(link &^ uint64(StateBits)) }

// StateOf returns the state of the block that has the link.
//
//go:norace
func StateOf(link uint64) State { return State(link) & StateBits }

// At returns the block at p, which is the start of a carved block. Pinned code calls it, so it
// does not check p. There are three sources of p: carve; an argument that startsBlock has checked;
// and NextOf of a link whose checksum was right. The block lies in a span, whose memory stays
// committed while a heap has the span, and no block is smaller than this type.
//
//go:norace
//go:nosplit
//go:nocheckptr
func At(p uintptr) *Block { return (*Block)(unsafe.Add(unsafe.Pointer(nil), p)) } // as osmem.Pointer

// IsFree reports whether b, which lies at p, has the canary of a free block, of any
// list. A block that is in use, or was written to after it was freed, has the
// canary by accident with a probability of 2⁻⁶³.
//
//go:norace
//go:nosplit
func (b *Block) IsFree(p uintptr, factor uint64) bool {
	return b.Canary^Checksum(p, b.Link, factor) <= SortedBit
}

// IsCached reports whether b, which lies at p, has the canary of a block in a list of
// a cache or in a magazine. If it has, its link can be trusted.
//
//go:norace
func (b *Block) IsCached(p uintptr, factor uint64) bool {
	return b.Canary == Checksum(p, b.Link, factor)
}

// IsSorted is IsCached for a block in the list of its span.
//
//go:norace
func (b *Block) IsSorted(p uintptr, factor uint64) bool {
	return b.Canary == Checksum(p, b.Link, factor)^SortedBit
}

// SetCached makes b, which lies at p, a free block in front of next, in a list of a
// cache or in a magazine.
//
//go:norace
//go:nosplit
func (b *Block) SetCached(p, next uintptr, state State, factor uint64) {
	link := uint64(next) | uint64(state)
	b.Link, b.Canary = link, Checksum(p, link, factor)
}

// SetSorted is SetCached for a block in the list of its span.
//
//go:norace
func (b *Block) SetSorted(p, next uintptr, state State, factor uint64) {
	link := uint64(next) | uint64(state)
	b.Link, b.Canary = link, Checksum(p, link, factor)^SortedBit
}
