package guard

import (
	"encoding/binary"
	"errors"
	"io"
	"reflect"

	"github.com/cheapgo/cheap/internal/watch/sample"
)

// Another process of the same program can know the slots, so that it can say what a fault was
// that has ended this one. It reads a file that this process writes to whenever a block is
// placed or freed. What is written to a file outlives the process.
//
// The file is words of 64 bits, the lowest byte first: a header, and for each slot a record of its
// block, and one of the block before that.

const (
	deepest     = 32 // frames of a stack, the innermost ones
	headerWords = 8
	blockWords  = 7 + 2*deepest
	slotWords   = 2 * blockWords
	word        = 8

	magic = 0x63686561_70677502 // its last byte is the version of the format
)

var table io.WriterAt // under pool.mu; nil if there is none

// Share has the slots written to w from now on. nil ends that.
func Share(w io.WriterAt) {
	pool.mu.Lock()
	defer pool.mu.Unlock()
	table = w
	shareSlots()
}

// shareSlots writes all that there is to the table. The lock is held.
func shareSlots() {
	if table == nil || pool.state != 1 {
		return
	}
	writeWords(0, []uint64{magic, uint64(anchor()), uint64(pool.base), uint64(pool.slotSize), uint64(len(pool.slots)), 0, 0, 0})
	for i := range pool.slots {
		if pool.slots[i].Start != 0 {
			writeSlot(i)
		}
	}
}

// anchor is the address of a function. The system may place the code of each process
// elsewhere.
func anchor() uintptr { return reflect.ValueOf(Share).Pointer() }

// What writeSlot and writeWords make of a slot, so that they allocate nothing; under pool.mu.
var (
	slotBuffer [slotWords]uint64
	byteBuffer [slotWords * word]byte
)

// writeSlot writes the record of a slot. The lock is held.
func writeSlot(i int) {
	if table == nil {
		return
	}
	pool.slots[i].put(slotBuffer[:blockWords])
	pool.earlier[i].put(slotBuffer[blockWords:])
	writeWords(headerWords+i*slotWords, slotBuffer[:])
}

// put makes the record of b.
func (b *Block) put(words []uint64) {
	clear(words)
	copy(words, []uint64{uint64(b.Start), uint64(b.Size), 0, uint64(b.Alloc), uint64(b.Free), 0, 0})
	if b.Live {
		words[2] = 1
	}
	for k, id := range []uint32{b.AllocStack, b.FreeStack} {
		pcs := sample.PCs(id)
		pcs = pcs[:min(len(pcs), deepest)]
		words[5+k] = uint64(len(pcs))
		for j, pc := range pcs {
			words[7+k*deepest+j] = uint64(pc)
		}
	}
}

// writeWords writes to the table. If that fails, the other process knows less.
func writeWords(at int, words []uint64) {
	b := byteBuffer[:0]
	for _, w := range words {
		b = binary.LittleEndian.AppendUint64(b, w)
	}
	_, _ = table.WriteAt(b, int64(at)*word)
}

// A Table is what another process of the program has shared.
type Table struct {
	base, slotSize uintptr
	slots          []Block
	traced         [][2]Traced // the blocks of each slot: that in slots, and the one before
}

// A Traced is a Block with its stacks as program counters.
type Traced struct {
	Block
	AllocPCs, FreePCs []uintptr
}

// Trace returns b with its stacks. A stack is missing if the slot has been used anew twice since.
func Trace(b Block) Traced {
	return Traced{b, sample.PCs(b.AllocStack), sample.PCs(b.FreeStack)}
}

// ReadTable reads what Share has written, in a process of the same program.
func ReadTable(r io.Reader) (*Table, error) {
	b, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	t := &Table{}
	if len(b) == 0 {
		return t, nil // no block was guarded yet
	}
	at := func(i int) uint64 {
		if len(b) < (i+1)*word {
			return 0 // a slot behind the last one that was used
		}
		return binary.LittleEndian.Uint64(b[i*word:])
	}
	n := at(4)
	if at(0) != magic || n > MostSlots {
		return nil, errors.New("cheap: the table of guarded blocks is of another program")
	}
	slide := anchor() - uintptr(at(1))
	t.base, t.slotSize = uintptr(at(2)), uintptr(at(3))
	for i := range int(n) {
		var both [2]Traced
		for k := range both {
			both[k] = read(at, headerWords+i*slotWords+k*blockWords, slide)
		}
		t.slots = append(t.slots, both[0].Block)
		t.traced = append(t.traced, both)
	}
	return t, nil
}

// read reads the record of a block at that word. slide is by how much the code lies higher here.
func read(at func(int) uint64, first int, slide uintptr) Traced {
	b := Traced{Block: Block{
		Start: uintptr(at(first)), Size: uintptr(at(first + 1)), Live: at(first+2) != 0,
		Alloc: uintptr(at(first + 3)), Free: uintptr(at(first + 4)),
	}}
	for k, pcs := range []*[]uintptr{&b.AllocPCs, &b.FreePCs} {
		for j := range int(min(at(first+5+k), deepest)) {
			*pcs = append(*pcs, uintptr(at(first+7+k*deepest+j))+slide)
		}
	}
	return b
}

// Find is the function of that name in the process that shares, with the stacks of the
// blocks as program counters of this process.
func (t *Table) Find(addr uintptr) (b, earlier Traced, ok bool) {
	if t.slotSize == 0 {
		return b, earlier, false
	}
	found, ok := nearest(addr, t.base, t.slotSize, t.slots)
	if !ok {
		return b, earlier, false
	}
	b = t.traced[(found.Start-t.base)/t.slotSize][0]
	if i := (addr - t.base) / t.slotSize; i < uintptr(len(t.traced)) {
		if e := &t.traced[i][1]; e.ifAt(addr).Start != 0 {
			earlier = *e
		}
	}
	return b, earlier, true
}
