package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"unsafe"

	"modernc.org/memory"
)

// A block is a live block of one of the allocators of api, with its contents.
type block struct {
	b    []byte // its first bytes, in the block
	want []byte // a copy
}

// api calls the functions of package memory at random, in all their forms. The digest
// has their results: whether there is a block, an error, and which bytes. It does not
// have addresses and usable sizes, which differ from one memory to the other.
func api(_ context.Context, o options) (string, error) {
	r := rand.New(rand.NewPCG(uint64(o.scale), 2))
	sum := sha256.New()
	allocators := make([]memory.Allocator, 3)
	live := make([][]block, len(allocators))
	for range o.scale * 1000 {
		k := r.IntN(len(allocators))
		a, blocks := &allocators[k], live[k]
		size := r.IntN(1 << r.IntN(18))
		form := forms[r.IntN(len(forms))]
		var err error
		switch op := r.IntN(1000); {
		case op < 400 || len(blocks) == 0:
			var b []byte
			zeroed := op%2 == 0 && size > 0 // see calloc0
			if zeroed {
				b, err = form.calloc(a, size)
			} else {
				b, err = form.malloc(a, size)
			}
			fmt.Fprintln(sum, "new", b == nil, len(b), err)
			if zeroed && !bytes.Equal(b, make([]byte, size)) {
				return "", errors.New("a block of Calloc is not zero")
			}
			if b != nil {
				live[k] = append(blocks, write(r, b))
			}
		case op < 600:
			i := r.IntN(len(blocks))
			b := blocks[i]
			if err := b.check(); err != nil {
				return "", err
			}
			b.b, err = form.realloc(a, b.b, size)
			fmt.Fprintln(sum, "realloc", b.b == nil, len(b.b), err)
			if b.b == nil {
				live[k] = remove(blocks, i)
				break
			}
			n := min(size, len(b.want))
			if !bytes.Equal(b.b[:n], b.want[:n]) {
				return "", errors.New("the contents changed in Realloc")
			}
			sum.Write(b.b[:n])
			blocks[i] = write(r, b.b)
		case op < 999:
			i := r.IntN(len(blocks))
			if err := blocks[i].check(); err != nil {
				return "", err
			}
			sum.Write(blocks[i].b)
			fmt.Fprintln(sum, "free", form.free(a, blocks[i].b))
			live[k] = remove(blocks, i)
		case r.IntN(4) == 0:
			fmt.Fprintln(sum, "close", a.Close())
			live[k] = nil
		default:
			fmt.Fprintln(sum, "trim", a.Trim())
		}
	}
	for k := range allocators {
		// A size that is too large fails with both memories, and changes nothing.
		for _, form := range forms {
			b, err := form.malloc(&allocators[k], math.MaxInt)
			fmt.Fprintln(sum, "too large", b == nil, err != nil)
			fmt.Fprintln(sum, "negative", panics(func() { form.malloc(&allocators[k], -1) }))
		}
		for _, b := range live[k] {
			if err := b.check(); err != nil {
				return "", err
			}
		}
		fmt.Fprintln(sum, "close", len(live[k]), allocators[k].Close())
	}
	return fmt.Sprintf("%x", sum.Sum(nil)[:8]), nil
}

// calloc0 is the call for which the original faults.
func calloc0(context.Context, options) (string, error) {
	var a memory.Allocator
	b, err := a.Calloc(0)
	return fmt.Sprint(b == nil, err), err
}

// write fills b, which is the beginning of a block.
func write(r *rand.Rand, b []byte) block {
	x := byte(r.Uint32())
	for i := range b {
		b[i] = x + byte(i)
	}
	return block{b, bytes.Clone(b)}
}

// check checks that a block has its contents, and is large enough.
func (b block) check() error {
	if !bytes.Equal(b.b, b.want) {
		return errors.New("a block has other contents than were written")
	}
	p := unsafe.SliceData(b.b)
	n := memory.UsableSize(p)
	if n < len(b.b) || n != memory.UnsafeUsableSize(unsafe.Pointer(p)) || n != memory.UintptrUsableSize(uintptr(unsafe.Pointer(p))) {
		return fmt.Errorf("the usable size of %d bytes is %d", len(b.b), n)
	}
	return nil
}

func remove(blocks []block, i int) []block {
	blocks[i] = blocks[len(blocks)-1]
	return blocks[:len(blocks)-1]
}

func panics(f func()) (did bool) {
	defer func() { did = recover() != nil }()
	f()
	return false
}

// A form is one of the three forms of the API, in terms of slices.
type form struct {
	malloc, calloc func(a *memory.Allocator, size int) ([]byte, error)
	realloc        func(a *memory.Allocator, b []byte, size int) ([]byte, error)
	free           func(a *memory.Allocator, b []byte) error
}

var forms = []form{
	{
		malloc:  (*memory.Allocator).Malloc,
		calloc:  (*memory.Allocator).Calloc,
		realloc: (*memory.Allocator).Realloc,
		free:    (*memory.Allocator).Free,
	},
	{
		malloc: func(a *memory.Allocator, size int) ([]byte, error) { return sliced(size)(a.UnsafeMalloc(size)) },
		calloc: func(a *memory.Allocator, size int) ([]byte, error) { return sliced(size)(a.UnsafeCalloc(size)) },
		realloc: func(a *memory.Allocator, b []byte, size int) ([]byte, error) {
			return sliced(size)(a.UnsafeRealloc(unsafe.Pointer(unsafe.SliceData(b)), size))
		},
		free: func(a *memory.Allocator, b []byte) error {
			return a.UnsafeFree(unsafe.Pointer(unsafe.SliceData(b)))
		},
	},
	{
		malloc: func(a *memory.Allocator, size int) ([]byte, error) { return slicedUintptr(size)(a.UintptrMalloc(size)) },
		calloc: func(a *memory.Allocator, size int) ([]byte, error) { return slicedUintptr(size)(a.UintptrCalloc(size)) },
		realloc: func(a *memory.Allocator, b []byte, size int) ([]byte, error) {
			return slicedUintptr(size)(a.UintptrRealloc(uintptr(unsafe.Pointer(unsafe.SliceData(b))), size))
		},
		free: func(a *memory.Allocator, b []byte) error {
			return a.UintptrFree(uintptr(unsafe.Pointer(unsafe.SliceData(b))))
		},
	},
}

func sliced(size int) func(unsafe.Pointer, error) ([]byte, error) {
	return func(p unsafe.Pointer, err error) ([]byte, error) {
		if p == nil {
			return nil, err
		}
		return unsafe.Slice((*byte)(p), size), err
	}
}

func slicedUintptr(size int) func(uintptr, error) ([]byte, error) {
	return func(p uintptr, err error) ([]byte, error) {
		// Blocks are outside the Go heap. For a plain conversion go vet would
		// report a possible misuse.
		return sliced(size)(*(*unsafe.Pointer)(unsafe.Pointer(&p)), err)
	}
}
