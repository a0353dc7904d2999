package heap

import (
	"math/rand/v2"
	"unsafe"

	"github.com/cheapgo/cheap/internal/osmem"
)

// block is the first 16 bytes of a free block.
type block struct {
	// link is the address of the next free block of the list, or 0, and in its
	// lowest bits the state of this block.
	link uint64

	// canary is the checksum of the block, with the lowest bit inverted if the block is in
	// the list of its span. The checksum is computed from the link and the block's own
	// address. A block that is handed out gets a canary of 0.
	canary uint64
}

// A blockState is what is known about a free block. Blocks are aligned to 16
// bytes, so their addresses have these bits clear.
type blockState uint64

const (
	stateZeroed blockState = 1 // all bytes behind the first 16 are zero, as they came from the system
	stateNew    blockState = 2 // not handed out since the block was carved

	stateBits = stateZeroed | stateNew
)

// sortedBit is the bit by which the canary of a block in the list of its span differs
// from the canary of a block in a list of a cache. A block that was freed twice may
// be in both lists. Once it is sorted, the cache does not take it: see class.sort.
const sortedBit = 1

var _ [unsafe.Sizeof(block{})]byte = [16]byte{}

// tagKey and mixFactor are random for each process.
var tagKey, mixFactor = rand.Uint64(), rand.Uint64() | 1

// factorOf returns the factor for the blocks in spans with that tag: a random odd
// number for each class of each heap. So a canary that another heap or another class
// has left behind is not valid.
//
//go:norace
func factorOf(tag uintptr) uint64 {
	f := (uint64(tag) ^ tagKey) * mixFactor
	return (f^f>>32)*mixFactor | 1
}

// checksum returns the checksum of a free block at p with that link; factor is factorOf the
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
func checksum(p uintptr, link, factor uint64) uint64 {
	return (link<<1 | link>>63 ^ uint64(p)) * factor
}

// nextOf returns the address of the next block.
//
//go:norace
//go:nosplit
func nextOf(link uint64) uintptr { return uintptr(link &^ uint64(stateBits)) }

// stateOf returns the state of the block that has the link.
//
//go:norace
func stateOf(link uint64) blockState { return blockState(link) & stateBits }

// blockAt returns the block at p, which is the start of a carved block. Pinned code calls it, so it
// does not check p. There are three sources of p: carve; an argument that startsBlock has checked;
// and nextOf of a link whose checksum was right. The block lies in a span, whose memory stays
// committed while a heap has the span, and no block is smaller than this type.
//
//go:norace
//go:nosplit
//go:nocheckptr
func blockAt(p uintptr) *block { return (*block)(osmem.Pointer(p)) }

// isFree reports whether b, which lies at p, has the canary of a free block, of any
// list. A block that is in use, or was written to after it was freed, has the
// canary by accident with a probability of 2⁻⁶³.
//
//go:norace
//go:nosplit
func (b *block) isFree(p uintptr, factor uint64) bool {
	return b.canary^checksum(p, b.link, factor) <= sortedBit
}

// isCached reports whether b, which lies at p, has the canary of a block in a list of
// a cache or in a magazine. If it has, its link can be trusted.
//
//go:norace
func (b *block) isCached(p uintptr, factor uint64) bool {
	return b.canary == checksum(p, b.link, factor)
}

// isSorted is isCached for a block in the list of its span.
//
//go:norace
func (b *block) isSorted(p uintptr, factor uint64) bool {
	return b.canary == checksum(p, b.link, factor)^sortedBit
}

// setCached makes b, which lies at p, a free block in front of next, in a list of a
// cache or in a magazine.
//
//go:norace
//go:nosplit
func (b *block) setCached(p, next uintptr, state blockState, factor uint64) {
	link := uint64(next) | uint64(state)
	b.link, b.canary = link, checksum(p, link, factor)
}

// setSorted is setCached for a block in the list of its span.
//
//go:norace
func (b *block) setSorted(p, next uintptr, state blockState, factor uint64) {
	link := uint64(next) | uint64(state)
	b.link, b.canary = link, checksum(p, link, factor)^sortedBit
}
