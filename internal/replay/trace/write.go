package trace

import (
	"bufio"
	"compress/gzip"
	"encoding/binary"
	"io"
)

// Write encodes t, which must be as [Trace] promises. [Read] of the result equals t.
func Write(w io.Writer, t *Trace) error {
	zip := gzip.NewWriter(w)
	out := bufio.NewWriter(zip)
	field := make([]byte, 0, 4*binary.MaxVarintLen64)

	field = append(field, magic...)
	field = binary.AppendUvarint(field, uint64(t.Slots))
	field = binary.AppendUvarint(field, uint64(len(t.Ops)))
	field = binary.AppendUvarint(field, uint64(t.Threads))
	out.Write(field) // a bufio.Writer keeps its first error for Flush

	for i := range t.Ops {
		op := &t.Ops[i]
		field = append(field[:0], byte(op.Kind)|op.Thread<<4)
		field = binary.AppendUvarint(field, uint64(op.Slot))
		if op.Kind != Free {
			field = binary.AppendUvarint(field, uint64(op.Size))
		}
		if op.Kind == Aligned {
			field = binary.AppendUvarint(field, uint64(op.Align()))
		}
		out.Write(field)
	}
	if err := out.Flush(); err != nil {
		return err
	}
	return zip.Close()
}
