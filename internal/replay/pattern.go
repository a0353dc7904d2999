package replay

import "encoding/binary"

// seed returns the start of a pattern. No other slot has it, and the same slot has
// it for no other operation.
func seed(slot uint32, index int) uint64 {
	// The finalizer of splitmix64 maps different inputs to different outputs,
	// and neighbours far apart.
	x := uint64(slot)<<38 ^ uint64(index)
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// stride is added to a pattern from word to word, so that bytes copied to the wrong
// place are detected.
const stride = 0x9e3779b97f4a7c15

// fill writes the pattern of seed.
func fill(mem []byte, seed uint64) {
	for len(mem) >= 8 {
		binary.LittleEndian.PutUint64(mem, seed)
		mem = mem[8:]
		seed += stride
	}
	for i := range mem {
		mem[i] = byte(seed >> (8 * i))
	}
}

// differs returns the first byte at which mem is not the pattern of seed, or -1. A
// prefix of a pattern is a pattern.
func differs(mem []byte, seed uint64) int {
	for at := 0; at < len(mem); at += 8 {
		word := mem[at:]
		if len(word) >= 8 && binary.LittleEndian.Uint64(word) == seed {
			seed += stride
			continue
		}
		for i := range min(len(word), 8) {
			if word[i] != byte(seed>>(8*i)) {
				return at + i
			}
		}
	}
	return -1
}
