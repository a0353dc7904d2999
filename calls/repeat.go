//go:build cgo

package calls

/*
#include "ops.h"
*/
import "C"

import (
	"math"
	"unsafe"

	"github.com/cheapgo/cheap"
)

// A Repeat is a loop: it makes calls while a condition holds, and keeps results of each iteration,
// a row, in arrays. Record, in this order: [List.Repeat], calls that find out whether there is a
// row, [Repeat.While], calls that read the row, with [Repeat.Ints], [Repeat.Floats],
// [Repeat.Bytes] and [Repeat.Equal] for what to keep, and [Repeat.End].
//
// A run ends when the arrays have as many rows as they can, or when a text does not fit. The
// next [List.Run] goes on there: a row that did not fit is its first, and no row is lost.
// [Repeat.More] says whether there may be more rows. The calls behind While are made again for
// a row that did not fit, and for one at which ctx was done: they should read the row, and
// change nothing. Those before While are made once.
type Repeat struct {
	list  *List
	gen   uint32
	rows  int
	begin int // the operation that begins
	body  int // behind While; 0 before
	end   int // behind the last operation; 0 before End
	whil  int // the operation of While
	done  int // where While goes on after the last row
}

// Repeat begins a repetition, which keeps at most rows rows in a run: its arrays have that length
// from the beginning. Repetitions can follow each other, but not lie within each other.
// The Repeat must not be used after the list was reset: the list uses it again.
func (l *List) Repeat(rows int) *Repeat {
	if rows < 1 {
		panicMisuse("List.Repeat", "%d rows; the least is 1", rows)
	}
	rows = min(rows, mostRows)
	l.mustBeIdle("recording")
	if l.open != nil {
		panicMisuse("List.Repeat", "a repetition is open; call its End before")
	}
	l.endSkips("a repetition")
	at := len(l.words)
	l.words = append(l.words, C.CALLS_REPEAT, 0, uint64(rows), 0)
	l.plain = false
	if l.inUse == len(l.loops) {
		l.loops = append(l.loops, new(Repeat))
	}
	p := l.loops[l.inUse]
	l.inUse++
	*p = Repeat{list: l, gen: l.gen, rows: rows, begin: at}
	l.open = p
	return p
}

// mustBeOpen panics unless calls of the repetition are being recorded.
func (p *Repeat) mustBeOpen(method string) {
	if p.list.open != p {
		panicMisuse("Repeat."+method, "the repetition is not being recorded")
	}
}

// While records that the repetition ends if the condition does not hold. There is one for each
// repetition.
func (p *Repeat) While(c Condition) {
	p.mustBeOpen("While")
	if p.body != 0 {
		panicMisuse("Repeat.While", "the repetition has a While; use StopIf or SkipIf for other conditions")
	}
	l := p.list
	l.endSkips("While")
	l.check(c)
	p.whil = l.skip(c.not())
	p.body = len(l.words)
}

// End ends the repetition.
func (p *Repeat) End() {
	p.mustBeOpen("End")
	if p.body == 0 {
		panicMisuse("Repeat.End", "the repetition has no While, and would never end")
	}
	l := p.list
	l.endSkips("End")
	l.words = append(l.words, C.CALLS_ROW, uint64(p.begin))
	p.done = len(l.words)
	l.land(p.whil, p.done)
	l.words = append(l.words, C.CALLS_NO_ROW, uint64(p.begin))
	p.end = len(l.words)
	l.open = nil
}

// keep prepares for an operation that keeps a result of the row, and returns its index.
func (p *Repeat) keep(r Result, method string) (result uint64) {
	p.mustBeOpen(method)
	if p.body == 0 {
		panicMisuse("Repeat."+method, "call While before: it says whether there is a row")
	}
	l := p.list
	l.endSkips("what is kept of the row") // which is never skipped
	return r.index(l, "Repeat."+method)
}

// array returns memory for n elements of size bytes.
func (p *Repeat) array(n, size int) unsafe.Pointer {
	return p.list.alloc(n * size) // of mostRows it does not overflow
}

// mostRows is more than there is memory for, and more than are ever read.
const mostRows = math.MaxInt/8 - 1

// A Column has a number of each row.
type Column[T int64 | float64] struct {
	repeat *Repeat
	data   unsafe.Pointer
	gen    uint32
}

// Ints records that an integer or a pointer is kept for each row, widened to 64 bits.
func (p *Repeat) Ints(r Result) Column[int64] {
	if r.isFloat() {
		panicMisuse("Repeat.Ints", "the result is a double; use Floats")
	}
	return Column[int64]{p, p.store(r, "Ints"), p.gen}
}

// Floats records that a double is kept for each row.
func (p *Repeat) Floats(r Result) Column[float64] {
	if !r.isFloat() {
		panicMisuse("Repeat.Floats", "the result is no double; use Ints")
	}
	return Column[float64]{p, p.store(r, "Floats"), p.gen}
}

func (p *Repeat) store(r Result, method string) unsafe.Pointer {
	x := p.keep(r, method)
	data := p.array(p.rows, 8)
	p.list.words = append(p.list.words, C.CALLS_STORE, x, uint64(uintptr(data)), uint64(p.begin))
	return data
}

// Values returns the numbers of the rows of the last Run, in their order. They are outside
// the Go heap, and valid until the next Run, Reset or Put of the list, which must be reachable.
func (c Column[T]) Values() []T {
	return unsafe.Slice((*T)(c.data), c.repeat.readable(c.gen, "Column.Values"))
}

// Flags has a truth value of each row.
type Flags struct {
	repeat *Repeat
	data   unsafe.Pointer
	gen    uint32
}

// Equal records that for each row it is kept whether the result is v: for example whether a
// column is NULL.
func (p *Repeat) Equal(r Result, v int64) Flags {
	if r.isFloat() {
		panicMisuse("Repeat.Equal", "the result is a double; conditions are for integers and pointers")
	}
	x := p.keep(r, "Equal")
	data := p.array(p.rows, 1)
	p.list.words = append(p.list.words, C.CALLS_IS, x, uint64(uintptr(data)), uint64(p.begin), uint64(v))
	return Flags{p, data, p.gen}
}

// Values is [Column.Values] of truth values.
func (f Flags) Values() []bool {
	return unsafe.Slice((*bool)(f.data), f.repeat.readable(f.gen, "Flags.Values"))
}

// Texts has bytes of each row.
type Texts struct {
	repeat *Repeat
	at     int // the operation
	gen    uint32
}

// Bytes records that for each row n bytes at r are kept. Both are results; n may be 0 or less,
// and r may be a null pointer, for no bytes. The texts of a run share a buffer of size bytes.
// A text that is larger is kept: then the buffer grows.
func (p *Repeat) Bytes(r, n Result, size int) Texts {
	if size < 1 {
		panicMisuse("Repeat.Bytes", "a buffer of %d bytes", size)
	}
	if r.isFloat() || n.isFloat() {
		panicMisuse("Repeat.Bytes", "a result is a double")
	}
	from, length := p.keep(r, "Bytes"), n.index(p.list, "Repeat.Bytes")
	ends := p.array(p.rows+1, 8)
	if ends != nil {
		*(*uint64)(ends) = 0
	}
	l := p.list
	at := len(l.words)
	l.words = append(l.words, C.CALLS_BYTES, from, length, uint64(p.begin),
		uint64(uintptr(ends)), uint64(uintptr(p.array(size, 1))), uint64(size))
	return Texts{p, at, p.gen}
}

// At returns the bytes of row i of the last Run. They are outside the Go heap, and valid until
// the next Run, Reset or Put of the list, which must be reachable.
func (t Texts) At(i int) []byte {
	rows := t.repeat.readable(t.gen, "Texts.At")
	l := t.repeat.list
	ends := unsafe.Slice((*uint64)(pointer(l.words[t.at+4])), rows+1)
	begin, end := ends[i], ends[i+1] // i is a row, or this panics
	return unsafe.Slice((*byte)(unsafe.Add(pointer(l.words[t.at+5]), begin)), end-begin)
}

// String returns a copy of the bytes of row i as a string.
func (t Texts) String(i int) string { return string(t.At(i)) }

// readable returns the number of rows, for a column of a recording.
func (p *Repeat) readable(gen uint32, method string) int {
	if p.gen != gen {
		panicMisuse(method, "the list was reset or given back since")
	}
	return p.Rows()
}

// Rows returns how many rows the last Run has kept.
func (p *Repeat) Rows() int {
	p.mustHaveRun("Rows")
	return int(p.list.words[p.begin+1])
}

// More reports whether the condition of [Repeat.While] has held until the end of the last
// Run. Then the next Run goes on with the next row, unless the list was stopped or rewound.
func (p *Repeat) More() bool {
	p.mustHaveRun("More")
	return p.list.words[p.begin+3] == 0
}

func (p *Repeat) mustHaveRun(method string) {
	l := p.list
	if l.gen != p.gen || l.state != idle {
		panicMisuse("Repeat."+method, "the list was reset or given back since, or runs")
	}
	if l.ran != p.gen || p.end == 0 {
		panicMisuse("Repeat."+method, "the list did not run")
	}
}

// around returns the repetition in which an operation is, nil if there is none.
func (l *List) around(at int) *Repeat {
	for _, p := range l.loops[:l.inUse] {
		if at > p.begin && at < p.end {
			return p
		}
	}
	return nil
}

// resumeAt returns where to go on after a run that ended at an operation. The columns of a row
// that is not complete are read again, because the arrays begin again. The last operation of a
// repetition has no row.
func (l *List) resumeAt(at int) int {
	if p := l.around(at); p != nil && at > p.body && at != p.done {
		return p.body
	}
	return at
}

// growBuffer makes the buffer larger that an operation has found too small for a text, if it
// is that of the first row. Otherwise there are rows to read before.
func (l *List) growBuffer(at int) (grown bool, err error) {
	if l.around(at).Rows() > 0 {
		return false, nil
	}
	size := max(int(l.run.need), 2*int(l.words[at+6]))
	p := l.memory.Malloc(size)
	if p == nil {
		return false, cheap.ErrNoMemory
	}
	l.words[at+5], l.words[at+6] = uint64(uintptr(p)), uint64(size)
	return true, nil
}

// AppendTo appends the bytes of all rows of the last Run to data, and for each row the length
// that data has with it to ends. It returns both.
func (t Texts) AppendTo(data []byte, ends []uint64) ([]byte, []uint64) {
	rows := t.repeat.readable(t.gen, "Texts.AppendTo")
	l := t.repeat.list
	have := unsafe.Slice((*uint64)(pointer(l.words[t.at+4])), rows+1)
	before := uint64(len(data))
	data = append(data, unsafe.Slice((*byte)(pointer(l.words[t.at+5])), have[rows])...)
	for _, end := range have[1:] {
		ends = append(ends, before+end)
	}
	return data, ends
}
