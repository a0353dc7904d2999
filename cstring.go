package cheap

import (
	"bytes"
	"unsafe"
)

// CString copies s into a block of a, adds a NUL, and returns the block, or nil if a
// has no memory. Free it with a.Free. If s contains a NUL, the string ends there for C.
func CString(a Allocator, s string) unsafe.Pointer {
	var p unsafe.Pointer
	switch a := a.(type) { // as in New
	case *Heap:
		p = a.Malloc(len(s) + 1)
	case *Local:
		p = a.Malloc(len(s) + 1)
	default:
		p = a.Malloc(len(s) + 1)
	}
	if p != nil {
		b := unsafe.Slice((*byte)(p), len(s)+1) // all of the block
		b[copy(b, s)] = 0
	}
	return p
}

// CBytes copies b into a block of a and returns the block, or nil if a has no memory.
// Free it with a.Free. An empty b gives a block of size 0.
func CBytes(a Allocator, b []byte) unsafe.Pointer {
	p := a.Malloc(len(b))
	if p != nil {
		copy(unsafe.Slice((*byte)(p), len(b)), b) // all of the block
	}
	return p
}

// CStrings copies the strings into one block of a and returns the block, or nil if a
// has no memory. For C the block is a char **: an array of pointers to the strings, and
// a NULL pointer after the last; each string ends with a NUL. If a string contains a NUL,
// it ends there for C. One a.Free frees all.
func CStrings(a Allocator, strings []string) unsafe.Pointer {
	const word = int(unsafe.Sizeof(uintptr(0)))
	// Strings may share their bytes, so the sum of their lengths may be more than there
	// is memory, and may overflow.
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
	// The block is an array, and bytes behind it. Addresses are stored as numbers,
	// without write barriers, because the old contents are not pointers.
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

// GoString copies the bytes at p up to the first NUL, and returns them as a string. A
// nil p gives the empty string.
//
// p must point to a string that ends with a NUL. No other goroutine and no C code may
// write to it or free it during the call.
//
//go:nocheckptr
func GoString(p unsafe.Pointer) string {
	if p == nil {
		return ""
	}
	// The page of p can be read up to its end, and if it has no NUL so can the next
	// page. So the search goes page by page, and reads at most the rest of one page
	// behind the string. The pragma stops checkptr, which knows where Go objects end but
	// not where pages end, from failing when tests back blocks with Go memory.
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

// GoBytes copies n bytes at p into a new slice and returns it, like C.GoBytes. It
// panics if n is negative. If p is nil or n is 0, the slice is nil.
func GoBytes(p unsafe.Pointer, n int) []byte {
	if n < 0 {
		panicMisuse("GoBytes", uintptr(p), "negative length %d", n)
	}
	if p == nil || n == 0 {
		return nil
	}
	return bytes.Clone(unsafe.Slice((*byte)(p), n)) // the caller says that there are n
}
