package fht

import (
	"bufio"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"io"
	"os"
)

// A Writer writes a recording. The numbers of its operations and slots come first in the format, so
// the operations are kept in a temporary file until Close.
type Writer struct {
	to      io.Writer
	file    *os.File
	buffer  *bufio.Writer
	zip     *gzip.Writer
	records []byte // that zip has not yet
	ops     uint64
	slots   uint32
	err     error
}

// NewWriter makes a Writer. Close must be called.
func NewWriter(w io.Writer) (*Writer, error) {
	file, err := os.CreateTemp("", "cheap-trace-")
	if err != nil {
		return nil, err
	}
	os.Remove(file.Name()) // where a file can be removed while it is open, a crash leaves nothing
	buffer := bufio.NewWriterSize(file, 1<<16)
	zip, err := gzip.NewWriterLevel(buffer, gzip.BestSpeed)
	return &Writer{to: w, file: file, buffer: buffer, zip: zip}, err
}

// Write adds an operation. Close returns the first error.
func (w *Writer) Write(op Op) {
	const enough = 32 << 10
	b := append(w.records, byte(op.Kind)|op.Thread<<4)
	b = binary.AppendUvarint(b, uint64(op.Slot))
	if op.Kind != Free {
		b = binary.AppendUvarint(b, op.Size)
	}
	if op.Kind == Aligned {
		b = binary.AppendUvarint(b, 1<<op.AlignLog)
	}
	w.ops++
	w.slots = max(w.slots, op.Slot+1)
	if w.records = b; len(b) >= enough {
		w.err = errors.Join(w.err, w.flush())
	}
}

func (w *Writer) flush() error {
	_, err := w.zip.Write(w.records)
	w.records = w.records[:0]
	return err
}

// Ops returns how many operations were added.
func (w *Writer) Ops() uint64 { return w.ops }

// Close writes the recording. threads is the number of threads that have made it.
func (w *Writer) Close(threads uint64) error {
	defer os.Remove(w.file.Name())
	defer w.file.Close()
	for _, f := range []func() error{w.flush, w.zip.Close, w.buffer.Flush, w.rewind} {
		if w.err == nil {
			w.err = f()
		}
	}
	if w.err != nil {
		return w.err
	}
	// Two streams of gzip, one behind the other, are one.
	head := []byte("FHT1")
	for _, n := range []uint64{uint64(w.slots), w.ops, threads} {
		head = binary.AppendUvarint(head, n)
	}
	zip := gzip.NewWriter(w.to)
	if _, err := zip.Write(head); err != nil {
		return err
	}
	if err := zip.Close(); err != nil {
		return err
	}
	_, err := io.Copy(w.to, w.file)
	return err
}

func (w *Writer) rewind() error {
	_, err := w.file.Seek(0, io.SeekStart)
	return err
}
