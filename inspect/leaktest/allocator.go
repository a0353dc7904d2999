package leaktest

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"
	"unsafe"

	"github.com/cheapgo/cheap"
)

// An Allocator is a [cheap.Allocator] that knows who has allocated each block of it. It is
// made by [NewAllocator], for tests:
//
//	a := leaktest.NewAllocator(cheap.Default())
//	defer a.AssertSize(t, 0)
//
// It has the optional methods of package cheap, whatever the inner allocator has, but for
// those of a [BoundedAllocator].
//
// Free and Realloc panic with a [cheap.MisuseError] that names the stacks of the allocation
// and of the first Free, for a block that is freed already, for the inside of a block, and for
// any other address; and if the 16 bytes behind the block were written to. New blocks are
// filled with 0xcd, but for those of Calloc, and freed ones with 0xdd. So a test that reads
// what it has not written, or has freed, is likely to fail. The stacks of the last 65,536
// blocks that were freed, or a part of them, are kept.
//
// The methods may be called from any goroutine if that is true of the inner allocator.
type Allocator struct {
	inner cheap.Allocator

	mu    sync.Mutex
	live  map[uintptr]block
	freed map[uintptr]block
	bytes int64
}

// A block is a block of an Allocator.
type block struct {
	size        int
	made, freed []uintptr // stacks
}

const (
	border      = 16   // bytes behind each block
	borderByte  = 0xbd // that is what is in them
	newByte     = 0xcd
	freedByte   = 0xdd
	mostFreed   = 1 << 16 // freed blocks whose stacks are kept, at most
	mostListed  = 20      // stacks in a message of AssertSize
	mostPCs     = 24
	ownFrames   = 3 // runtime.Callers, stack, and the function that calls it
	sizeTooMuch = math.MaxInt - border
)

var _ interface {
	cheap.AlignedAllocator
	cheap.CallocAllocator
	cheap.ReallocAllocator
	cheap.TryAllocator
	cheap.UsableSizeAllocator
} = (*Allocator)(nil)

// NewAllocator returns an Allocator whose blocks are those of inner.
func NewAllocator(inner cheap.Allocator) *Allocator {
	if inner == nil {
		panicMisuse("NewAllocator", "the allocator is nil")
	}
	return &Allocator{inner: inner, live: map[uintptr]block{}, freed: map[uintptr]block{}}
}

// A BoundedAllocator is an [Allocator] over a [cheap.BoundedAllocator], and is one.
type BoundedAllocator struct {
	*Allocator
	bounded cheap.BoundedAllocator
}

var _ cheap.BoundedAllocator = (*BoundedAllocator)(nil)

// NewBoundedAllocator is [NewAllocator] for a bounded allocator. Its blocks must have at least 16
// bytes, because 16 bytes of each are the border behind what the caller gets.
func NewBoundedAllocator(inner cheap.BoundedAllocator) *BoundedAllocator {
	if inner == nil || inner.MaxSize() < border {
		panicMisuse("NewBoundedAllocator", "the allocator is nil, or its blocks have less than 16 bytes")
	}
	return &BoundedAllocator{NewAllocator(inner), inner}
}

// MaxSize is that of the inner allocator, less 16.
func (b *BoundedAllocator) MaxSize() int { return b.bounded.MaxSize() - border }

// Contains is that of the inner allocator.
func (b *BoundedAllocator) Contains(ptr unsafe.Pointer) bool { return b.bounded.Contains(ptr) }

func panicMisuse(op, format string, args ...any) {
	panic(&cheap.MisuseError{Op: "leaktest." + op, Reason: fmt.Sprintf(format, args...)})
}

// stack returns the stack of the caller of an exported method.
func stack() []uintptr {
	var pcs [mostPCs]uintptr
	return slices.Clone(pcs[:runtime.Callers(ownFrames, pcs[:])])
}

// add notes a new block of size bytes, and fills it if fill is set.
func (a *Allocator) add(p unsafe.Pointer, size int, made []uintptr, fill bool) unsafe.Pointer {
	if p == nil {
		return nil
	}
	all := unsafe.Slice((*byte)(p), size+border) // inner was asked for that
	if fill {
		set(all[:size], newByte)
	}
	set(all[size:], borderByte)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.live[uintptr(p)] = block{size: size, made: made}
	a.bytes += int64(size)
	return p
}

func set(b []byte, to byte) {
	for i := range b {
		b[i] = to
	}
}

// mustBeSize panics for a negative size, and reports whether the size is possible.
func mustBeSize(op string, size int) bool {
	if size < 0 {
		panicMisuse(op, "the size %d is negative", size)
	}
	return size <= sizeTooMuch
}

// Malloc is that of the inner allocator.
func (a *Allocator) Malloc(size int) unsafe.Pointer {
	if !mustBeSize("Allocator.Malloc", size) {
		return nil
	}
	return a.add(a.inner.Malloc(size+border), size, stack(), true)
}

// AlignedMalloc is that of the inner allocator. It returns nil if that has none and its Malloc
// does not align so far by chance.
func (a *Allocator) AlignedMalloc(size, align int) unsafe.Pointer {
	if align <= 0 || align&(align-1) != 0 {
		panicMisuse("Allocator.AlignedMalloc", "the alignment %d is not a power of two", align)
	}
	if !mustBeSize("Allocator.AlignedMalloc", size) {
		return nil
	}
	if inner, ok := a.inner.(cheap.AlignedAllocator); ok {
		return a.add(inner.AlignedMalloc(size+border, align), size, stack(), true)
	}
	p := a.inner.Malloc(size + border)
	if uintptr(p)%uintptr(align) != 0 {
		a.inner.Free(p)
		p = nil
	}
	return a.add(p, size, stack(), true)
}

// Calloc is that of the inner allocator, or Malloc of a block that is then zeroed.
func (a *Allocator) Calloc(count, size int) unsafe.Pointer {
	mustBeSize("Allocator.Calloc", min(count, size))
	if size > 0 && count > sizeTooMuch/size {
		return nil
	}
	n := count * size
	if inner, ok := a.inner.(cheap.CallocAllocator); ok {
		return a.add(inner.Calloc(1, n+border), n, stack(), false)
	}
	p := a.inner.Malloc(n + border)
	if p != nil {
		clear(unsafe.Slice((*byte)(p), n)) // inner was asked for more
	}
	return a.add(p, n, stack(), false)
}

// TryMalloc is that of the inner allocator, or Malloc with an error that wraps
// [cheap.ErrNoMemory].
func (a *Allocator) TryMalloc(size int) (unsafe.Pointer, error) {
	if !mustBeSize("Allocator.TryMalloc", size) {
		return nil, fmt.Errorf("leaktest: Allocator.TryMalloc: %d bytes: %w", size, cheap.ErrNoMemory)
	}
	inner, ok := a.inner.(cheap.TryAllocator)
	if !ok {
		p := a.add(a.inner.Malloc(size+border), size, stack(), true)
		if p == nil {
			return nil, fmt.Errorf("leaktest: Allocator.TryMalloc: %d bytes: %w", size, cheap.ErrNoMemory)
		}
		return p, nil
	}
	p, err := inner.TryMalloc(size + border)
	return a.add(p, size, stack(), true), err
}

// Realloc allocates a block, copies, and frees the block at ptr. The address always changes, so
// a test that goes on with the old one is likely to fail.
func (a *Allocator) Realloc(ptr unsafe.Pointer, size int) unsafe.Pointer {
	if !mustBeSize("Allocator.Realloc", size) {
		return nil
	}
	made := stack()
	if ptr == nil {
		return a.add(a.inner.Malloc(size+border), size, made, true)
	}
	old := a.mustBeLive("Allocator.Realloc", ptr)
	p := a.add(a.inner.Malloc(size+border), size, made, true)
	if p == nil {
		return nil
	}
	n := min(size, old.size)
	copy(unsafe.Slice((*byte)(p), n), unsafe.Slice((*byte)(ptr), n)) // both blocks have n bytes
	a.free("Allocator.Realloc", ptr, made)
	return p
}

// UsableSize returns the size that was asked for.
func (a *Allocator) UsableSize(ptr unsafe.Pointer) int {
	if ptr == nil {
		return 0
	}
	return a.mustBeLive("Allocator.UsableSize", ptr).size
}

// Free frees a block. It panics if ptr is not a live block.
func (a *Allocator) Free(ptr unsafe.Pointer) {
	if ptr != nil {
		a.free("Allocator.Free", ptr, stack())
	}
}

// free takes the block out before inner has it, and may give the address to another caller.
func (a *Allocator) free(op string, ptr unsafe.Pointer, by []uintptr) {
	a.mustBeLive(op, ptr)
	a.mu.Lock()
	b, ok := a.live[uintptr(ptr)]
	if ok {
		delete(a.live, uintptr(ptr))
		a.bytes -= int64(b.size)
		if len(a.freed) >= mostFreed {
			clear(a.freed)
		}
		b.freed = by
		a.freed[uintptr(ptr)] = b
	}
	a.mu.Unlock()
	if !ok {
		a.mustBeLive(op, ptr) // another goroutine has freed it meanwhile
	}
	set(unsafe.Slice((*byte)(ptr), b.size), freedByte) // the block is the caller's alone
	a.inner.Free(ptr)
}

// mustBeLive returns a block, and panics if it is not live, or if its border was written to.
func (a *Allocator) mustBeLive(op string, ptr unsafe.Pointer) block {
	a.mu.Lock()
	defer a.mu.Unlock()
	at := uintptr(ptr)
	if b, ok := a.live[at]; ok {
		if off := damage(at, b); off >= 0 {
			panicMisuse(op, "byte %d behind the block of %s was written to; it was allocated by\n%s", off, bytes(int64(b.size)), stackText(b.made))
		}
		return b
	}
	if b, ok := a.freed[at]; ok {
		panicMisuse(op, "the block of %s is freed already; it was allocated by\n%sand freed by\n%s", bytes(int64(b.size)), stackText(b.made), stackText(b.freed))
	}
	for start, b := range a.live {
		if start < at && at < start+uintptr(b.size+border) {
			panicMisuse(op, "%#x is %s inside of a block of %s; it was allocated by\n%s", at, bytes(int64(at-start)), bytes(int64(b.size)), stackText(b.made))
		}
	}
	panicMisuse(op, "%#x is no block of this allocator, or was freed long ago", at)
	return block{}
}

// damage returns the first byte of a live block's border that was written to, or -1.
func damage(at uintptr, b block) int {
	behind := unsafe.Slice((*byte)(unsafe.Add(cheap.Pointer(at), b.size)), border) // inner was asked for them
	return slices.IndexFunc(behind, func(c byte) bool { return c != borderByte })
}

// Size returns the sum of the sizes of all blocks, in bytes, as they were asked for.
func (a *Allocator) Size() int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.bytes
}

// A TestingT is the part of [testing.TB] that an Allocator needs.
type TestingT interface {
	Helper()
	Errorf(format string, args ...any)
}

// AssertSize fails the test if the blocks have not size bytes together. It lists them, with
// the stacks that allocated them. It also fails the test if a byte behind a block was written
// to.
func (a *Allocator) AssertSize(t TestingT, size int64) {
	t.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	type sum struct{ blocks, bytes int64 }
	sums := map[string]sum{}
	for at, b := range a.live {
		s := sums[stackText(b.made)]
		s.blocks++
		s.bytes += int64(b.size)
		sums[stackText(b.made)] = s
		if off := damage(at, b); off >= 0 {
			t.Errorf("leaktest: byte %d behind a block of %s was written to; it was allocated by\n%s", off, bytes(int64(b.size)), stackText(b.made))
		}
	}
	if a.bytes == size {
		return
	}
	order := slices.SortedFunc(maps.Keys(sums), func(x, y string) int {
		return cmp.Or(cmp.Compare(sums[y].bytes, sums[x].bytes), strings.Compare(x, y))
	})
	var lines []string
	for i, made := range order {
		if i == mostListed {
			lines = append(lines, fmt.Sprintf("and by %d other stacks", len(order)-i))
			break
		}
		lines = append(lines, fmt.Sprintf("%s of %s, allocated by\n%s", plural(sums[made].blocks, "block"), bytes(sums[made].bytes), strings.TrimSuffix(made, "\n")))
	}
	t.Errorf("leaktest: %s are allocated, want %d:\n%s", bytes(a.bytes), size, strings.Join(lines, "\n"))
}
