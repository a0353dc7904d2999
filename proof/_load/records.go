package main

import (
	"encoding/binary"
	"math/rand/v2"
)

// key returns the key of a record, of 8 bytes.
func key(i int) []byte { return binary.BigEndian.AppendUint64(nil, uint64(i)) }

// fill writes a value, half of which can be compressed.
func fill(value []byte, random *rand.Rand) {
	for i := 0; i+8 <= len(value)/2; i += 8 {
		binary.LittleEndian.PutUint64(value[i:], random.Uint64())
	}
}
