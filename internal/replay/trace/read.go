package trace

import (
	"bufio"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"math/bits"
)

// ErrTruncated says that a stream ends before its last record does.
var ErrTruncated = errors.New("the trace is cut short")

// A FormatError says that a stream is not a trace.
type FormatError struct {
	Offset int64 // of the field that is wrong, in the uncompressed stream
	Err    error // what is wrong with it
}

// Error names the offset and what is wrong there.
func (e *FormatError) Error() string { return fmt.Sprintf("offset %d: %v", e.Offset, e.Err) }

// Unwrap returns what is wrong.
func (e *FormatError) Unwrap() error { return e.Err }

// Read decodes a whole trace. A mistake in its contents is a [*FormatError].
func Read(r io.Reader) (*Trace, error) {
	zip, err := gzip.NewReader(r)
	if err != nil {
		return nil, &FormatError{Err: truncated(err)}
	}
	d := decoder{in: bufio.NewReader(zip)}
	t, err := d.trace()
	if err != nil {
		return nil, &FormatError{Offset: d.field, Err: truncated(err)}
	}
	return t, nil
}

// truncated replaces the errors of io and compress/gzip for an early end of input.
func truncated(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return ErrTruncated
	}
	return err
}

// A decoder reads the uncompressed stream.
type decoder struct {
	in    *bufio.Reader
	at    int64 // bytes read
	field int64 // where the field that is being read began
}

// ReadByte lets binary.ReadUvarint count what it reads.
func (d *decoder) ReadByte() (byte, error) {
	b, err := d.in.ReadByte()
	if err == nil {
		d.at++
	}
	return b, err
}

// uvarint reads one field and refuses what is above limit.
func (d *decoder) uvarint(name string, limit uint64) (uint64, error) {
	d.field = d.at
	v, err := binary.ReadUvarint(d)
	if err != nil {
		return 0, err
	}
	if v > limit {
		return 0, fmt.Errorf("%s is %d, more than the %d that is possible", name, v, limit)
	}
	return v, nil
}

// trace reads everything. On an error, d.field says where.
func (d *decoder) trace() (*Trace, error) {
	var head [len(magic)]byte
	n, err := io.ReadFull(d.in, head[:])
	d.at += int64(n)
	if err != nil && string(head[:n]) == magic[:n] {
		return nil, err
	}
	if string(head[:]) != magic {
		return nil, fmt.Errorf("the magic is %q, not %q", head[:n], magic)
	}

	slots, err := d.uvarint("the number of slots", MaxSlots)
	if err != nil {
		return nil, err
	}
	count, err := d.uvarint("the number of operations", math.MaxInt/32)
	if err != nil {
		return nil, err
	}
	threads, err := d.uvarint("the number of threads", math.MaxInt32)
	if err != nil {
		return nil, err
	}

	t := &Trace{
		Slots:   int(slots),
		Threads: int(threads),
		// The count is only a claim until the records have been read.
		Ops: make([]Op, 0, min(count, 1<<20)),
	}
	live := make([]bool, slots)
	for range count {
		op, err := d.op(live)
		if err != nil {
			return nil, err
		}
		t.Ops = append(t.Ops, op)
	}

	d.field = d.at
	switch _, err := d.ReadByte(); {
	case err == io.EOF:
		return t, nil // and gzip's checksum is right
	case err != nil:
		return nil, err
	}
	return nil, fmt.Errorf("more follows after the %d operations that the header counts", count)
}

// op reads one record and updates live, the slots that hold a block.
func (d *decoder) op(live []bool) (Op, error) {
	d.field = d.at
	b, err := d.ReadByte()
	if err != nil {
		return Op{}, err
	}
	op := Op{Kind: Kind(b & 15), Thread: b >> 4}
	if op.Kind < Malloc || op.Kind > Aligned {
		return Op{}, fmt.Errorf("operation %d does not exist; there are 1 (malloc) to 5 (aligned_alloc)", op.Kind)
	}

	slot, err := d.uvarint("the slot", math.MaxUint64)
	if err != nil {
		return Op{}, err
	}
	if slot >= uint64(len(live)) {
		return Op{}, fmt.Errorf("%v of slot %d, which is out of range: the trace has %d slots", op.Kind, slot, len(live))
	}
	op.Slot = uint32(slot)
	switch needsLive := op.Kind == Free || op.Kind == Realloc; {
	case needsLive && !live[slot]:
		return Op{}, fmt.Errorf("%v of slot %d, which holds no block", op.Kind, slot)
	case !needsLive && live[slot]:
		return Op{}, fmt.Errorf("%v of slot %d, which holds a live block", op.Kind, slot)
	}
	live[slot] = op.Kind != Free
	if op.Kind == Free {
		return op, nil
	}

	size, err := d.uvarint("the size", math.MaxInt)
	if err != nil {
		return Op{}, err
	}
	op.Size = int(size)
	op.Touch = size != 0
	if op.Kind == Aligned {
		align, err := d.uvarint("the alignment", math.MaxInt)
		if err != nil {
			return Op{}, err
		}
		if align == 0 || align&(align-1) != 0 {
			return Op{}, fmt.Errorf("the alignment is %d, which is no power of two", align)
		}
		op.AlignLog = uint8(bits.TrailingZeros64(align))
	}
	return op, nil
}
