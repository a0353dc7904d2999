//go:build cgo

package calls

/*
#include "ops.h"

#cgo nocallback cheap_calls_touch
*/
import "C"

import (
	"runtime"
	"unsafe"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/internal/watch/gcwatch"
)

// CopyMax is the most bytes that [List.Bytes] copies. More bytes are pinned: to pin an object costs
// about as much as to copy 2 KiB.
const CopyMax = 2048

// alloc returns size bytes of the list's memory, aligned to 16, or nil. Then Run returns an
// error that wraps [cheap.ErrNoMemory].
func (l *List) alloc(size int) unsafe.Pointer {
	l.mustBeIdle("recording")
	if l.memory == nil {
		l.memory = cheap.GetArena()
	}
	l.plain = false
	p := l.memory.Malloc(size)
	if p == nil && l.err == nil {
		l.err = cheap.ErrNoMemory
	}
	return p
}

// Alloc returns size zeroed bytes outside the Go heap, for C to write to. They are valid until
// the list is reset, given back or unreachable. If there is no memory the result is nil, and
// [List.Run] makes no call and returns an error that wraps [cheap.ErrNoMemory]; this is true of
// all methods of a List that return memory.
func (l *List) Alloc(size int) unsafe.Pointer {
	if size < 0 {
		panicMisuse("List.Alloc", "the size %d is negative", size)
	}
	p := l.alloc(size)
	if p != nil {
		clear(unsafe.Slice((*byte)(p), size))
	}
	return p
}

// String copies s, adds a NUL, and returns the copy: a char * for a recorded call. It is valid
// until the list is reset or given back.
func (l *List) String(s string) unsafe.Pointer {
	p := l.alloc(len(s) + 1)
	if p != nil {
		b := unsafe.Slice((*byte)(p), len(s)+1)
		b[copy(b, s)] = 0
	}
	return p
}

// Bytes returns the address of len(b) bytes for a recorded call that reads them. It copies up
// to [CopyMax] bytes. More are pinned, once for the list, until it is reset or given back: the
// caller must not change them before Run has returned. If b is empty, the address is not nil.
// For C to write to Go memory use [List.Pin].
func (l *List) Bytes(b []byte) unsafe.Pointer {
	if len(b) > CopyMax {
		return l.pin(unsafe.Pointer(unsafe.SliceData(b)))
	}
	p := l.alloc(len(b))
	if p != nil {
		copy(unsafe.Slice((*byte)(p), len(b)), b)
	}
	return p
}

// Text is [List.Bytes] of the bytes of a string, without a NUL.
func (l *List) Text(s string) unsafe.Pointer {
	return l.Bytes(unsafe.Slice(unsafe.StringData(s), len(s)))
}

// Pin pins the Go object that p points to, and returns p, for recorded calls that read or
// write it. It stays pinned until the list is reset or given back. Pin panics, as a cgo call
// does, if the object contains a Go pointer to memory that is not pinned.
func (l *List) Pin(p unsafe.Pointer) unsafe.Pointer {
	l.mustBeIdle("recording")
	p = l.pin(p)
	C.cheap_calls_touch(p) // here cgo looks
	return p
}

// pin pins an object that has no Go pointers in it, or that Pin looks at.
func (l *List) pin(p unsafe.Pointer) unsafe.Pointer {
	l.mustBeIdle("recording")
	if l.pins == nil {
		// A Pinner that is dropped with pins ends the program. The cleanup unpins.
		l.pins = new(runtime.Pinner)
		gcwatch.AddCleanup(l, (*runtime.Pinner).Unpin, l.pins)
	}
	l.pinned, l.plain = true, false
	l.pins.Pin(p)
	return p
}
