package getter

import (
	"debug/elf"
	"fmt"
)

// A machine executes what cgo has made around a function of C. It is called with the address of a
// struct, which has the arguments and, behind them, the result:
//
//	top := _cgo_topofstack();
//	result = function(arguments->p0);
//	arguments += _cgo_topofstack() - top;	// where the stack of Go is now
//	arguments->r = result;
//
// The address is a symbol, and so are the stack pointer and what _cgo_topofstack returns. A register has
// a sum of them, or something that was read from an address that is such a sum. The machine stops at
// everything else: at branches, arithmetic, calls of what is not in the files, and writes to memory other
// than the stack and the result.
type machine struct {
	program *Program
	file    *file
	pc      uint64
	callers []caller

	registers [96]value // 16 or 32 integer ones, the stack pointer at spRegister, and vectors from vectorRegister on
	stack     []cell
	reads     int // of memory other than the stack and the arguments

	result *cell // what was written behind the arguments
}

const (
	spRegister     = 32
	vectorRegister = 40
)

// A caller is where a function returns to.
type caller struct {
	file *file
	pc   uint64
}

// A value is what is known of a register or of a piece of memory.
type value struct {
	bytes int // so many of the low ones are known

	// The sum of these, as often as they say, of something read, and of a number.
	sp, arguments, top int
	read               *read
	offset             int64

	function string // or its address
}

// A read is a piece of memory that was read. Where more bytes are known than it has, the others are
// copies of its sign, or zero.
type read struct {
	from   value
	size   int
	signed bool
}

// A cell is a piece of the stack, or the result.
type cell struct {
	at   int64 // from the stack pointer at the beginning on, or from the arguments
	size int
	value
}

func number(n int64) value { return value{bytes: 8, offset: n} }

// isRead reports whether a value is what was read, and nothing is added to it.
func (v value) isRead() bool {
	return v.read != nil && v.sp == 0 && v.arguments == 0 && v.top == 0 && v.offset == 0 && v.function == ""
}

func (v value) isNumber() bool {
	return v.bytes == 8 && v.read == nil && v.sp == 0 && v.arguments == 0 && v.top == 0 && v.function == ""
}

// plus adds two values of eight bytes.
func (v value) plus(w value) value {
	if v.bytes < 8 || w.bytes < 8 || v.read != nil && w.read != nil || v.function != "" || w.function != "" {
		return value{}
	}
	sum := value{bytes: 8, sp: v.sp + w.sp, arguments: v.arguments + w.arguments, top: v.top + w.top, read: v.read, offset: v.offset + w.offset}
	if sum.read == nil {
		sum.read = w.read
	}
	return sum
}

// minus subtracts what is not read.
func (v value) minus(w value) value {
	if w.read != nil {
		return value{}
	}
	return v.plus(value{bytes: w.bytes, sp: -w.sp, arguments: -w.arguments, top: -w.top, offset: -w.offset, function: w.function})
}

// extend takes the low bytes of a value, and extends them to more.
func (v value) extend(from int, signed bool, to int) value {
	switch {
	case from > v.bytes:
		return v // nothing is known of the others
	case v.isNumber():
		shift := 64 - 8*from
		if signed {
			v.offset = v.offset << shift >> shift
		} else {
			v.offset = int64(uint64(v.offset) << shift >> shift)
		}
		if to < 8 {
			return value{} // nobody needs it
		}
		return v
	case v.isRead():
		r := *v.read
		switch {
		case from <= r.size:
			r.size, r.signed = from, signed
		case r.signed && !signed:
			to = min(to, from)
		}
		return value{bytes: max(to, from), read: &r}
	case from == 8 && v.bytes == 8:
		return v
	}
	return value{}
}

// part returns a part of what a value of some bytes has in memory.
func (v value) part(size int, at int64, n int) value {
	if at == 0 && n == size {
		return v
	}
	if at == 0 && n <= 8 {
		return v.extend(n, false, n)
	}
	if !v.isRead() || v.read.size != size {
		return value{}
	}
	return value{bytes: n, read: &read{from: v.read.from.plus(number(at)), size: n}}
}

func newMachine(p *Program, start uint64) *machine {
	m := &machine{program: p, file: p.main, pc: start}
	m.registers[spRegister] = value{bytes: 8, sp: 1}
	first := 7 // RDI
	if p.main.elf.Machine == elf.EM_AARCH64 {
		first = 0
	}
	m.registers[first] = value{bytes: 8, arguments: 1}
	return m
}

// most bounds how many instructions are executed.
const most = 500

// run executes until the first function returns.
func (m *machine) run() error {
	step := m.stepAMD64
	switch m.program.main.elf.Machine {
	case elf.EM_X86_64:
	case elf.EM_AARCH64:
		step = m.stepARM64
	default:
		return fmt.Errorf("the machine code of %v is not known", m.program.main.elf.Machine)
	}
	for range most {
		if !step() {
			return errOther
		}
		if m.file == nil {
			return nil
		}
	}
	return errOther
}

// load reads memory: size bytes, of which the low ones of a register get copies of the sign or zeros up
// to so many.
func (m *machine) load(at value, size int, signed bool, to int) (value, bool) {
	var v value
	switch {
	case at.bytes < 8 || at.top != 0 || at.function != "":
		return v, false
	case at.sp == 1 && at.arguments == 0 && at.read == nil:
		v = m.onStack(at.offset, size)
		if size <= 8 {
			v = v.extend(size, signed, to)
		}
		return v, true
	case at.isNumber():
		name, found := m.file.slots[uint64(at.offset)]
		return value{bytes: 8, function: name}, found && size == 8
	case at.sp != 0 || at.arguments == 1 && at.read != nil || at.arguments > 1:
		return v, false
	case at.arguments == 0 && (at.read == nil || at.read.size != 8):
		return v, false
	case at.read != nil:
		m.reads++
	}
	return value{bytes: max(to, size), read: &read{from: at, size: size, signed: signed}}, true
}

// onStack returns what is in the stack: nothing is known of what was not written, and of what was
// written in other pieces.
func (m *machine) onStack(at int64, size int) value {
	for _, c := range m.stack {
		if c.at <= at && at+int64(size) <= c.at+int64(c.size) {
			return c.part(c.size, at-c.at, size)
		}
	}
	return value{}
}

// store writes memory. It may be the stack, or once the result.
func (m *machine) store(at value, size int, v value) bool {
	switch {
	case at.bytes < 8 || at.top != 0 || at.read != nil || at.function != "":
		return false
	case at.sp == 1 && at.arguments == 0:
		kept := m.stack[:0]
		for _, c := range m.stack {
			if c.at+int64(c.size) <= at.offset || at.offset+int64(size) <= c.at {
				kept = append(kept, c)
			}
		}
		m.stack = append(kept, cell{at.offset, size, v})
		return true
	case at.sp == 0 && at.arguments == 1 && m.result == nil:
		m.result = &cell{at.offset, size, v}
		return true
	}
	return false
}

// enter goes on at an address in the same file, or at a function of another one.
func (m *machine) enter(to value) bool {
	if !to.isNumber() {
		if to.function == "" {
			return false
		}
		file, at := m.program.main, m.program.main.exported(to.function)
		if at == 0 {
			file, at = m.program.library(to.function)
		}
		if at == 0 || file.elf.Machine != m.file.elf.Machine {
			return false
		}
		m.file, to = file, number(int64(at))
	}
	m.pc = uint64(to.offset)
	return true
}

// call is enter for a function that returns to here. The returned bool is false also for one that is
// done already.
func (m *machine) call(to value) (entered, ok bool) {
	if to.isNumber() && m.file == m.program.main && m.file.names[uint64(to.offset)] == "_cgo_topofstack" {
		return false, true
	}
	m.callers = append(m.callers, caller{m.file, m.pc})
	return true, m.enter(to)
}

// returns goes on behind the call. There is no file behind the first function.
func (m *machine) returns() {
	m.file = nil
	if n := len(m.callers); n > 0 {
		m.file, m.pc = m.callers[n-1].file, m.callers[n-1].pc
		m.callers = m.callers[:n-1]
	}
}

// A step of a path leads from a piece of memory to a part of it: the first piece has the arguments,
// each other one is what the part before points to.
type step struct {
	at    int64
	size  int
	float bool // the last one is to a float, of several types at one place
}

// copied returns the path to what was copied to the result, nil if something else was done, with the
// bytes of the result, and whether they are a number with a sign.
func (m *machine) copied() (steps []step, size int, signed bool) {
	if m.result == nil || !m.result.isRead() || m.result.size > m.result.bytes {
		return nil, 0, false
	}
	for r := m.result.read; r != nil; r = r.from.read {
		steps = append([]step{{at: r.from.offset, size: r.size}}, steps...)
		if r.from.read == nil && r.from.arguments != 1 {
			return nil, 0, false
		}
	}
	if m.reads != len(steps)-1 {
		return nil, 0, false // what was read, and not copied, may have been read for a reason
	}
	return steps, m.result.size, m.result.read.signed
}
