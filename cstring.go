package cheap

import (
	"bytes"
	"unsafe"
)

// CString copies s into a block of a, with a NUL after it, and returns the
// block, or nil when a has no memory. Free it with a.Free. A NUL within s ends
// the string early for C.
func CString(a Allocator, s string) unsafe.Pointer {
	p := a.Malloc(len(s) + 1)
	if p != nil {
		b := unsafe.Slice((*byte)(p), len(s)+1) // all of the block
		b[copy(b, s)] = 0
	}
	return p
}

// CBytes copies b into a block of a and returns the block, or nil when a has no
// memory. Free it with a.Free. An empty b gives a block of size 0.
func CBytes(a Allocator, b []byte) unsafe.Pointer {
	p := a.Malloc(len(b))
	if p != nil {
		copy(unsafe.Slice((*byte)(p), len(b)), b) // all of the block
	}
	return p
}

// CStrings copies the strings into one block of a and returns it, or nil when a
// has no memory. For C it is a char **: an array of pointers to the strings,
// each with a NUL after it, and a NULL pointer after the last. One a.Free of the
// result frees all of it.
func CStrings(a Allocator, strings []string) unsafe.Pointer {
	const word = int(unsafe.Sizeof(uintptr(0)))
	// Strings may share their bytes, so the sum of their lengths may be more
	// than there is memory. More than an int is more than that.
	size := (len(strings) + 1) * word // a string header is larger than a word: no overflow
	for _, s := range strings {
		size += len(s) + 1
		if size < 0 {
			return nil
		}
	}
	p := a.Malloc(size)
	if p == nil {
		return nil
	}
	// The block as an array and, behind it, bytes. Addresses are stored as
	// numbers: what the words held before is no pointer that a write barrier
	// should look at.
	array := unsafe.Slice((*uintptr)(p), len(strings)+1)
	text := unsafe.Slice((*byte)(p), size)
	at := (len(strings) + 1) * word
	for i, s := range strings {
		array[i] = uintptr(p) + uintptr(at)
		at += copy(text[at:], s)
		text[at] = 0
		at++
	}
	array[len(strings)] = 0
	return p
}

// GoString copies the bytes at p up to the first NUL, and returns them as a
// string. A nil p gives the empty string.
//
// The caller makes sure that p points to a string that ends with a NUL, and
// that nobody writes to it or frees it meanwhile.
//
//go:nocheckptr
func GoString(p unsafe.Pointer) string {
	if p == nil {
		return ""
	}
	// The string lies somewhere between p and the first NUL, so everything up to
	// the end of the page that p is in can be read, and so on page by page: at
	// most the rest of a page is looked at that is not the string's. The pragma
	// keeps checkptr, which knows where Go objects end but not where pages do,
	// from objecting when tests back blocks with Go memory.
	const page = 4096 // no system has smaller ones
	n := 0
	for {
		rest := page - int(uintptr(unsafe.Add(p, n))%page)
		i := bytes.IndexByte(unsafe.Slice((*byte)(unsafe.Add(p, n)), rest), 0)
		if i >= 0 {
			return string(unsafe.Slice((*byte)(p), n+i))
		}
		n += rest
	}
}
