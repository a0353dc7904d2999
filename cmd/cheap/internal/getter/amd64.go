package getter

import (
	"golang.org/x/arch/x86/x86asm"
)

// registerAMD64 returns the index of a register, and how many bytes of it a name stands for.
func registerAMD64(r x86asm.Reg) (index, size int) {
	of := func(first x86asm.Reg, size int) (int, int) {
		if i := int(r - first); i != 4 {
			return i, size
		}
		return spRegister, size
	}
	switch {
	case x86asm.RAX <= r && r <= x86asm.R15:
		return of(x86asm.RAX, 8)
	case x86asm.EAX <= r && r <= x86asm.R15L:
		return of(x86asm.EAX, 4)
	case x86asm.AX <= r && r <= x86asm.R15W:
		return of(x86asm.AX, 2)
	case x86asm.AL <= r && r <= x86asm.BL:
		return of(x86asm.AL, 1)
	case x86asm.SPB <= r && r <= x86asm.R15B:
		return of(x86asm.SPB-4, 1) // behind AH, CH, DH and BH
	case x86asm.X0 <= r && r <= x86asm.X15:
		return vectorRegister + int(r-x86asm.X0), 16
	}
	return -1, 0
}

// stepAMD64 executes an instruction.
func (m *machine) stepAMD64() bool {
	code := m.file.code(m.pc, 15)
	if len(code) >= 4 && string(code[:3]) == "\xf3\x0f\x1e" && (code[3] == 0xfa || code[3] == 0xfb) { // ENDBR64, ENDBR32
		m.pc += 4
		return true
	}
	in, err := x86asm.Decode(code, 64)
	if err != nil {
		return false
	}
	for _, p := range in.Prefix {
		switch p & 0xff {
		case x86asm.PrefixLOCK & 0xff, x86asm.PrefixFS & 0xff, x86asm.PrefixGS & 0xff:
			if in.Op != x86asm.NOP {
				return false
			}
		}
	}
	m.pc += uint64(in.Len)
	sp := &m.registers[spRegister]
	switch in.Op {
	case x86asm.NOP:
		return true
	case x86asm.RET:
		if in.Args[0] != nil {
			return false
		}
		*sp = sp.plus(number(8))
		m.returns()
		return true
	case x86asm.LEAVE:
		*sp = m.registers[5]
		return m.pop(5)
	case x86asm.PUSH:
		v, ok := m.getAMD64(in.Args[0], 8, false, 8)
		*sp = sp.plus(number(-8))
		return ok && m.store(*sp, 8, v)
	case x86asm.POP:
		r, ok := in.Args[0].(x86asm.Reg)
		if index, size := registerAMD64(r); ok && size == 8 {
			return m.pop(index)
		}
		return false
	case x86asm.CALL:
		to, ok := m.getAMD64(in.Args[0], 8, false, 8)
		if !ok {
			return false
		}
		entered, ok := m.call(to)
		if entered {
			*sp = sp.plus(number(-8))
			return ok && m.store(*sp, 8, value{})
		}
		m.registers[0] = value{bytes: 8, top: 1}
		return ok
	case x86asm.JMP:
		to, ok := m.getAMD64(in.Args[0], 8, false, 8)
		return ok && m.enter(to)
	case x86asm.CDQE:
		m.registers[0] = m.registers[0].extend(4, true, 8)
		return true
	case x86asm.CWDE:
		m.registers[0] = m.registers[0].extend(2, true, 4)
		return true
	}
	return m.moveAMD64(in)
}

func (m *machine) pop(index int) bool {
	sp := &m.registers[spRegister]
	v, ok := m.load(*sp, 8, false, 8)
	*sp = sp.plus(number(8))
	m.registers[index] = v
	return ok
}

// moveAMD64 executes an instruction with a destination and a source.
func (m *machine) moveAMD64(in x86asm.Inst) bool {
	to, from := in.Args[0], in.Args[1]
	if to == nil || from == nil || in.Args[2] != nil {
		return false
	}
	size := sizeAMD64(to, in.MemBytes)
	switch in.Op {
	case x86asm.MOV:
		v, ok := m.getAMD64(from, size, false, size)
		return ok && m.setAMD64(to, size, v)
	case x86asm.MOVZX, x86asm.MOVSX, x86asm.MOVSXD:
		v, ok := m.getAMD64(from, sizeAMD64(from, in.MemBytes), in.Op != x86asm.MOVZX, size)
		return ok && m.setAMD64(to, size, v)
	case x86asm.MOVDQU, x86asm.MOVDQA, x86asm.MOVUPS, x86asm.MOVAPS, x86asm.MOVUPD, x86asm.MOVAPD:
		v, ok := m.getAMD64(from, 16, false, 16)
		return ok && m.setAMD64(to, 16, v)
	case x86asm.MOVSS, x86asm.MOVSD_XMM, x86asm.MOVQ, x86asm.MOVD:
		size := map[x86asm.Op]int{x86asm.MOVSS: 4, x86asm.MOVSD_XMM: 8, x86asm.MOVQ: 8, x86asm.MOVD: 4}[in.Op]
		v, ok := m.getAMD64(from, size, false, size)
		return ok && m.setAMD64(to, size, v)
	case x86asm.LEA:
		mem, ok := from.(x86asm.Mem)
		at, known := m.addressAMD64(mem)
		return ok && known && size == 8 && m.setAMD64(to, 8, at)
	case x86asm.ADD, x86asm.SUB:
		v, ok := m.getAMD64(to, size, false, size)
		w, also := m.getAMD64(from, size, false, size)
		if !ok || !also || size != 8 {
			return false
		}
		if in.Op == x86asm.SUB {
			return m.setAMD64(to, 8, v.minus(w))
		}
		return m.setAMD64(to, 8, v.plus(w))
	case x86asm.XOR:
		return to == from && size >= 4 && m.setAMD64(to, size, number(0))
	}
	return false
}

// sizeAMD64 returns the bytes of an operand.
func sizeAMD64(a x86asm.Arg, memory int) int {
	if r, ok := a.(x86asm.Reg); ok {
		_, size := registerAMD64(r)
		return size
	}
	return memory
}

func (m *machine) addressAMD64(mem x86asm.Mem) (value, bool) {
	if mem.Segment != 0 {
		return value{}, false
	}
	at := number(mem.Disp)
	if mem.Base == x86asm.RIP {
		return at.plus(number(int64(m.pc))), true
	}
	for _, part := range []struct {
		register x86asm.Reg
		scale    uint8
	}{{mem.Base, 1}, {mem.Index, mem.Scale}} {
		if part.register == 0 {
			continue
		}
		index, size := registerAMD64(part.register)
		if size != 8 {
			return value{}, false
		}
		v := m.registers[index]
		if part.scale != 1 {
			if !v.isNumber() {
				return value{}, true
			}
			v.offset *= int64(part.scale)
		}
		at = at.plus(v)
	}
	return at, true
}

// getAMD64 returns the value of an operand, of which so many bytes are extended to so many.
func (m *machine) getAMD64(a x86asm.Arg, size int, signed bool, to int) (value, bool) {
	switch a := a.(type) {
	case x86asm.Reg:
		index, n := registerAMD64(a)
		if index < 0 || n < size {
			return value{}, false
		}
		v := m.registers[index]
		if size > 8 {
			return v, true
		}
		return v.extend(size, signed, to), true
	case x86asm.Imm:
		return number(int64(a)), true
	case x86asm.Rel:
		return number(int64(m.pc) + int64(a)), true
	case x86asm.Mem:
		at, ok := m.addressAMD64(a)
		if !ok {
			return value{}, false
		}
		return m.load(at, size, signed, to)
	}
	return value{}, false
}

// setAMD64 writes an operand. One of four bytes clears the rest of its register, a smaller one leaves
// it, and then nothing is known of the rest.
func (m *machine) setAMD64(a x86asm.Arg, size int, v value) bool {
	switch a := a.(type) {
	case x86asm.Reg:
		index, n := registerAMD64(a)
		if index < 0 {
			return false
		}
		if n == 4 {
			v = v.extend(4, false, 8)
		}
		m.registers[index] = v
		return true
	case x86asm.Mem:
		at, ok := m.addressAMD64(a)
		return ok && m.store(at, size, v)
	}
	return false
}
