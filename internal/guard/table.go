package guard

import (
	"encoding/binary"
	"errors"
	"io"
	"reflect"

	"github.com/cheapgo/cheap/internal/sample"
)

// Another process of the same program can know the slots, so that it can say what a fault was
// that has ended this one. It reads a file that this process writes to whenever a block is
// placed or freed. What is written to a file outlives the process.
//
// The file is words of 64 bits, the lowest byte first: a header, and a record for each slot.

const (
	deepest     = 32 // frames of a stack, the innermost ones
	headerWords = 8
	slotWords   = 7 + 2*deepest
	word        = 8

	magic = 0x63686561_70677501 // its last byte is the version of the format
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
	b := &pool.slots[i]
	words := slotBuffer[:]
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
	writeWords(headerWords+i*slotWords, words)
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
	stacks         map[uintptr][2][]uintptr // by the start of the block: of its allocation, and of its free
}

// ReadTable reads what Share has written, in a process of the same program.
func ReadTable(r io.Reader) (*Table, error) {
	b, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	t := &Table{stacks: map[uintptr][2][]uintptr{}}
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
		first := headerWords + i*slotWords
		s := Block{
			Start: uintptr(at(first)), Size: uintptr(at(first + 1)), Live: at(first+2) != 0,
			Alloc: uintptr(at(first + 3)), Free: uintptr(at(first + 4)),
		}
		var stacks [2][]uintptr
		for k := range stacks {
			for j := range int(min(at(first+5+k), deepest)) {
				stacks[k] = append(stacks[k], uintptr(at(first+7+k*deepest+j))+slide)
			}
		}
		t.slots = append(t.slots, s)
		t.stacks[s.Start] = stacks
	}
	return t, nil
}

// Find is the function of that name in the process that shares, with the stacks of the
// block as program counters of this process.
func (t *Table) Find(addr uintptr) (b Block, alloc, free []uintptr, ok bool) {
	if t.slotSize == 0 {
		return Block{}, nil, nil, false
	}
	b, ok = nearest(addr, t.base, t.slotSize, t.slots)
	stacks := t.stacks[b.Start]
	return b, stacks[0], stacks[1], ok
}
