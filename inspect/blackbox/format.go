package blackbox

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"time"
)

// # The file
//
// A file has a fixed size: a head, and two slots for records.
//
//	head     0     "cheapbox"
//	         8     version, 4 bytes
//	         12    size of a slot, 4 bytes
//	         16    length of the text, 4 bytes
//	         20    checksum of bytes 0 to 20 and of the text, 4 bytes
//	         24    the text: who writes the file, as JSON
//	slot     0     number of the record, from 1 on, 8 bytes
//	         8     its time in Unix nanoseconds, 8 bytes
//	         16    length of the text, 4 bytes
//	         20    checksum of bytes 0 to 20 and of the text, 4 bytes
//	         24    the text: the record, as JSON
//
// Numbers are little-endian, the checksum is CRC-32C. Record n goes to slot n mod 2. The process may
// end while it writes: then the checksum of that slot is wrong, and the other slot has the record before.
//
// A field may be added to the JSON without a new version: a reader ignores what it does not know.
const (
	magic    = "cheapbox"
	version  = 1
	headSize = 4 << 10
	slotSize = 8 << 10
	slots    = 2
	fileSize = headSize + slots*slotSize

	prefix = 24 // bytes before the text of the head and of a slot
)

// ErrNoBox is returned for a file that is no black box.
var ErrNoBox = errors.New("cheap: the file is no black box")

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// seal sets the length and the checksum of a head or a slot, whose text begins at prefix.
func seal(b []byte) {
	binary.LittleEndian.PutUint32(b[16:], uint32(len(b)-prefix))
	binary.LittleEndian.PutUint32(b[20:], checksum(b))
}

func checksum(b []byte) uint32 {
	return crc32.Update(crc32.Checksum(b[:20], castagnoli), castagnoli, b[prefix:])
}

// opened returns the text of a head or a slot, or nil if it is not whole.
func opened(b []byte) []byte {
	if len(b) < prefix {
		return nil
	}
	n := binary.LittleEndian.Uint32(b[16:])
	if uint64(n) > uint64(len(b)-prefix) {
		return nil
	}
	if b = b[:prefix+n]; binary.LittleEndian.Uint32(b[20:]) != checksum(b) {
		return nil
	}
	return b[prefix:]
}

// encodeHead returns the head of a file.
func encodeHead(p Process) ([]byte, error) {
	text, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	b := append(make([]byte, prefix, headSize), text...)
	if len(b) > headSize {
		return nil, fmt.Errorf("cheap: blackbox: the head has %d bytes, and may have %d", len(b), headSize)
	}
	copy(b, magic)
	binary.LittleEndian.PutUint32(b[8:], version)
	binary.LittleEndian.PutUint32(b[12:], slotSize)
	seal(b)
	return b, nil
}

// appendSlot appends the bytes of a slot with a record to b, which is empty. What does not fit is left
// out of the record.
func appendSlot(b []byte, r *Record) ([]byte, error) {
	var text []byte
	for {
		var err error
		if text, err = json.Marshal(r); err != nil {
			return nil, err
		}
		if len(text) <= slotSize-prefix {
			break
		}
		if !r.shrink() {
			return nil, fmt.Errorf("cheap: blackbox: a record has %d bytes, and may have %d", len(text), slotSize-prefix)
		}
	}
	b = append(append(b, make([]byte, prefix)...), text...)
	binary.LittleEndian.PutUint64(b, uint64(r.Number))
	binary.LittleEndian.PutUint64(b[8:], uint64(r.Time.UnixNano()))
	seal(b)
	return b, nil
}

// offset returns where the slot of a record begins.
func offset(number int64) int64 { return headSize + number%slots*slotSize }

// decode returns what a file says. A file that was cut short is read as far as it goes.
func decode(b []byte) (*Report, error) {
	if len(b) < prefix || string(b[:len(magic)]) != magic {
		return nil, ErrNoBox
	}
	if v := binary.LittleEndian.Uint32(b[8:]); v != version {
		return nil, fmt.Errorf("cheap: the black box has version %d, and this program reads version %d", v, version)
	}
	r := new(Report)
	head := opened(b[:min(len(b), headSize)])
	size := binary.LittleEndian.Uint32(b[12:])
	if head == nil || size != slotSize || json.Unmarshal(head, &r.Process) != nil {
		return nil, fmt.Errorf("cheap: the head of the black box is damaged")
	}
	for i := range slots {
		at := headSize + i*slotSize
		if at >= len(b) {
			r.Damaged++
			continue
		}
		slot := b[at:min(len(b), at+slotSize)]
		if len(slot) >= 8 && binary.LittleEndian.Uint64(slot) == 0 {
			continue // nothing was written yet
		}
		text, record := opened(slot), new(Record)
		if text == nil || json.Unmarshal(text, record) != nil {
			r.Damaged++
			continue
		}
		record.Number = int64(binary.LittleEndian.Uint64(slot))
		record.Time = time.Unix(0, int64(binary.LittleEndian.Uint64(slot[8:])))
		if r.Last == nil || record.Number > r.Last.Number {
			r.Last = record
		}
	}
	return r, nil
}
