package cheap

import (
	"errors"
	"testing"
	"unsafe"

	"github.com/cheapgo/cheap/internal/mem/osmem"
	"github.com/cheapgo/cheap/internal/mem/sizeclass"
	"github.com/cheapgo/cheap/internal/mem/span"
	"github.com/cheapgo/cheap/internal/test/shadow"
	"github.com/cheapgo/cheap/internal/test/testcall"
)

// A machine runs operations on a heap and compares it, after each, with a
// reference that knows every live block.
type machine struct {
	t       testing.TB
	h       *Heap
	limit   int64
	refusal error // what a request that the system refuses wraps; nil if it refuses none
	live    shadow.Set
	mallocs int64
	refused int       // requests that got no block
	freed   []uintptr // of late; some may be live again
	workers [4]worker
	alone   bool // workers have no goroutines; the machine's own does their operations
}

// A worker is a goroutine that the machine has operations done by, one at a
// time, so that the order of all is known.
type worker struct {
	do    chan func()
	done  chan any // what the operation panicked with
	local *Local   // or nil
}

func newMachine(t testing.TB, limit int64) *machine {
	h, err := NewHeap(HeapOptions{Limit: limit})
	if err != nil {
		t.Fatal(err)
	}
	return machineOn(t, h)
}

// machineOn returns a machine for a heap that has not been used yet.
func machineOn(t testing.TB, h *Heap) *machine {
	m := aloneOn(t, h)
	m.alone = false
	for i := range m.workers {
		w := &m.workers[i]
		w.do, w.done = make(chan func()), make(chan any)
		go func() {
			for f := range w.do {
				w.done <- testcall.Catch(f)
			}
			close(w.done)
		}()
	}
	return m
}

// aloneOn returns a machine that has no goroutines. Several of them may work at the same
// time on one heap, each with blocks of its own; see checkTogether.
func aloneOn(t testing.TB, h *Heap) *machine {
	return &machine{t: t, h: h, limit: h.Stats().Limit, alone: true}
}

// on has f done by worker i, and fails if it panics.
func (m *machine) on(i int, f func()) {
	m.t.Helper()
	if m.alone {
		f()
		return
	}
	if v := m.recoverOn(i, f); v != nil {
		m.t.Fatalf("panic: %v", v)
	}
}

func (m *machine) recoverOn(i int, f func()) any {
	if m.alone {
		return testcall.Catch(f)
	}
	m.workers[i].do <- f
	return <-m.workers[i].done
}

// mayRefuse reports whether a request may get no block.
func (m *machine) mayRefuse() bool { return m.limit != 0 || m.refusal != nil }

// isRefusal reports whether err is a reason for which a request may get no block.
func (m *machine) isRefusal(err error) bool {
	return m.limit != 0 && errors.Is(err, ErrLimit) || m.refusal != nil && errors.Is(err, m.refusal)
}

// added enters a block that was asked for. It returns false if there is none, and there
// need not be.
func (m *machine) added(p unsafe.Pointer, size, align int) bool {
	m.t.Helper()
	if p == nil && m.mayRefuse() {
		m.refused++
		return false
	}
	usable := 0
	if p != nil {
		usable = m.h.UsableSize(p)
	}
	if err := m.live.Add(p, size, usable, max(align, sizeclass.Quantum)); err != nil {
		m.t.Fatal(err)
	}
	if want := GoodSize(size); usable < want || align <= sizeclass.Quantum && usable != want {
		m.t.Fatalf("a block of %d bytes has %d, GoodSize says %d", size, usable, want)
	}
	m.mallocs++
	return true
}

// malloc, and the methods below, return false if the request was refused.
func (m *machine) malloc(i, size int) bool {
	m.t.Helper()
	var p unsafe.Pointer
	m.on(i, func() {
		if l := m.workers[i].local; l != nil {
			p = l.Malloc(size)
			return
		}
		var err error
		p, err = m.h.TryMalloc(size)
		if (p == nil) != (err != nil) || err != nil && !m.isRefusal(err) {
			m.t.Errorf("TryMalloc(%d) = %p, %v", size, p, err)
		}
	})
	return m.added(p, size, 1)
}

func (m *machine) calloc(i, count, size int) bool {
	m.t.Helper()
	var p unsafe.Pointer
	m.on(i, func() {
		if l := m.workers[i].local; l != nil {
			p = l.Calloc(count, size)
		} else {
			p = m.h.Calloc(count, size)
		}
		if p != nil {
			if err := shadow.Zero(p, count*size); err != nil {
				m.t.Error(err)
			}
		}
	})
	return m.added(p, count*size, 1)
}

func (m *machine) aligned(i, size, align int) bool {
	m.t.Helper()
	var p unsafe.Pointer
	m.on(i, func() {
		if l := m.workers[i].local; l != nil {
			p = l.AlignedMalloc(size, align)
		} else {
			p = m.h.AlignedMalloc(size, align)
		}
	})
	return m.added(p, size, align)
}

func (m *machine) realloc(i, n, size int) bool {
	m.t.Helper()
	if m.live.Len() == 0 {
		return true
	}
	from := m.live.At(n % m.live.Len())
	var to unsafe.Pointer
	m.on(i, func() {
		if l := m.workers[i].local; l != nil {
			to = l.Realloc(osmem.Pointer(from.Addr), size)
		} else {
			to = m.h.Realloc(osmem.Pointer(from.Addr), size)
		}
	})
	if to == nil && m.mayRefuse() {
		m.refused++
		return false // and what was there must be there; check looks
	}
	if uintptr(to) != from.Addr {
		m.mallocs++
		m.forget(from.Addr)
	}
	usable := 0
	if to != nil {
		usable = m.h.UsableSize(to)
	}
	if err := m.live.Move(from.Addr, to, size, usable, sizeclass.Quantum); err != nil {
		m.t.Fatal(err)
	}
	return true
}

func (m *machine) free(i, n int) {
	m.t.Helper()
	if m.live.Len() == 0 {
		return
	}
	b := m.live.At(n % m.live.Len())
	p := osmem.Pointer(b.Addr)
	if err := m.live.Remove(p); err != nil {
		m.t.Fatal(err)
	}
	m.on(i, func() {
		switch l := m.workers[i].local; {
		case l != nil:
			l.Free(p)
		default:
			m.h.Free(p)
		}
	})
	m.forget(b.Addr)
}

// forget remembers addr as a block that was freed.
func (m *machine) forget(addr uintptr) {
	const most = 1000
	if len(m.freed) == most {
		m.freed = m.freed[most/2:]
	}
	m.freed = append(m.freed, addr)
}

// misuse frees what is near a block, live or freed, but no live block.
func (m *machine) misuse(i, n int) {
	m.t.Helper()
	var addr uintptr
	if n%2 == 0 && len(m.freed) > 0 {
		addr = m.freed[n/2%len(m.freed)]
	} else if m.live.Len() > 0 {
		addr = m.live.At(n / 2 % m.live.Len()).Addr
	}
	offsets := [...]int{0, 1, 8, 16, 32, -1, -16, 48, 4096, span.UnitSize, -span.UnitSize, span.RegionSize}
	addr += uintptr(offsets[n%len(offsets)])
	b, inside := m.live.Find(addr)
	if s := span.Lookup(addr); osmem.GoBacked && (s == nil || s.LoadTag() == 0) {
		return // it may be Go memory that is free, of which no pointer may exist
	}
	p := osmem.Pointer(addr)
	if owns, want := m.h.Owns(p), inside && b.Addr == addr; owns != want {
		m.t.Fatalf("Owns(%#x) = %v, the nearest is %v", addr, owns, b)
	}
	if inside && b.Addr == addr && m.h.UsableSize(p) != b.Usable {
		m.t.Fatalf("UsableSize of %v is %d", b, m.h.UsableSize(p))
	}
	if addr == 0 || inside && b.Addr == addr {
		return
	}
	v := m.recoverOn(i, func() {
		switch l := m.workers[i].local; {
		case l != nil:
			l.Free(p)
		case n%5 == 0:
			m.h.Realloc(p, 100)
		case n%5 == 1:
			m.h.UsableSize(p)
		default:
			m.h.Free(p)
		}
	})
	if e, ok := v.(*MisuseError); !ok || e.Addr != addr {
		m.t.Fatalf("free of %#x: %v", addr, v)
	}
}

// local opens a Local for worker i, or closes it.
func (m *machine) local(i int) {
	w := &m.workers[i]
	if w.local == nil {
		w.local = m.h.NewLocal()
		return
	}
	m.on(i, func() { w.local.Destroy() })
	w.local = nil
}

// check compares the heap's counts with the reference.
func (m *machine) check() {
	m.t.Helper()
	checkTogether(m)
}

// checkTogether is check of all machines of a heap, while none of them works.
func checkTogether(all ...*machine) {
	m := all[0]
	m.t.Helper()
	s := m.h.Stats()
	var blocks, bytes, mallocs int64
	for _, m := range all {
		blocks += int64(m.live.Len())
		bytes += m.live.Bytes()
		mallocs += m.mallocs
	}
	if m.refusal != nil { // a move that was refused halfway is a malloc and a free
		m.mallocs += s.Mallocs - mallocs
		mallocs = s.Mallocs
	}
	if s.Blocks != blocks || s.Bytes != bytes || s.Mallocs != mallocs || s.Frees != mallocs-blocks {
		m.t.Fatalf("%+v, but %d blocks of %d bytes are live after %d mallocs", s, blocks, bytes, mallocs)
	}
	if s.Held < s.Bytes+s.Cached || m.limit != 0 && s.Held > m.limit {
		m.t.Fatalf("%+v: held is below what is live and cached, or above the limit", s)
	}
	if s.Cached < 0 || s.Cached > int64(s.Caches)*s.CacheMax {
		m.t.Fatalf("%+v: more is cached than may be", s)
	}
}

// finish looks at all contents, frees everything and destroys the heap.
func (m *machine) finish() {
	m.t.Helper()
	if err := m.live.CheckAll(osmem.Pointer); err != nil {
		m.t.Fatal(err)
	}
	var live *LiveError
	if err := m.h.Destroy(); m.live.Len() > 0 &&
		(!errors.As(err, &live) || live.Blocks != int64(m.live.Len()) || live.Bytes != m.live.Bytes()) {
		m.t.Fatalf("Destroy with %d live blocks: %v", m.live.Len(), err)
	} else if m.live.Len() == 0 && err == nil {
		return
	}
	for n := 0; m.live.Len() > 0; n++ {
		m.free(n%len(m.workers), n)
	}
	m.closeLocals()
	m.check()
	m.h.Trim()
	if s := m.h.Stats(); s.Cached != 0 {
		m.t.Fatalf("%+v after Trim", s)
	}
	if err := m.h.Destroy(); err != nil {
		m.t.Fatal(err)
	}
}

// closeLocals closes the Locals of all workers.
func (m *machine) closeLocals() {
	for i := range m.workers {
		if m.workers[i].local != nil {
			m.local(i)
		}
	}
}

// stop ends the workers.
func (m *machine) stop() {
	if m.alone {
		return
	}
	for i := range m.workers {
		close(m.workers[i].do)
		<-m.workers[i].done
	}
}
