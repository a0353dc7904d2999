//go:build cgo && zstd

// Package zstd binds the streams of zstd: a compressor that is an io.WriteCloser, and a
// decompressor that is an io.Reader. A stream has a context in C, of some megabytes. The
// context of a stream that was forgotten is freed after a collection, and package pace knows
// its size.
package zstd

/*
#cgo pkg-config: libzstd
#define ZSTD_STATIC_LINKING_ONLY // for ZSTD_customMem and the estimates
#include <stdatomic.h>
#include <stdlib.h>
#include <zstd.h>

// The memory of all contexts is malloc's, behind a header with the size. It is counted only
// to show what is left; the binding does not need that.
static _Atomic long long bytes_in_use;

static void *counted_malloc(void *unused, size_t n) {
	size_t *p = malloc(n + 16);
	if (p == NULL) return NULL;
	*p = n;
	bytes_in_use += n;
	return (char *)p + 16;
}
static void counted_free(void *unused, void *block) {
	if (block == NULL) return;
	size_t *p = (size_t *)((char *)block - 16);
	bytes_in_use -= *p;
	free(p);
}
static ZSTD_CCtx *new_compressor(int level) {
	ZSTD_CCtx *c = ZSTD_createCCtx_advanced((ZSTD_customMem){counted_malloc, counted_free, NULL});
	if (c != NULL) {
		ZSTD_CCtx_setParameter(c, ZSTD_c_compressionLevel, level);
		ZSTD_CCtx_setParameter(c, ZSTD_c_checksumFlag, 1);
	}
	return c;
}
static ZSTD_DCtx *new_decompressor(void) {
	return ZSTD_createDCtx_advanced((ZSTD_customMem){counted_malloc, counted_free, NULL});
}
static long long in_use(void) { return bytes_in_use; }

// The buffers of zstd point to memory of Go, so they are variables of C. The pointers are to
// unsigned char, which cgo knows to have no pointers in it.
typedef struct { size_t status, read, written; } progress;

static progress compress(ZSTD_CCtx *c, unsigned char *to, size_t cap, unsigned char *from, size_t n, ZSTD_EndDirective end) {
	ZSTD_outBuffer out = {to, cap, 0};
	ZSTD_inBuffer in = {from, n, 0};
	size_t status = ZSTD_compressStream2(c, &out, &in, end);
	return (progress){status, in.pos, out.pos};
}
static progress decompress(ZSTD_DCtx *c, unsigned char *to, size_t cap, unsigned char *from, size_t n) {
	ZSTD_outBuffer out = {to, cap, 0};
	ZSTD_inBuffer in = {from, n, 0};
	size_t status = ZSTD_decompressStream(c, &out, &in);
	return (progress){status, in.pos, out.pos};
}
*/
import "C"

import (
	"context"
	"errors"
	"io"
	"sync"
	"unsafe"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/libc"
	"github.com/cheapgo/cheap/own"
)

// InUse returns the bytes that contexts of zstd have in use, as C counts them.
func InUse() int64 { return int64(C.in_use()) }

// failed returns the error of a result of zstd, or nil.
func failed(status C.size_t) error {
	if C.ZSTD_isError(status) == 0 {
		return nil
	}
	return errors.New(C.GoString(C.ZSTD_getErrorName(status)))
}

func pointer(p []byte) *C.uchar { return (*C.uchar)(unsafe.SliceData(p)) }

// zstd does not call into Go, so its functions can be the destructors.
var (
	compressors = own.NewPool(own.Options{
		Name:    "zstd.Writer",
		CHeap:   true, // malloc's, which package cmem does not count twice then
		Release: libc.Destructor(unsafe.Pointer(C.ZSTD_freeCCtx)),
	})
	decompressors = own.NewPool(own.Options{
		Name:    "zstd.Reader",
		CHeap:   true,
		Release: libc.Destructor(unsafe.Pointer(C.ZSTD_freeDCtx)),
	})
)

// Buffers are Go's, as C uses them during a call only. They are no arenas, because at a limit of
// package pace an arena may get no memory, and a Writer could not even end its frame.
var buffers = sync.Pool{New: func() any { return new([32 << 10]byte) }}

// A Writer compresses what is written to it. Only Close ends the frame: what a forgotten
// Writer has written lacks its end, and a Reader of it returns io.ErrUnexpectedEOF. One
// goroutine at a time may use a Writer.
type Writer struct {
	h   own.Handle[*C.ZSTD_CCtx]
	w   io.Writer
	err error // of the first call that failed
}

// NewWriter returns a Writer that writes one frame to w. The level is from 1 to 19. At a limit
// of package pace NewWriter returns an error that wraps cheap.ErrLimit.
func NewWriter(w io.Writer, level int) (*Writer, error) {
	size := C.ZSTD_estimateCStreamSize(C.int(level)) // what the first Write allocates
	room, err := compressors.Reserve(context.Background(), int(size))
	if err != nil {
		return nil, err
	}
	c := C.new_compressor(C.int(level))
	if c == nil {
		room.Close()
		return nil, cheap.ErrNoMemory
	}
	z := &Writer{w: w}
	if err := z.h.OwnWith(compressors, c, own.With{Room: room}); err != nil {
		C.ZSTD_freeCCtx(c) // the pool did not take it
		return nil, err
	}
	return z, nil
}

// Write compresses p. What it writes to the other Writer may come later.
func (z *Writer) Write(p []byte) (int, error) {
	if err := z.compress(p, C.ZSTD_e_continue); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Flush writes all that can be decompressed so far.
func (z *Writer) Flush() error { return z.compress(nil, C.ZSTD_e_flush) }

// Close ends the frame and frees the context. It does not close the other Writer.
func (z *Writer) Close() error {
	if z.h.Closed() {
		return nil
	}
	err := z.compress(nil, C.ZSTD_e_end)
	return errors.Join(err, z.h.Close()) // also after an error, which returns the memory at least
}

// compress passes p to C, and what comes from there to the other Writer.
func (z *Writer) compress(p []byte, end C.ZSTD_EndDirective) error {
	if z.err != nil {
		return z.err
	}
	buffer := buffers.Get().(*[32 << 10]byte)
	defer buffers.Put(buffer)
	out := buffer[:]
	for {
		var r C.progress
		err := z.h.TryUse(func(c *C.ZSTD_CCtx) error {
			r = C.compress(c, pointer(out), C.size_t(len(out)), pointer(p), C.size_t(len(p)), end)
			return failed(r.status)
		})
		if err != nil {
			z.err = err
			return err
		}
		if r.written > 0 {
			if _, err := z.w.Write(out[:r.written]); err != nil {
				z.err = err
				return err
			}
		}
		if p = p[r.read:]; len(p) == 0 && (end == C.ZSTD_e_continue || r.status == 0) {
			return nil
		}
	}
}

// A Reader decompresses frames, one after the other. One goroutine at a time may use it.
type Reader struct {
	h       own.Handle[*C.ZSTD_DCtx]
	r       io.Reader
	size    int // of the context
	buffer  []byte
	in      []byte // the part of buffer that is not decompressed
	inFrame bool
	more    bool  // the context has more, without input
	err     error // returned when in is used up
}

// NewReader returns a Reader of what r has. The errors are those of NewWriter.
func NewReader(r io.Reader) (*Reader, error) {
	size := int(C.ZSTD_estimateDCtxSize()) // and a window later, whose size is in the frame
	room, err := decompressors.Reserve(context.Background(), size)
	if err != nil {
		return nil, err
	}
	c := C.new_decompressor()
	if c == nil {
		room.Close()
		return nil, cheap.ErrNoMemory
	}
	z := &Reader{r: r, size: size, buffer: make([]byte, 4<<10)}
	if err := z.h.OwnWith(decompressors, c, own.With{Room: room}); err != nil {
		C.ZSTD_freeDCtx(c) // the pool did not take it
		return nil, err
	}
	return z, nil
}

// Close frees the context. It does not close the other Reader.
func (z *Reader) Close() error { return z.h.Close() }

// Read decompresses to p. Where the input ends within a frame it returns io.ErrUnexpectedEOF.
func (z *Reader) Read(p []byte) (n int, err error) {
	for len(p) > 0 {
		for len(z.in) > 0 || z.more {
			if n, err := z.decompress(p); n > 0 || err != nil {
				return n, err
			}
		}
		switch {
		case z.h.Closed():
			return 0, own.ErrClosed
		case z.err == io.EOF && z.inFrame:
			return 0, io.ErrUnexpectedEOF
		case z.err != nil:
			return 0, z.err
		}
		n, z.err = z.r.Read(z.buffer)
		z.in = z.buffer[:n]
	}
	return 0, nil
}

// decompress passes input to C.
func (z *Reader) decompress(p []byte) (int, error) {
	var r C.progress
	var size int
	err := z.h.TryUse(func(c *C.ZSTD_DCtx) error {
		r = C.decompress(c, pointer(p), C.size_t(len(p)), pointer(z.in), C.size_t(len(z.in)))
		size = int(C.ZSTD_sizeof_DCtx(c))
		return failed(r.status)
	})
	if err != nil {
		z.in, z.more, z.err = nil, false, err
		return 0, err
	}
	if size != z.size { // the context has allocated a window for the frame
		z.size = size
		z.h.Resize(size)
	}
	z.in = z.in[r.read:]
	z.inFrame = r.status != 0
	z.more = z.inFrame && int(r.written) == len(p)
	return int(r.written), nil
}

// Compress returns p as a frame.
func Compress(p []byte, level int) ([]byte, error) {
	to := make([]byte, C.ZSTD_compressBound(C.size_t(len(p))))
	n := C.ZSTD_compress(unsafe.Pointer(pointer(to)), C.size_t(len(to)), unsafe.Pointer(pointer(p)), C.size_t(len(p)), C.int(level))
	if err := failed(n); err != nil {
		return nil, err
	}
	return to[:n], nil
}

// Decompress returns what a frame has, which is at most max bytes.
func Decompress(frame []byte, max int) ([]byte, error) {
	to := make([]byte, max)
	n := C.ZSTD_decompress(unsafe.Pointer(pointer(to)), C.size_t(len(to)), unsafe.Pointer(pointer(frame)), C.size_t(len(frame)))
	if err := failed(n); err != nil {
		return nil, err
	}
	return to[:n], nil
}
