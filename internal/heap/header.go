package heap

import (
	"fmt"
	"math/bits"
	"runtime"
	"strings"
	"unsafe"

	"github.com/cheapgo/cheap/internal/heap/block"
	"github.com/cheapgo/cheap/internal/heap/fill"
	"github.com/cheapgo/cheap/internal/mem/osmem"
	"github.com/cheapgo/cheap/internal/mem/sizeclass"
	"github.com/cheapgo/cheap/internal/mem/span"
	"github.com/cheapgo/cheap/internal/watch/sample"
)

// A checkedHeader is at the start of each block of a checked heap that was handed out, and
// stays there until the block is handed out again. The link and the canary of a free block are
// in its first 16 bytes.
type checkedHeader struct {
	_ [sizeclass.Quantum]byte

	checksum   uint64 // of the fields below
	size       uint64 // that the caller asked for
	state      uint32 // inUse, quarantined, released or lost
	front      uint32 // binary logarithm of the bytes before those of the caller
	whole      uint64 // usable bytes of the block of the heap
	allocStack uint32 // sample.Stack, or 0
	freeStack  uint32
}

const (
	inUse       = 0x11
	quarantined = 0x22
	released    = 0x33
	lost        = 0x44

	// headerBytes is how many bytes the header and the border before the caller's bytes have.
	// The border is longer than most writes below an index of 0, so that these leave the
	// header as it is.
	headerBytes  = 128
	borderBefore = headerBytes - int(unsafe.Sizeof(checkedHeader{}))

	borderBehind = 16 // at least

	// mostBorder is how much of the rest of a block is border. More would cost more than it
	// finds.
	mostBorder = 4 << 10
)

// checksumOf computes the checksum of a header. A change of one word gives another checksum.
func (hd *checkedHeader) checksumOf() uint64 {
	x := uint64(uintptr(unsafe.Pointer(hd))) ^ hd.size ^ bits.RotateLeft64(hd.whole, 16) ^
		bits.RotateLeft64(uint64(hd.state)<<32|uint64(hd.front), 32) ^
		bits.RotateLeft64(uint64(hd.allocStack)<<32|uint64(hd.freeStack), 48)
	x *= block.MixFactor
	return (x ^ x>>32) * block.MixFactor
}

// user returns the address of the caller's bytes.
func (hd *checkedHeader) user() uintptr { return hd.userAt(hd.front) }

// userAt is user with that front.
func (hd *checkedHeader) userAt(front uint32) uintptr {
	return uintptr(unsafe.Pointer(hd)) + uintptr(1)<<front
}

// content returns the caller's bytes.
func (hd *checkedHeader) content() []byte {
	return unsafe.Slice((*byte)(osmem.Pointer(hd.user())), hd.size)
}

// filled reports whether the caller's bytes are filled. Those of a mapping are not: a program
// may use a small part of it, and from its free on each access faults, unless the
// quarantine is larger than it.
func (hd *checkedHeader) filled() bool { return hd.size < span.OwnMapping }

// borders returns the bytes before and behind the caller's that must not change.
func (hd *checkedHeader) borders() (before, behind []byte) {
	p := hd.user()
	end := p + uintptr(hd.size)
	n := min(uintptr(unsafe.Pointer(hd))+uintptr(hd.whole)-end, mostBorder)
	return unsafe.Slice((*byte)(osmem.Pointer(p-uintptr(borderBefore))), borderBefore), unsafe.Slice((*byte)(osmem.Pointer(end)), n)
}

// headerAt returns the header at the start of a block of the heap. The block's span is the
// heap's, and cannot go back while the caller holds checked.mu.
func headerAt(base uintptr) *checkedHeader { return (*checkedHeader)(osmem.Pointer(base)) }

// become changes the state of a block.
func (hd *checkedHeader) become(state uint32) {
	hd.state = state
	hd.checksum = hd.checksumOf()
}

// damaged says what was written to of the header and the borders of a block, or "".
func (hd *checkedHeader) damaged() string {
	before, behind := hd.borders()
	if from, to := fill.Border.Changed(before); from < to {
		return fmt.Sprintf("the %s was written to before its start: %d bytes from byte %d on; look for an index below 0%s",
			hd.name(), to-from, from-borderBefore, hd.stacksText())
	}
	if from, to := fill.Border.Changed(behind); from < to {
		return fmt.Sprintf("the %s was written to behind its end: %d bytes from byte %d on; look for an index or a length that is too large%s",
			hd.name(), to-from, int(hd.size)+from, hd.stacksText())
	}
	return ""
}

// writtenFree says what was written to of a block in quarantine, or "".
func (hd *checkedHeader) writtenFree() string {
	if hd.checksum != hd.checksumOf() {
		return fmt.Sprintf("the bytes before the free block at %#x were written to; look for a write behind the end of the block before", uintptr(unsafe.Pointer(hd))+headerBytes)
	}
	if report := hd.damaged(); report != "" {
		return report
	}
	if !hd.filled() {
		return ""
	}
	if from, to := hd.changedFreed(); from < to {
		return fmt.Sprintf("the free %s was written to after it was freed: %d bytes from byte %d on; look for a pointer that is used after Free%s",
			hd.name(), to-from, from, hd.stacksText())
	}
	return ""
}

func (hd *checkedHeader) name() string {
	return fmt.Sprintf("block at %#x (%d bytes)", hd.user(), hd.size)
}

// stacksText says who has allocated and freed the block, if that is known.
func (hd *checkedHeader) stacksText() string {
	text := stackLines("allocated by", hd.allocStack)
	if hd.state != inUse {
		text += stackLines("freed by", hd.freeStack)
	}
	return text
}

// stackLines lists a stack, from the caller of package cheap on, without the functions of the
// runtime at its end.
func stackLines(title string, id uint32) string {
	pcs := sample.PCs(id)
	if pcs == nil {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "\n%s", title)
	inside := true
	for frames := runtime.CallersFrames(pcs); ; {
		f, more := frames.Next()
		ours := strings.HasPrefix(f.Function, "github.com/cheapgo/cheap.") || strings.HasPrefix(f.Function, "github.com/cheapgo/cheap/internal/")
		inside = inside && ours && !strings.HasSuffix(f.File, "_test.go")
		if !inside && !strings.HasPrefix(f.Function, "runtime.") {
			fmt.Fprintf(&b, "\n\t%s\n\t\t%s:%d", f.Function, f.File, f.Line)
		}
		if !more {
			return b.String()
		}
	}
}
