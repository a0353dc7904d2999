//go:build !cheap_gomem

package cheap

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/cheapgo/cheap/internal/osmem"
	"github.com/cheapgo/cheap/internal/procfs"
	"github.com/cheapgo/cheap/internal/shadow"
	"github.com/cheapgo/cheap/internal/span"
	"github.com/cheapgo/cheap/internal/testwait"
)

// residentAnon returns how many bytes of anonymous memory the process has in
// RAM.
func residentAnon(t *testing.T) int64 {
	t.Helper()
	n, err := ofProcess("RssAnon")
	if err != nil {
		t.Skip(err)
	}
	return n
}

// ofProcess returns a number of bytes that the system knows of the process.
func ofProcess(name string) (int64, error) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, err
	}
	n, ok := procfs.Bytes(status, name)
	if !ok {
		return 0, fmt.Errorf("no %s in /proc/self/status", name)
	}
	return n, nil
}

func init() {
	residentNow = func() (now, peak int64, err error) {
		now, err1 := ofProcess("RssAnon")
		peak, err2 := ofProcess("VmHWM")
		return now, peak, errors.Join(err1, err2)
	}
}

// resident returns how many of n bytes at addr, a multiple of the page size,
// are in RAM.
func resident(t *testing.T, addr, n uintptr) uintptr {
	t.Helper()
	in, err := mincore(addr, n)
	if err != nil {
		t.Skip("mincore:", err)
	}
	return in
}

// mincore returns how many of n bytes at addr, a multiple of the page size, are in RAM. An
// emulator of a processor with larger pages passes the system's answer on, which has a byte
// for each of the system's own pages.
func mincore(addr, n uintptr) (in uintptr, err error) {
	const unwritten = 0x80
	pages := bytes.Repeat([]byte{unwritten}, int(n/4096)+2)
	if _, _, errno := syscall.Syscall(syscall.SYS_MINCORE, addr, n, uintptr(unsafe.Pointer(&pages[0]))); errno != 0 {
		return 0, errno
	}
	written := bytes.IndexByte(pages, unwritten)
	all := osmem.RoundPage(n) / osmem.PageSize
	for page := range slices.Chunk(pages[:written], written/int(all)) {
		if slices.Contains(page, 1) {
			in += osmem.PageSize
		}
	}
	return in, nil
}

// TestTrimResident looks whether the system has the memory back after Trim.
func TestTrimResident(t *testing.T) {
	h := newHeap(t, HeapOptions{})
	setDecay(t, -1)
	const n, size = 4000, 16_000
	h.Trim()
	// Go must not give back what is its own meanwhile.
	debug.FreeOSMemory()
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	before := residentAnon(t)
	var blocks []handed
	for i := range n {
		blocks = append(blocks, wrap(h, size>>(i%5), uint64(i)))
	}
	used := residentAnon(t) - before
	for _, b := range blocks {
		b.unwrap(t, h)
	}
	h.Trim()
	after := residentAnon(t) - before
	if live := int64(n) * size * 31 / 16 / 5; used < live/2 || after > used/4 {
		t.Errorf("resident: %d more with blocks of %d bytes, %d more after Trim", used, live, after)
	}
}

// TestCallocResident looks whether zeroing makes memory resident that is zero
// already.
func TestCallocResident(t *testing.T) {
	h := newHeap(t, HeapOptions{})
	h.Trim() // so that nothing is used again
	const hugePage = 2 << 20
	for _, size := range []int{span.RegionSize / 8, span.OwnMapping, 3 * span.OwnMapping} {
		p := h.Calloc(1, size)
		if n := resident(t, uintptr(p), uintptr(size)); n > hugePage || n > uintptr(size)/4 {
			t.Errorf("%d of %d zeroed bytes are resident", n, size)
		}
		*(*byte)(unsafe.Add(p, size/2)) = 1
		page := osmem.PageSize
		if n := resident(t, uintptr(p)+uintptr(size/2)&^(page-1), page); n != page {
			t.Errorf("a page that was written to: %d bytes are resident", n)
		}
		h.Free(p)
		h.Trim()
		if size < span.OwnMapping {
			if n := resident(t, uintptr(p), uintptr(size)); n != 0 {
				t.Errorf("%d of %d bytes are resident after Trim", n, size)
			}
		}
	}
}

// TestCarvingResident looks whether the first block of a class touches more
// than it needs.
func TestCarvingResident(t *testing.T) {
	for _, size := range []int{16, 64, 1000, 4000, 10_000} {
		h := newHeap(t, HeapOptions{})
		h.Trim()
		p := h.Malloc(size)
		unit := uintptr(p) &^ (span.UnitSize - 1)
		if n, most := resident(t, unit, span.UnitSize), osmem.RoundPage(uintptr(size))+osmem.PageSize; n > most {
			t.Errorf("one block of %d bytes makes %d bytes resident", size, n)
		}
		h.Free(p)
	}
}

// TestDecayResident looks whether memory that decays leaves RAM.
func TestDecayResident(t *testing.T) {
	h := newHeap(t, HeapOptions{})
	setDecay(t, 10*time.Millisecond)
	const size = 100_000 // a cache would keep a smaller one
	b := wrap(h, size, 1)
	b.unwrap(t, h)
	testwait.Until(t, "the block is not resident", func() bool { return resident(t, uintptr(b.p), size) == 0 })
}

// TestLargeIsZero frees a block with a mapping that was written to, whose pages are kept. A
// block of Calloc is zero, and has only the pages that the program touches. A block that
// Realloc moves has its contents, and one of Malloc other pages than before.
func TestLargeIsZero(t *testing.T) {
	setDecay(t, -1)
	Trim()
	h := newHeap(t, HeapOptions{})
	const size = span.OwnMapping + 5<<20
	for range 2 {
		p := h.Malloc(size)
		for at := uintptr(0); at < size; at += osmem.PageSize { // pages that have no memory are not kept
			*(*byte)(unsafe.Add(p, at)) = 3
		}
		h.Free(p)
		if want := span.Moves(); (span.Idle() >= span.OwnMapping) != want {
			t.Errorf("%d bytes are idle; pages move: %v", span.Idle(), want)
		}
		q := h.Calloc(1, size)
		if n := resident(t, uintptr(q), size); n > 1<<20 {
			t.Errorf("%d bytes of Calloc are resident", n)
		}
		for i, b := range unsafe.Slice((*byte)(q), size) {
			if b != 0 {
				t.Fatalf("byte %d is %d", i, b)
			}
		}
		h.Free(q)
		r := h.Malloc(size)
		shadow.Fill(r, size, 4)
		idle := span.Idle()
		r = h.Realloc(r, 5*size)
		if span.Idle() != idle {
			t.Errorf("%d bytes are idle after Realloc, and %d before", span.Idle(), idle)
		}
		if err := shadow.Check(r, size, 4); err != nil {
			t.Error(err)
		}
		h.Free(r)
	}
	mustHoldNothing(t, h)
}
