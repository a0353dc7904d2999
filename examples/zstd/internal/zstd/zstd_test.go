//go:build cgo && zstd

package zstd

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"github.com/cheapgo/cheap/internal/test/testcall"
	"github.com/cheapgo/cheap/own"
)

// text returns n bytes that can be compressed, and not by much.
func text(n int) []byte {
	r := rand.New(rand.NewPCG(1, uint64(n)))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32N(1 + uint32(i)%250))
	}
	return b
}

// compressed returns the frame of p, by a Writer that gets it in parts.
func compressed(p []byte, level int) ([]byte, error) {
	var frame bytes.Buffer
	z, err := NewWriter(&frame, level)
	if err != nil {
		return nil, err
	}
	for rest, n := p, 1; len(rest) > 0; n = 3*n + 1 {
		part := rest[:min(n, len(rest))]
		if written, err := z.Write(part); written != len(part) || err != nil {
			return nil, fmt.Errorf("%d of %d bytes written, error %w", written, len(part), err)
		}
		rest = rest[len(part):]
	}
	err = z.Close() // which writes the end
	return frame.Bytes(), err
}

// frameOf is compressed without an error.
func frameOf(t *testing.T, p []byte, level int) []byte {
	t.Helper()
	frame, err := compressed(p, level)
	testcall.Must(t, err)
	return frame
}

// decompressed reads frames to their end, and closes the Reader.
func decompressed(r io.Reader) ([]byte, error) {
	z, err := NewReader(r)
	if err != nil {
		return nil, err
	}
	defer z.Close()
	return io.ReadAll(z)
}

// settled waits until all contexts are freed.
func settled(t *testing.T) {
	t.Helper()
	end, limited := t.Deadline()
	for ; InUse() > 0; runtime.GC() {
		if limited && time.Until(end) < 5*time.Second {
			t.Fatalf("%d bytes are in use", InUse())
		}
		testcall.Must(t, own.Flush(t.Context()))
	}
}

func TestRoundTrip(t *testing.T) {
	for _, n := range []int{0, 1, 1000, 200_000, 3_000_000} {
		p := text(n)
		for _, level := range []int{1, 3, 12} {
			frame := frameOf(t, p, level)
			if got, err := Decompress(frame, n); err != nil || !bytes.Equal(got, p) {
				t.Errorf("%d bytes, level %d: zstd decompresses %d bytes, error %v", n, level, len(got), err)
			}
			if frame, err := Compress(p, level); err != nil {
				t.Error(err)
			} else if got, err := decompressed(bytes.NewReader(frame)); err != nil || !bytes.Equal(got, p) {
				t.Errorf("%d bytes, level %d: a Reader has %d bytes, error %v", n, level, len(got), err)
			}
		}
	}
	if InUse() != 0 {
		t.Errorf("%d bytes are in use, and all was closed", InUse())
	}
}

func TestReaderReadsAnyReader(t *testing.T) {
	p := text(100_000)
	frames := append(frameOf(t, p, 3), frameOf(t, p, 1)...)
	for i, r := range []func(io.Reader) io.Reader{iotest.OneByteReader, iotest.HalfReader, iotest.DataErrReader} {
		if got, err := decompressed(r(bytes.NewReader(frames))); err != nil || !bytes.Equal(got, append(p, p...)) {
			t.Errorf("reader %d: %d bytes, error %v, want 200000", i, len(got), err)
		}
	}
	if _, err := decompressed(iotest.TimeoutReader(iotest.OneByteReader(bytes.NewReader(frames)))); err != iotest.ErrTimeout {
		t.Errorf("error %v, want %v", err, iotest.ErrTimeout)
	}
	z, err := NewReader(bytes.NewReader(frames))
	testcall.Must(t, err)
	defer z.Close()
	testcall.Want(t, iotest.TestReader(z, append(p, p...)))
}

func TestTruncatedFrame(t *testing.T) {
	p := text(100_000)
	frame := frameOf(t, p, 3)
	for _, n := range []int{1, 3, 5, 100, len(frame) / 2, len(frame) - 5, len(frame) - 1} {
		got, err := decompressed(bytes.NewReader(frame[:n]))
		if err != io.ErrUnexpectedEOF || !bytes.HasPrefix(p, got) {
			t.Errorf("%d of %d bytes: error %v, want %v", n, len(frame), err, io.ErrUnexpectedEOF)
		}
	}
	if got, err := decompressed(bytes.NewReader(nil)); err != nil || len(got) > 0 {
		t.Errorf("no bytes: %q, error %v", got, err)
	}
	frame[len(frame)-1]++ // of the checksum
	if _, err := decompressed(bytes.NewReader(frame)); err == nil || err == io.ErrUnexpectedEOF {
		t.Errorf("wrong checksum: error %v", err)
	}
}

// TestForgottenWriter: the context is freed, and the frame has no end.
func TestForgottenWriter(t *testing.T) {
	p := text(50_000)
	var frame bytes.Buffer
	testcall.Aside(func() {
		z, err := NewWriter(&frame, 3)
		if err == nil {
			_, err = z.Write(p)
		}
		if err == nil {
			err = z.Flush()
		}
		testcall.Want(t, err)
	})
	settled(t)
	if got, err := decompressed(&frame); err != io.ErrUnexpectedEOF || !bytes.Equal(got, p) {
		t.Errorf("%d bytes, error %v, want %d and %v", len(got), err, len(p), io.ErrUnexpectedEOF)
	}
}

func TestClosed(t *testing.T) {
	var frame bytes.Buffer
	z, err := NewWriter(&frame, 3)
	testcall.Must(t, err)
	testcall.Want(t, errors.Join(z.Close(), z.Close()))
	n := frame.Len()
	_, err1 := z.Write([]byte("late"))
	err2 := z.Flush()
	r, err := NewReader(&frame)
	testcall.Must(t, err)
	testcall.Want(t, errors.Join(r.Close(), r.Close()))
	_, err3 := r.Read(make([]byte, 10))
	for i, err := range []error{err1, err2, err3} {
		if !errors.Is(err, own.ErrClosed) {
			t.Errorf("call %d: error %v, want %v", i+1, err, own.ErrClosed)
		}
	}
	if frame.Len() != n {
		t.Errorf("%d bytes left of the frame, want %d: a closed stream was used", frame.Len(), n)
	}
}

// full fails once.
type full struct{ calls int }

func (f *full) Write(p []byte) (int, error) {
	if f.calls++; f.calls == 1 {
		return 0, errors.New("full")
	}
	return len(p), nil
}

func TestErrorOfTheOtherWriter(t *testing.T) {
	var f full
	z, err := NewWriter(&f, 1)
	testcall.Must(t, err)
	for range 2 {
		if _, err := z.Write(text(2_000_000)); err == nil || err.Error() != "full" {
			t.Errorf("Write: error %v, want full", err)
		}
	}
	if err := z.Close(); err == nil || err.Error() != "full" {
		t.Errorf("Close: error %v, want full", err)
	}
	if f.calls != 1 {
		t.Errorf("%d Writes to a Writer that has failed, want 1", f.calls)
	}
	if InUse() != 0 {
		t.Errorf("%d bytes are in use after Close", InUse())
	}
}

// TestHammer has goroutines compress and decompress beside each other. Some streams are closed,
// some are forgotten, and some are closed by another goroutine meanwhile.
func TestHammer(t *testing.T) {
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			p := text(20_000 + g)
			for i := range 30 {
				frame, err := compressed(p, 1)
				if err != nil {
					t.Error(err)
					return
				}
				z, err := NewReader(bytes.NewReader(frame))
				if err != nil {
					t.Error(err)
					return
				}
				if i%3 == 2 {
					go z.Close()
				}
				got, err := io.ReadAll(z)
				closed := i%3 == 2 && errors.Is(err, own.ErrClosed)
				if !closed && (err != nil || !bytes.Equal(got, p)) {
					t.Errorf("%d bytes, error %v, want %d", len(got), err, len(p))
				}
				if i%3 == 1 {
					z.Close()
				}
				if i%10 == 0 {
					runtime.GC()
				}
			}
		})
	}
	wg.Wait()
	settled(t)
}
