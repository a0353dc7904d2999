// Package trace reads and writes recorded allocations: every call of the C
// allocator that a program made, in the order in which it made them.
//
// A file is gzip around this byte stream, format FHT1, where uvarint is the
// encoding of [encoding/binary.Uvarint]:
//
//	magic       the four bytes FHT1
//	slots       uvarint: blocks are numbered from 0 to slots-1; a number is
//	            used again once its block is free
//	operations  uvarint: how many records follow
//	threads     uvarint: how many threads made them
//	records     until the end of the stream
//
// A record is one byte, kind | thread<<4 (thread 15 stands for 15 and above),
// and then uvarints:
//
//	1  malloc         slot, size
//	2  free           slot
//	3  calloc         slot, size (count × size)
//	4  realloc        slot of a live block, new size
//	5  aligned_alloc  slot, size, alignment
//
// A size may be 0. Blocks that are live at the end were never freed by the
// program.
package trace

// magic opens every stream.
const magic = "FHT1"

// MaxSlots bounds the slots of a trace, so that a damaged header cannot ask
// for more memory than a machine has.
const MaxSlots = 1 << 26

// A Kind is what an [Op] calls. Its values are those of the format.
type Kind uint8

// The kinds of operations.
const (
	Malloc  Kind = 1
	Free    Kind = 2
	Calloc  Kind = 3
	Realloc Kind = 4
	Aligned Kind = 5
)

// String returns the C name of the call.
func (k Kind) String() string {
	switch k {
	case Malloc:
		return "malloc"
	case Free:
		return "free"
	case Calloc:
		return "calloc"
	case Realloc:
		return "realloc"
	case Aligned:
		return "aligned_alloc"
	}
	return "unknown"
}

// An Op is one call of the allocator. It is 16 bytes on a 64-bit machine and
// holds no pointer: a replay streams through an array of them, in Go and in C,
// so that decoding costs the timed loop nothing.
type Op struct {
	Size     int    // bytes asked for; 0 in a free
	Slot     uint32 // which block
	Kind     Kind
	AlignLog uint8 // log2 of the alignment; 0 unless Kind is Aligned
	Thread   uint8 // which thread made the call; 15 stands for 15 and above
	Touch    bool  // whether a replay writes the block's first and last byte; set unless Size is 0
}

// Align returns the alignment that an aligned_alloc asked for, in bytes.
func (op *Op) Align() int { return 1 << op.AlignLog }

// A Trace is a decoded recording. No operation names a slot beyond Slots,
// fills a slot that holds a live block, or frees or resizes an empty one.
type Trace struct {
	Slots   int // how many blocks are live at most, as the slots number them
	Threads int // how many threads made the calls
	Ops     []Op
}
