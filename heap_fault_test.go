package cheap

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"testing"
	"unsafe"

	"github.com/cheapgo/cheap/internal/osmem"
	"github.com/cheapgo/cheap/internal/shadow"
	"github.com/cheapgo/cheap/internal/span"
	"github.com/cheapgo/cheap/internal/testchild"
)

// TestRefusal runs a program in which the n-th call of the system fails, for
// every n, each in a process of its own, because most of what is taken from the
// system is never given back.
func TestRefusal(t *testing.T) {
	for _, forever := range []bool{false, true} {
		t.Run(fmt.Sprintf("forever=%v", forever), func(t *testing.T) {
			calls := 1
			few := testing.Short() || osmem.GoBacked
			for n := 1; n <= calls; n++ {
				if few && n > 3 && n%5 != 0 {
					continue
				}
				out, status := testchild.Run(t, func() { refusedProgram(forever) }, fmt.Sprintf("CHEAP_TEST_N=%d", n))
				if _, err := fmt.Sscanf(out, "calls=%d\n", &calls); err != nil || status != 0 {
					t.Fatalf("call %d fails: status %d\n%s", n, status, out)
				}
			}
			if calls < 5 {
				t.Errorf("only %d calls of the system", calls)
			}
		})
	}
}

// refusedProgram prints how many calls of the system there were, or panics.
func refusedProgram(forever bool) {
	n, err := strconv.Atoi(os.Getenv("CHEAP_TEST_N"))
	if err != nil {
		panic(err)
	}
	end := refuse(n, forever)
	h, err := NewHeap(HeapOptions{})
	if err != nil {
		if !errors.Is(err, ErrNoMemory) || !errors.Is(err, errRefused) {
			panic(err)
		}
		fmt.Printf("calls=%d\n", max(n+1, end()))
		if h, err = NewHeap(HeapOptions{}); err != nil {
			panic(err) // there is memory again
		}
		h.Free(h.Malloc(1))
		return
	}
	m := machineOn(panicker{}, h)
	m.refusal = ErrNoMemory
	const mapping = span.OwnMapping
	far, align := 3*span.RegionSize, 2*span.RegionSize
	if osmem.GoBacked { // where every byte costs
		far, align = mapping+span.UnitSize, mapping
	}
	steps := []func(){
		func() { m.malloc(0, 100) },
		func() { m.malloc(1, 20_000) },
		func() { m.calloc(2, 3, 100_000) },
		func() { m.malloc(0, mapping) },
		func() { m.aligned(1, 100, 1<<20) },
		func() { m.aligned(1, mapping, align) },
		func() { m.local(3) },
		func() { m.malloc(3, 500) },
		func() { m.realloc(0, 3, mapping/2) },
		func() { m.realloc(0, 2, 2*mapping) },
		func() { m.realloc(0, 1, far-mapping/2) },
		func() { m.realloc(0, 0, far) },
		func() { m.realloc(1, 1, far) },
		func() { m.realloc(2, 2, far) },
		func() {
			for range 6 { // more than a region has room for
				m.malloc(2, mapping-span.UnitSize)
			}
		},
		func() { m.free(1, 2) },
		func() { m.free(0, 1) },
		func() { m.on(0, h.Trim) },
		func() { m.malloc(0, 1000) },
	}
	run := func() {
		for i, step := range steps {
			held, bytes := h.Stats().Held, m.live.Bytes()
			step()
			m.check()
			if err := m.live.CheckAll(osmem.Pointer); err != nil {
				panic(err)
			}
			// A block that was not to be had costs nothing; a cache does.
			if s := h.Stats(); m.live.Bytes() == bytes && s.Held > held+int64(s.Caches)*cacheBytes {
				panic(fmt.Sprintf("step %d changed no block and took %d bytes", i, s.Held-held))
			}
		}
	}
	run()
	fmt.Printf("calls=%d\n", end())
	run() // the heap works on, or works now
	before := m.live.Len()
	m.refusal = nil
	m.malloc(0, 100)
	m.malloc(0, mapping)
	if m.live.Len() != before+2 {
		panic("no memory, though the system has some")
	}
	for m.live.Len() > 0 {
		m.free(m.live.Len()%4, 0)
	}
	m.on(3, func() {})
	if m.workers[3].local != nil {
		m.local(3)
	}
	h.Trim()
	if s := h.Stats(); s.Held != int64(s.Caches)*cacheBytes || s.Blocks != 0 {
		panic(fmt.Sprintf("all is free: %+v", s))
	}
	if err := h.Destroy(); err != nil {
		panic(err)
	}
}

// panicker is the testing.TB of a machine in a child process.
type panicker struct{ testing.TB }

func (panicker) Helper()                           {}
func (panicker) Fatal(args ...any)                 { panic(fmt.Sprint(args...)) }
func (panicker) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }
func (panicker) Error(args ...any)                 { panic(fmt.Sprint(args...)) }
func (panicker) Errorf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }

// TestRefusalHarmsNothing lets every single call of the system fail that a
// large block needs, in a heap that has blocks.
func TestRefusalHarmsNothing(t *testing.T) {
	h := newHeap(t, HeapOptions{})
	const size = span.OwnMapping + span.UnitSize
	small, large := h.Malloc(100), h.Malloc(size)
	shadow.Fill(small, 100, 1)
	shadow.Fill(large, size, 2)
	before := h.Stats()
	for name, f := range map[string]func() unsafe.Pointer{
		"Malloc":        func() unsafe.Pointer { return h.Malloc(size) },
		"Calloc":        func() unsafe.Pointer { return h.Calloc(size, 1) },
		"AlignedMalloc": func() unsafe.Pointer { return h.AlignedMalloc(100, span.RegionSize) },
		"Realloc":       func() unsafe.Pointer { return h.Realloc(large, 2*span.RegionSize) },
	} {
		end := refuse(1, true)
		p := f()
		if end() == 0 || p != nil {
			t.Errorf("%s = %p, without memory", name, p)
		}
		if s := h.Stats(); s.Held != before.Held || s.Blocks != before.Blocks || s.Bytes != before.Bytes {
			t.Errorf("%s that failed: %+v, before %+v", name, s, before)
		}
	}
	if err := errors.Join(shadow.Check(small, 100, 1), shadow.Check(large, size, 2)); err != nil {
		t.Error(err)
	}

	// A move that the system refuses is made by copying.
	if osmem.CanRemap {
		remaps := 0
		f := func(op osmem.Op, size uintptr) error {
			if op == osmem.OpRemap {
				remaps++
				return errRefused
			}
			return nil
		}
		osmem.Fault.Store(&f)
		moved := h.Realloc(large, 3*span.RegionSize)
		osmem.Fault.Store(nil)
		if moved == nil || moved == large {
			t.Fatalf("Realloc = %p", moved)
		}
		large = moved
		if err := shadow.Check(large, size, 2); err != nil || remaps == 0 {
			t.Errorf("after %d moves that were refused: %v", remaps, err)
		}
	}
	h.Free(small)
	h.Free(large)
	mustHoldNothing(t, h)
}
