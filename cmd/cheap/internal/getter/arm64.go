package getter

import "encoding/binary"

// Package arm64asm keeps the offset of an address to itself, and of the instructions of arm64 few are
// needed here, which are of one length. So they are decoded by hand, by the tables of the Arm
// Architecture Reference Manual, C4.1.

// stepARM64 executes an instruction.
func (m *machine) stepARM64() bool {
	code := m.file.code(m.pc, 4)
	if len(code) < 4 {
		return false
	}
	in := binary.LittleEndian.Uint32(code)
	at := m.pc
	m.pc += 4
	switch {
	case in&0xfffff01f == 0xd503201f: // hints: nop, bti, paciasp, autiasp
		return true
	case in == 0xd65f03c0, in == 0xd65f0bff: // ret, retaa
		m.returns()
		return true
	case in&0xfc000000 == 0x94000000: // bl
		return m.callARM64(number(int64(at) + signed(in, 0, 26)*4))
	case in&0xfffffc1f == 0xd63f0000: // blr
		return m.callARM64(m.getARM64(in>>5, 8))
	case in&0xfc000000 == 0x14000000: // b
		return m.enter(number(int64(at) + signed(in, 0, 26)*4))
	case in&0xfffffc1f == 0xd61f0000: // br
		return m.enter(m.getARM64(in>>5, 8))
	case in&0x9f000000 == 0x90000000: // adrp
		page := int64(at)&^0xfff + (signed(in, 5, 19)<<2|int64(in>>29&3))<<12
		m.setARM64(in, 8, number(page))
		return true
	case in&0x3b000000 == 0x39000000: // ldr, str: a multiple of the size
		size, _ := sizeARM64(in)
		return m.memoryARM64(in, m.baseARM64(in).plus(number(int64(in>>10&0xfff)*int64(size))))
	case in&0x3b200000 == 0x38000000:
		offset := number(signed(in, 12, 9))
		base := m.baseARM64(in)
		switch in >> 10 & 3 {
		case 0: // ldur, stur
			return m.memoryARM64(in, base.plus(offset))
		case 1: // the base is changed behind it
			ok := m.memoryARM64(in, base)
			m.setBaseARM64(in, base.plus(offset))
			return ok
		case 3: // and before it
			ok := m.memoryARM64(in, base.plus(offset))
			m.setBaseARM64(in, base.plus(offset))
			return ok
		}
		return false
	case in&0x3b20fc00 == 0x38206800: // a register as offset
		return m.memoryARM64(in, m.baseARM64(in).plus(m.getARM64(in>>16, 8)))
	case in&0x3a000000 == 0x28000000:
		return m.pairARM64(in)
	}
	return m.moveARM64(in)
}

// moveARM64 executes an instruction on registers.
func (m *machine) moveARM64(in uint32) bool {
	wide := 4
	if in>>31 == 1 {
		wide = 8
	}
	if in&0x7fe0ffe0 == 0x2a0003e0 { // mov
		m.setARM64(in, wide, m.getARM64(in>>16, wide))
		return true
	}
	switch in & 0xffe0fc00 {
	case 0x8b000000: // add
		m.setARM64(in, 8, m.getARM64(in>>5, 8).plus(m.getARM64(in>>16, 8)))
		return true
	case 0xcb000000: // sub
		m.setARM64(in, 8, m.getARM64(in>>5, 8).minus(m.getARM64(in>>16, 8)))
		return true
	}
	switch in & 0xff800000 {
	case 0x91000000: // add a number; the registers may be the stack pointer
		m.setBaseARM64(in<<5, m.baseARM64(in).plus(immediateARM64(in)))
		return true
	case 0xd1000000: // subtract it
		m.setBaseARM64(in<<5, m.baseARM64(in).minus(immediateARM64(in)))
		return true
	}
	from, isSigned, to := 0, false, 8
	switch in & 0xfffffc00 {
	case 0x93407c00: // sxtw
		from, isSigned = 4, true
	case 0x93403c00: // sxth
		from, isSigned = 2, true
	case 0x13003c00:
		from, isSigned, to = 2, true, 4
	case 0x93401c00: // sxtb
		from, isSigned = 1, true
	case 0x13001c00:
		from, isSigned, to = 1, true, 4
	case 0x53003c00, 0x12003c00: // uxth, and with 0xffff
		from = 2
	case 0x53001c00, 0x12001c00: // uxtb, and with 0xff
		from = 1
	case 0x1e604000, 0x1e204000: // fmov between vectors
		m.registers[vectorRegister+in&31] = m.registers[vectorRegister+in>>5&31]
		return true
	case 0x9e660000, 0x1e260000: // from a vector
		m.setARM64(in, wide, m.registers[vectorRegister+in>>5&31].extend(wide, false, wide))
		return true
	case 0x9e670000, 0x1e270000: // to one
		m.registers[vectorRegister+in&31] = m.getARM64(in>>5, wide)
		return true
	default:
		return false
	}
	m.setARM64(in, to, m.getARM64(in>>5, from).extend(from, isSigned, to))
	return true
}

// memoryARM64 loads or stores a register.
func (m *machine) memoryARM64(in uint32, at value) bool {
	size, vector := sizeARM64(in)
	opc := in >> 22 & 3
	switch {
	case vector && opc&1 == 1: // a load; the higher bit is that of 16 bytes
		v, ok := m.load(at, size, false, size)
		m.registers[vectorRegister+in&31] = v
		return ok
	case vector:
		return m.store(at, size, m.vectorARM64(in, size))
	case opc == 0:
		return m.store(at, size, m.getARM64(in, size))
	case size == 8 && opc > 1: // a prefetch
		return false
	}
	to := 8 // of ldr and ldrs to 8 bytes
	if opc == 3 {
		to = 4
	}
	v, ok := m.load(at, size, opc > 1, to)
	m.setARM64(in, to, v)
	return ok
}

// pairARM64 loads or stores two registers.
func (m *machine) pairARM64(in uint32) bool {
	size, vector := 4<<(in>>31), in>>26&1 == 1
	if vector {
		size = 4 << (in >> 30)
	} else if in>>30&1 == 1 {
		return false // ldpsw
	}
	base, offset := m.baseARM64(in), number(signed(in, 15, 7)*int64(size))
	at := base.plus(offset)
	mode := in >> 23 & 3
	if mode == 1 { // the base is changed behind it
		at = base
	}
	ok := true
	for i, register := range []uint32{in, in >> 10} {
		at := at.plus(number(int64(i * size)))
		load := in>>22&1 == 1
		switch {
		case load:
			v, loaded := m.load(at, size, false, size)
			ok = ok && loaded
			if vector {
				m.registers[vectorRegister+register&31] = v
			} else {
				m.setARM64(register, size, v)
			}
		case vector:
			ok = ok && m.store(at, size, m.vectorARM64(register, size))
		default:
			ok = ok && m.store(at, size, m.getARM64(register, size))
		}
	}
	if mode == 1 || mode == 3 {
		m.setBaseARM64(in, base.plus(offset))
	}
	return ok
}

func (m *machine) callARM64(to value) bool {
	entered, ok := m.call(to)
	if !entered {
		m.registers[0] = value{bytes: 8, top: 1}
	}
	return ok
}

// sizeARM64 returns the bytes that a load or store of one register moves.
func sizeARM64(in uint32) (size int, vector bool) {
	size, vector = 1<<(in>>30), in>>26&1 == 1
	if vector && in>>23&1 == 1 {
		size = 16
	}
	return size, vector
}

// signed returns some bits of an instruction as a number with a sign.
func signed(in uint32, from, bits int) int64 {
	return int64(int32(in<<(32-from-bits)) >> (32 - bits))
}

func immediateARM64(in uint32) value {
	n := int64(in >> 10 & 0xfff)
	if in>>22&1 == 1 {
		n <<= 12
	}
	return number(n)
}

// baseARM64 returns register Rn, of which 31 is the stack pointer.
func (m *machine) baseARM64(in uint32) value {
	if n := in >> 5 & 31; n < 31 {
		return m.registers[n]
	}
	return m.registers[spRegister]
}

func (m *machine) setBaseARM64(in uint32, v value) {
	n := in >> 5 & 31
	if n == 31 {
		n = spRegister
	}
	m.registers[n] = v
}

// getARM64 returns the low bytes of the register in the lowest bits, of which 31 is zero.
func (m *machine) getARM64(register uint32, size int) value {
	if register &= 31; register < 31 {
		return m.registers[register].extend(size, false, size)
	}
	return number(0)
}

// vectorARM64 is getARM64 for a vector.
func (m *machine) vectorARM64(register uint32, size int) value {
	v := m.registers[vectorRegister+register&31]
	if size == 16 {
		return v
	}
	return v.extend(size, false, size)
}

// setARM64 writes the register in the lowest bits. What has four bytes clears the others.
func (m *machine) setARM64(register uint32, size int, v value) {
	if register &= 31; register < 31 {
		if size == 4 {
			v = v.extend(4, false, 8)
		}
		m.registers[register] = v
	}
}
