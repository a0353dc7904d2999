//go:build cgo && linux && !cheap_nocmem && !asan && !msan

package cmem

/*
#include <errno.h>
#include <stdint.h>
#include <sys/mman.h>

// Each returns 0 or an errno.
static int mmap_for_go(uintptr_t *p, uintptr_t n, int prot, int flags, int fd, int64_t offset) {
	void *at = mmap((void *)*p, n, prot, flags, fd, offset);
	*p = (uintptr_t)at;
	return at == MAP_FAILED ? errno : 0;
}

static int munmap_for_go(uintptr_t p, uintptr_t n) { return munmap((void *)p, n) ? errno : 0; }
*/
import "C"

import (
	"errors"
	"runtime"
	"runtime/debug"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// unixMapper is the variable of package unix by which its Mmap and Munmap call the system. Of the struct behind it, which
// has more fields in later versions, these are the first.
//
//go:linkname unixMapper golang.org/x/sys/unix.mapper
var unixMapper *struct {
	sync.Mutex
	active map[*byte][]byte
	mmap   func(addr, length uintptr, prot, flags, fd int, offset int64) (uintptr, error)
	munmap func(addr, length uintptr) error
}

var errUnixMmap = errors.New("cmem.CountUnixMmap: this version of golang.org/x/sys is not known, or another package has done the same")

func countUnixMmap() error {
	unix.Getpid() // package unix is in the program
	const name = "golang.org/x/sys/unix."
	if unixMapper == nil || functionIn(unsafe.Pointer(&unixMapper.mmap)) != name+"mmap" || functionIn(unsafe.Pointer(&unixMapper.munmap)) != name+"munmap" {
		return errUnixMmap
	}
	unixMapper.Lock()
	defer unixMapper.Unlock()
	unixMapper.mmap = func(addr, length uintptr, prot, flags, fd int, offset int64) (uintptr, error) {
		p := C.uintptr_t(addr)
		if n := C.mmap_for_go(&p, C.uintptr_t(length), C.int(prot), C.int(flags), C.int(fd), C.int64_t(offset)); n != 0 {
			return ^uintptr(0), syscall.Errno(n)
		}
		return uintptr(p), nil
	}
	unixMapper.munmap = func(addr, length uintptr) error {
		if n := C.munmap_for_go(C.uintptr_t(addr), C.uintptr_t(length)); n != 0 {
			return syscall.Errno(n)
		}
		return nil
	}
	return nil
}

// functionIn returns the name of the function that a field of type func has, or "" if the field is something else: then
// two words are read, each of which may be no address, and that is a panic which ends here.
func functionIn(field unsafe.Pointer) (name string) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() { _ = recover() }()
	return runtime.FuncForPC(**(**uintptr)(field)).Name()
}
