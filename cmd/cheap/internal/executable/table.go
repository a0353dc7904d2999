package executable

import (
	"bytes"
	"encoding/binary"
	"errors"
	"sort"
	"strings"

	"github.com/cheapgo/cheap/cmem/heapprofile"
)

// A table is that of the functions of a Go program, which the runtime calls pclntab. Its form is
// that of Go 1.20 and later. Package debug/gosym reads it, too, but not which functions are
// inlined.
type table struct {
	order                         binary.ByteOrder
	data                          []byte
	text                          uint64 // where the first function lies
	quantum                       uint64 // of addresses
	nfunc                         uint64
	names, units, files, pcs, fns uint64 // where these parts begin in data

	image  *image
	gofunc uint64 // the address of tables of inlined functions; 0 if it is not known
}

const pclntabMagic = 0xfffffff1

var errTable = errors.New("no table of functions that is known")

func newTable(order binary.ByteOrder, data []byte, text uint64) (*table, error) {
	if len(data) < 72 || order.Uint32(data) != pclntabMagic || data[7] != 8 {
		return nil, errTable
	}
	field := func(i int) uint64 { return order.Uint64(data[8+8*i:]) }
	t := &table{
		order: order, data: data, text: text, quantum: uint64(data[6]), nfunc: field(0),
		names: field(3), units: field(4), files: field(5), pcs: field(6), fns: field(7),
	}
	if t.nfunc == 0 || t.nfunc > uint64(len(data)) || t.fns > uint64(len(data)) || t.fns+8*t.nfunc+4 > uint64(len(data)) {
		return nil, errTable
	}
	return t, nil
}

// uint32 returns the number at a place of data, or 0 behind its end.
func (t *table) uint32(at uint64) uint32 {
	if at > uint64(len(t.data)) || uint64(len(t.data))-at < 4 {
		return 0
	}
	return t.order.Uint32(t.data[at:])
}

func (t *table) cstring(at uint64) string {
	if at >= uint64(len(t.data)) {
		return ""
	}
	end := bytes.IndexByte(t.data[at:], 0)
	if end < 0 {
		return ""
	}
	return string(t.data[at : at+uint64(end)])
}

// entry returns where function i begins, from the first one.
func (t *table) entry(i uint64) uint64 { return uint64(t.uint32(t.fns + 8*i)) }

// record returns the place of the record of function i.
func (t *table) record(i uint64) uint64 { return t.fns + uint64(t.uint32(t.fns+8*i+4)) }

// name returns the name of a function, with [...] for the types that it is made for, as the runtime
// prints it.
func (t *table) name(off uint32) string {
	s := t.cstring(t.names + uint64(off))
	from, to := strings.IndexByte(s, '['), strings.LastIndexByte(s, ']')
	if from < 0 || to < from {
		return s
	}
	return s[:from] + "[...]" + s[to+1:]
}

// find returns where the function of a name lies.
func (t *table) find(name string) (Range, bool) {
	for i := range t.nfunc {
		if t.name(t.uint32(t.record(i)+4)) == name {
			return Range{t.text + t.entry(i), t.text + t.entry(i+1)}, true
		}
	}
	return Range{}, false
}

// value returns what the table of a function, at a place in pcs, says of an address, from the begin
// of the function on. It is -1 if there is no table, or nothing is known.
func (t *table) value(off uint32, at uint64) int32 {
	if off == 0 || t.pcs+uint64(off) >= uint64(len(t.data)) {
		return -1
	}
	rest := t.data[t.pcs+uint64(off):]
	value, pc := int32(-1), uint64(0)
	for first := true; ; first = false {
		delta, n := binary.Uvarint(rest)
		if n <= 0 || delta == 0 && !first {
			return -1
		}
		rest = rest[n:]
		if delta&1 != 0 {
			value += int32(^(delta >> 1))
		} else {
			value += int32(delta >> 1)
		}
		step, n := binary.Uvarint(rest)
		if n <= 0 {
			return -1
		}
		rest = rest[n:]
		if pc += step * t.quantum; at < pc {
			return value
		}
	}
}

// The parts of a function's record, in bytes; the tables that follow are numbered.
const (
	pcfileAt, pclnAt, npcdataAt, unitAt, nfuncdataAt = 20, 24, 28, 32, 43
	recordSize                                       = 44
	inlineIndex, inlineTree                          = 2, 3
)

// frames returns the functions at an address, innermost first.
func (t *table) frames(pc uint64) []heapprofile.Frame {
	at := pc - t.text
	if pc < t.text || at >= t.entry(t.nfunc) {
		return nil
	}
	i := uint64(sort.Search(int(t.nfunc), func(i int) bool { return t.entry(uint64(i)) > at }))
	if i == 0 {
		return nil
	}
	i--
	record := t.record(i)
	at -= t.entry(i)
	var all []heapprofile.Frame
	for {
		frame := heapprofile.Frame{
			Function: t.name(t.uint32(record + 4)),
			File:     t.file(record, t.value(t.uint32(record+pcfileAt), at)),
			Line:     int(max(0, t.value(t.uint32(record+pclnAt), at))),
		}
		name, parent, inlined := t.inlined(record, at)
		if !inlined || len(all) > 100 {
			return append(all, frame)
		}
		frame.Function = name
		all = append(all, frame)
		at = parent
	}
}

func (t *table) file(record uint64, number int32) string {
	if number < 0 {
		return ""
	}
	unit := uint64(t.uint32(record + unitAt))
	off := t.uint32(t.units + 4*(unit+uint64(number)))
	if off == 1<<32-1 {
		return ""
	}
	return t.cstring(t.files + uint64(off))
}

// inlined returns the function that is inlined at an address of another one, and the address of the
// call, both from the begin of the function.
func (t *table) inlined(record, at uint64) (name string, parent uint64, ok bool) {
	npcdata := uint64(t.uint32(record + npcdataAt))
	if t.gofunc == 0 || npcdata <= inlineIndex || record+nfuncdataAt >= uint64(len(t.data)) || t.data[record+nfuncdataAt] <= inlineTree {
		return "", 0, false
	}
	index := t.value(t.uint32(record+recordSize+4*inlineIndex), at)
	tree := t.uint32(record + recordSize + 4*npcdata + 4*inlineTree)
	if index < 0 || tree == 1<<32-1 {
		return "", 0, false
	}
	call, err := t.image.bytes(t.gofunc+uint64(tree)+16*uint64(index), 16)
	if err != nil {
		return "", 0, false
	}
	name = t.name(t.order.Uint32(call[4:]))
	return name, uint64(t.order.Uint32(call[8:])), name != ""
}
