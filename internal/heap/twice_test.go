package heap

import (
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"github.com/cheapgo/cheap/internal/mem/sizeclass"
	"github.com/cheapgo/cheap/internal/mem/span"
	"github.com/cheapgo/cheap/internal/test/shadow"
	"github.com/cheapgo/cheap/internal/test/testcall"
	"github.com/cheapgo/cheap/internal/test/testheap"
)

// A twice is a heap whose blocks are sometimes freed twice at the same time, and
// another heap, which must not notice. Both heaps take what the other gives back.
type twice struct {
	t    *testing.T
	r    *rand.Rand
	size int

	h      *Heap
	locals [3]*Local
	live   []unsafe.Pointer // blocks of h; each is written to while it is here

	other  *Heap
	blocks []testheap.Handed // of other
	seed   uint64
}

func newTwice(t *testing.T, size int, seed uint64) *twice {
	testheap.SetDecay(t, -1) // freeTwice looks into a Local's cache, which would be taken if it is idle
	w := &twice{t: t, r: rand.New(rand.NewPCG(seed, 1)), size: size, other: NewHeap(t, Options{})}
	h, err := New(Options{})
	testcall.Must(t, err)
	w.h = h
	for i := range w.locals {
		w.locals[i] = h.NewLocal()
	}
	return w
}

// local returns one of the Locals of h.
func (w *twice) local() *Local { return w.locals[w.r.IntN(len(w.locals))] }

// take takes a block out of live.
func (w *twice) take() unsafe.Pointer {
	i := w.r.IntN(len(w.live))
	p, last := w.live[i], len(w.live)-1
	w.live[i], w.live = w.live[last], w.live[:last]
	return p
}

// accused runs f, which may panic with a MisuseError and with nothing else. It
// reports whether f did.
func (w *twice) accused(f func()) bool {
	v := testcall.Catch(f)
	if _, ok := v.(*MisuseError); v != nil && !ok {
		w.t.Fatalf("panic: %v", v)
	}
	return v != nil
}

// malloc allocates n blocks of h and fills them.
func (w *twice) malloc(l *Local, n int) {
	for range n {
		var p unsafe.Pointer
		w.accused(func() { p = l.Malloc(w.size) })
		if p != nil {
			if slices.Contains(w.live, p) {
				w.t.Fatalf("%p was handed out while it is in use", p)
			}
			w.live = append(w.live, p)
		}
	}
	w.write()
}

// write writes to all blocks of h.
func (w *twice) write() {
	for _, p := range w.live {
		writeAll(p, w.size)
	}
}

//go:norace
func writeAll(p unsafe.Pointer, size int) {
	b := unsafe.Slice((*uint64)(p), size/8)
	for i := range b {
		b[i] = ^uint64(0)
	}
}

// free frees n blocks of h.
func (w *twice) free(l *Local, n int) {
	for ; n > 0 && len(w.live) > 0; n-- {
		p := w.take()
		w.accused(func() { l.Free(p) })
	}
}

// freeTwice frees a block of h as two goroutines do, each of which looked for a
// mark before the other wrote one. The second one writes it when the first has done
// meanwhile.
func (w *twice) freeTwice(meanwhile func()) {
	if len(w.live) == 0 {
		return
	}
	a, b := w.local(), w.local()
	if a == b {
		return
	}
	// b's list has room.
	w.accused(func() { b.Free(b.Malloc(w.size)) })
	p := w.take()
	if w.accused(func() { a.Free(p) }) {
		return
	}
	meanwhile()
	// If the block's span is no longer of the class, the second goroutine stood
	// still for too long: the documentation of the package says so.
	c := sizeclass.Of(w.size)
	if s := span.Find(uintptr(p)); s.LoadTag() == b.k.base|uintptr(c) {
		b.k.class(c).push(uintptr(p))
	}
}

// others allocates and frees blocks of the other heap, and looks at all that it has
// after those of h were written to.
func (w *twice) others() {
	for range 400 {
		if w.r.IntN(3) > 0 {
			w.seed++
			w.blocks = append(w.blocks, testheap.Wrap(w.other, []int{w.size, 16, 512, 3000}[w.r.IntN(4)], w.seed))
		} else if n := len(w.blocks); n > 0 {
			i := w.r.IntN(n)
			w.blocks[i].Unwrap(w.t, w.other)
			w.blocks[i], w.blocks = w.blocks[n-1], w.blocks[:n-1]
		}
	}
	w.write()
	for _, b := range w.blocks {
		if err := shadow.Check(b.P, b.Size, b.Seed); err != nil {
			w.t.Fatalf("the other heap's block at %p of %d bytes: %v", b.P, b.Size, err)
		}
	}
}

// end frees everything.
func (w *twice) end() {
	for _, b := range w.blocks {
		b.Unwrap(w.t, w.other)
	}
	for _, l := range w.locals {
		w.accused(func() { l.Destroy() })
	}
	w.accused(func() { w.h.DestroyAll() })
	MustHoldNothing(w.t, w.other)
}

// TestFreedTwice frees blocks of a heap twice at the same time, in a random order
// with everything else that moves blocks, and looks whether another heap, which
// uses the same address space, stays as it is.
func TestFreedTwice(t *testing.T) {
	for seed := range uint64(testheap.HammerRounds(40)) {
		size := []int{16, 64, 512, 2048, 12288, 40_000}[seed%6]
		w := newTwice(t, size, seed)
		nothing := func() {}
		for range 60 {
			n := 1 + w.r.IntN(150)
			l := w.local()
			switch w.r.IntN(9) {
			case 0, 1:
				w.malloc(l, n)
			case 2:
				w.free(l, n)
			case 3, 4:
				w.freeTwice(nothing)
			case 5:
				w.freeTwice(func() { w.free(l, n) })
			case 6:
				w.freeTwice(func() { w.accused(l.empty) })
			case 7:
				w.accused(l.empty)
			case 8:
				w.accused(w.h.Trim)
				w.others()
			}
		}
		for len(w.live) > 1 { // all but one, so that spans come back
			w.free(w.local(), 1)
		}
		for _, l := range w.locals {
			w.accused(l.empty)
		}
		w.accused(w.h.Trim)
		w.others()
		w.end()
	}
}
