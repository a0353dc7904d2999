package heap

import (
	"os"
	"strings"
	"unsafe"

	"github.com/cheapgo/cheap/internal/heap/block"
	"github.com/cheapgo/cheap/internal/mem/poison"
	"github.com/cheapgo/cheap/internal/mem/sizeclass"
	"github.com/cheapgo/cheap/internal/mem/span"
)

// # The address sanitizer
//
// With the build tag asan, which go build -asan sets, each memory access of Go code is
// checked, as that of C code is. This includes the code of this package. In a program that
// imports package asan all heaps have a CheckLevel, and the borders of each block are
// poisoned, and the contents of blocks in quarantine. A free block that is not in quarantine
// is not poisoned. So the heap writes its links and canaries there, gives its pages back, and
// moves them, as without the sanitizer.
//
// Poisoned memory is in a block with a header, or is free memory of a chunk of an Arena or a
// FixedBlock. The heap, the Arena and the FixedBlock remove the poison before the block or
// the chunk goes back. The header is not poisoned: the heap reads it for any address.

// poisonsBlocks says whether new heaps tell the sanitizer of their blocks.
var poisonsBlocks bool

// poisonHeaps gives each heap a CheckLevel, those that hold nothing yet included.
func poisonHeaps() {
	poison.Seal(block.MixFactor)
	poisonsBlocks = true
	if checkAll == CheckNone {
		checkAll = CheckStacks
	}
	for h := range heaps.Range {
		if h := h.(*Heap); h.account.Held() == 0 {
			if h.checked == nil {
				h.checked = newChecked(h, checkAll, 0)
				h.watched.Store(true)
				numChecked.Add(1)
			}
			h.checked.poisons = true
		}
	}
}

// Unwatch ends what poisonHeaps began, before a heap is used. It is for tests of how heaps work that are
// not checked.
func Unwatch() {
	poisonsBlocks = false
	if std.checked.poisons = false; os.Getenv("CHEAP_CHECK") == "" {
		checkAll, std.checked = CheckNone, nil
	}
}

// poison has the sanitizer report each access outside of the caller's bytes of a block, and to
// these if the block is free. The lock is held.
func (c *checked) poison(hd *checkedHeader) {
	if poison.Build && !c.ended {
		c.outside(hd, poison.Poison)
	}
}

// unpoison ends what poison began.
func (c *checked) unpoison(hd *checkedHeader) {
	if poison.Build {
		c.outside(hd, poison.Unpoison)
	}
}

// outside calls f for the memory before and behind the bytes that a program may touch. It
// does nothing for a block whose header was written to.
func (c *checked) outside(hd *checkedHeader, f func(addr, size uintptr)) {
	if !c.poisons || hd.checksum != hd.checksumOf() {
		return
	}
	p := hd.user()
	before, end := c.poisoned(hd)
	f(before, p-before)
	if hd.state == inUse || !c.poisonsContent(hd) {
		p += uintptr(hd.size)
	}
	f(p, end-p)
}

// poisoned returns where the poison of a block begins and ends.
func (c *checked) poisoned(hd *checkedHeader) (begin, end uintptr) {
	base := uintptr(unsafe.Pointer(hd))
	return max(base+unsafe.Sizeof(*hd), hd.user()-mostBorder), base + uintptr(hd.whole)
}

// poisonsContent reports whether the caller's bytes of a block in quarantine are poisoned. A
// block that is larger than the quarantine leaves it at once, and the sanitizer takes memory
// for what it knows of a block, an eighth of it.
func (c *checked) poisonsContent(hd *checkedHeader) bool {
	return hd.size <= uint64(c.quarantine) && hd.size < mostPoison
}

// mostPoison is from how many bytes on the contents of a block are not poisoned.
const mostPoison = 1 << 30

// Package asan reads headers in C; see the file report.c there.
var _ [56]byte = [unsafe.Sizeof(checkedHeader{})]byte{}

// tell says to the sanitizer what a stack is. The lock is held.
func (c *checked) tell(stack uint32) {
	if !poison.Build || !c.poisons || stack == 0 || c.told[stack] {
		return
	}
	if c.told == nil {
		c.told = map[uint32]bool{}
	}
	c.told[stack] = true
	poison.Stack(stack, strings.TrimPrefix(stackLines("", stack), "\n"))
}

// forgetPoison ends all poison in a span of a heap that is being destroyed.
func forgetPoison(s *span.Span) {
	if !poison.Build || !poison.On() {
		return
	}
	size := s.Size
	switch tag := s.LoadTag() & span.KindMask; tag {
	case span.KindGuarded:
		return // such a block is never poisoned
	case span.KindLarge:
	default:
		size = sizeclass.Classes[tag&^span.KindSampled].SpanBytes()
	}
	// Of a block that is larger, what is behind its borders was never poisoned.
	poison.Unpoison(s.Base, min(size, mostPoison))
	if size > mostPoison {
		poison.Unpoison(s.Base+size-mostBorder, mostBorder)
	}
}
