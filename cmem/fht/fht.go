// Package fht makes recorded allocations of the events that the C code of
// [github.com/cheapgo/cheap/cmem] writes: those of this process, or of one that the command cheap
// record has started. Programs need cmem.Record alone.
//
// A recording is gzip around a stream of the format FHT1, which package
// internal/replay/trace describes.
package fht

import "sync/atomic"

// A Ring is where threads of C write events. One goroutine at a time may read it.
type Ring struct {
	// Words has two words for each event, and twice a power of two in all. Events are at
	// positions that are counted from 0, and come again at the same place.
	Words []uint64

	Head *uint64 // how many positions were taken; threads of C write it
	Read *uint64 // how many events were read; Take writes it
	Over *uint64 // not 0 if an event was left out because the ring was full
}

// Take reads events into to, which has two words for each, and returns how many it has read. It
// stops at an event that a thread is about to write.
func (r *Ring) Take(to []uint64) int {
	mask := uint64(len(r.Words)/2 - 1)
	at, head := atomic.LoadUint64(r.Read), atomic.LoadUint64(r.Head)
	n := 0
	for ; n < len(to)/2 && at < head; n++ {
		event := r.Words[2*(at&mask):][:2]
		first := atomic.LoadUint64(&event[0])
		if first == 0 {
			break
		}
		to[2*n], to[2*n+1] = first, event[1]
		atomic.StoreUint64(&event[0], 0)
		at++
	}
	atomic.StoreUint64(r.Read, at)
	return n
}

// An OpKind is what an operation calls. Its values are those of the format.
type OpKind uint8

// The kinds of operations.
const (
	Malloc OpKind = 1 + iota
	Free
	Calloc
	Realloc
	Aligned
)

// The kinds of events that are no operations; cmem/source/cmem.h has all.
const (
	moved  = 6
	kept   = 7
	marked = 8
)

// An Op is a call.
type Op struct {
	Kind     OpKind
	AlignLog uint8 // the logarithm of the alignment, to the base 2; 0 unless Kind is Aligned
	Thread   uint8 // 15 stands for 15 and above
	Marked   bool  // whether the block was allocated by a function that is marked
	Slot     uint32
	Size     uint64 // 0 in a Free
}

// A Decoder makes operations of events. The zero value is one that has seen nothing.
type Decoder struct {
	// Slots is how many slots the operations have until now. Unknown is how many frees were left
	// out because their blocks are older than the first event. Missed is how many blocks were freed
	// in the recording because another one got their address.
	Slots           uint32
	Unknown, Missed int

	at      uint64             // the position of the next event
	live    map[uint64]block   // by address
	pending map[uint64]pending // reallocs that have begun, by position
	free    []uint32           // slots
}

type block struct {
	slot   uint32
	marked bool
}

type pending struct {
	size  uint64
	block block
	known bool
}

// Start says at which position the first event is.
func (d *Decoder) Start(position uint64) {
	d.at = position
	d.live = map[uint64]block{}
	d.pending = map[uint64]pending{}
}

// Decode calls do with the operation of each event, in their order. An event has two words.
func (d *Decoder) Decode(events []uint64, do func(Op)) {
	for ; len(events) >= 2; events = events[2:] {
		d.event(events[0], events[1], do)
		d.at++
	}
}

const addressBits = 48

func (d *Decoder) event(first, second uint64, do func(Op)) {
	address := first & (1<<addressBits - 1)
	kind := first >> addressBits & 15
	op := Op{Thread: uint8(first >> (addressBits + 4) & 15), Size: second}
	op.Marked = kind&marked != 0
	switch kind &^ marked {
	case uint64(Malloc), uint64(Calloc):
		op.Kind = OpKind(kind &^ marked)
		d.allocate(address, op, do)
	case uint64(Aligned):
		op.Kind, op.AlignLog = Aligned, uint8(first>>(addressBits+8)&63)
		d.allocate(address, op, do)
	case uint64(Free):
		if address == 0 {
			d.freed(second, op, do)
			return
		}
		b, ok := d.live[address]
		if !ok {
			d.Unknown++
			return
		}
		delete(d.live, address)
		d.release(b, op, do)
	case uint64(Realloc): // begins: the address may come again before this ends
		b, ok := d.live[address]
		delete(d.live, address)
		d.pending[d.at] = pending{second, b, ok}
	case moved:
		p, ok := d.pending[second]
		delete(d.pending, second)
		if !ok {
			return // it has begun before the first event
		}
		op.Size = p.size
		if !p.known { // the block is older than the first event
			op.Kind = Malloc
			d.allocate(address, op, do)
			return
		}
		d.forget(address, op, do)
		op.Kind, op.Slot, op.Marked = Realloc, p.block.slot, p.block.marked
		d.live[address] = p.block
		do(op)
	case kept:
		p, ok := d.pending[second]
		delete(d.pending, second)
		if ok && p.known {
			d.live[address] = p.block
		}
	}
}

// freed ends a realloc to 0 bytes that has freed the block.
func (d *Decoder) freed(began uint64, op Op, do func(Op)) {
	p, ok := d.pending[began]
	delete(d.pending, began)
	if ok && p.known {
		d.release(p.block, op, do)
	} else {
		d.Unknown++
	}
}

func (d *Decoder) release(b block, op Op, do func(Op)) {
	d.free = append(d.free, b.slot)
	op.Kind, op.Slot, op.Marked, op.Size = Free, b.slot, b.marked, 0
	do(op)
}

// forget frees the block at an address at which there is one again: its free was not seen.
func (d *Decoder) forget(address uint64, op Op, do func(Op)) {
	if b, ok := d.live[address]; ok {
		delete(d.live, address)
		d.Missed++
		d.release(b, op, do)
	}
}

func (d *Decoder) allocate(address uint64, op Op, do func(Op)) {
	d.forget(address, op, do)
	if n := len(d.free); n > 0 {
		op.Slot = d.free[n-1]
		d.free = d.free[:n-1]
	} else {
		op.Slot = d.Slots
		d.Slots++
	}
	d.live[address] = block{op.Slot, op.Marked}
	do(op)
}
