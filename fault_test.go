package cheap

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"unsafe"

	"github.com/cheapgo/cheap/internal/mem/osmem"
	"github.com/cheapgo/cheap/internal/mem/race"
	"github.com/cheapgo/cheap/internal/mem/span"
	"github.com/cheapgo/cheap/internal/test/shadow"
	"github.com/cheapgo/cheap/internal/test/testchild"
	"github.com/cheapgo/cheap/internal/test/testheap"
)

// TestRefusal runs a program in which the n-th call of the system fails, each n in a process
// of its own, because most of what is taken from the system is never given back. By default n
// is the first call from each place in the program, and with the flag each call.
func TestRefusal(t *testing.T) {
	for _, times := range []int{1, testheap.Forever} {
		t.Run(fmt.Sprintf("forever=%v", times == testheap.Forever), func(t *testing.T) {
			t.Parallel()
			run := func(n int) (calls int, places []int) {
				out, status := testchild.Run(t, func() { refusedProgram(times) }, fmt.Sprintf("CHEAP_TEST_N=%d", n))
				said, rest, _ := strings.Cut(out, "\n")
				if _, err := fmt.Sscanf(said, "calls=%d", &calls); err != nil || status != 0 {
					t.Fatalf("call %d fails: status %d\n%s", n, status, out)
				}
				for _, place := range strings.Fields(rest) {
					n, err := strconv.Atoi(place)
					if err != nil {
						t.Fatal(err)
					}
					places = append(places, n)
				}
				return calls, places
			}
			calls, places := run(0) // none fails
			if calls < 5 || len(places) < 5 {
				t.Errorf("only %d calls of the system, from %d places", calls, len(places))
			}
			if *testheap.Long {
				for n := 1; n <= calls; n++ {
					calls, _ = run(n)
				}
				return
			}
			for _, n := range places {
				run(n)
			}
			t.Logf("%d calls of the system, from %d places", calls, len(places))
		})
	}
}

// A placer finds the calls of the system that come from places in the heap from which none
// came before. A place is the functions that are being called, without those of tests.
type placer struct {
	seen  map[string]bool
	first []int // such calls, by their number
}

func (p *placer) call(n int) (fails bool) {
	var pcs [64]uintptr
	var place strings.Builder
	for frames := runtime.CallersFrames(pcs[:runtime.Callers(1, pcs[:])]); ; {
		f, more := frames.Next()
		if !strings.HasSuffix(f.File, "_test.go") {
			fmt.Fprintln(&place, f.PC)
		}
		if !more {
			break
		}
	}
	if !p.seen[place.String()] {
		p.seen[place.String()] = true
		p.first = append(p.first, n)
	}
	return false
}

// refusedProgram prints how many calls of the system there were, or panics. If none is to fail
// it prints as well which of them are the first from a place.
func refusedProgram(times int) {
	n, err := strconv.Atoi(os.Getenv("CHEAP_TEST_N"))
	if err != nil {
		panic(err)
	}
	SetDecay(-1) // the timer would call the system from another goroutine
	places := &placer{seen: map[string]bool{}}
	system := testheap.Refuse(n, times)
	if n == 0 {
		system = testheap.RefuseIf(places.call)
	}
	h, err := NewHeap(HeapOptions{})
	if err != nil {
		if !errors.Is(err, ErrNoMemory) || !errors.Is(err, testheap.ErrRefused) {
			panic(err)
		}
		fmt.Printf("calls=%d\n", max(n+1, system.End()))
		if h, err = NewHeap(HeapOptions{}); err != nil {
			panic(err) // there is memory again
		}
		h.Free(h.Malloc(1))
		return
	}
	m := machineOn(testheap.Panicker{}, h)
	m.refusal = ErrNoMemory
	const mapping = span.OwnMapping
	far, align := 3*span.RegionSize, 2*span.RegionSize
	if osmem.GoBacked {
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
			if s := h.Stats(); m.live.Bytes() == bytes && s.Held > held+int64(s.Caches)*testheap.CacheBytes {
				panic(fmt.Sprintf("step %d changed no block and took %d bytes", i, s.Held-held))
			}
		}
	}
	run()
	fmt.Printf("calls=%d\n", system.End())
	for _, n := range places.first {
		fmt.Println(n)
	}
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
	if s := h.Stats(); s.Held != int64(s.Caches)*testheap.CacheBytes || s.Blocks != 0 {
		panic(fmt.Sprintf("all is free: %+v", s))
	}
	if err := h.Destroy(); err != nil {
		panic(err)
	}
}

// TestEveryFault runs a program in which calls of the system fail, from the n-th on: one
// call, three, or all. By default n is some of the numbers from 1 to 1,000, and with the
// flag all of them. Each n has a process of its own.
func TestEveryFault(t *testing.T) {
	numbers := []int{1, 20, 300} // on 386 a program makes fewer than 1,000 calls
	switch {
	case memoryCosts || race.Build || testing.Short():
		numbers[2] = 5 // where memory costs there are fewer calls
	case *testheap.Long:
		numbers = numbers[:0]
		for n := range 1000 {
			numbers = append(numbers, n+1)
		}
	}
	for name, times := range map[string]int{"once": 1, "three times": 3, "for ever": testheap.Forever} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			kinds := map[string]int{} // of calls, by how many programs had them fail first
			calls, raised := 0, 0
			for _, n := range numbers {
				out, status := testchild.Run(t, func() { faultyProgram(times) }, fmt.Sprintf("CHEAP_TEST_N=%d", n))
				var c, f int
				var op string
				if _, err := fmt.Sscanf(out, "%d %d %s\n", &c, &f, &op); err != nil || status != 0 {
					t.Fatalf("from call %d on: status %d\n%s", n, status, out)
				}
				kinds[op]++
				calls, raised = calls+c, raised+f
			}
			t.Logf("%d programs; %d calls of the system, %d of them failed; the first that failed: %v", len(numbers), calls, raised, kinds)
			if kinds["none"] > len(numbers)/4 {
				t.Errorf("%d of %d programs ended before a call failed", kinds["none"], len(numbers))
			}
		})
	}
}

// memoryCosts says whether a byte costs that was never written to: blocks are Go memory.
const memoryCosts = osmem.GoBacked

// bulkyMix has many large blocks, and many with a mapping, so that the system is called
// often.
var bulkyMix = mix{
	size: func(r *rand.Rand) int {
		switch r.IntN(8) {
		case 0, 1:
			if memoryCosts && r.IntN(32) > 0 {
				return 1 << 20
			}
			return span.OwnMapping + r.IntN(4*span.OwnMapping) // a region or two
		case 2, 3:
			return 32<<10 + r.IntN(4<<20)
		case 4:
			return r.IntN(32 << 10)
		}
		return r.IntN(2000)
	},
	most: 40, align: 24, wide: 8, life: 300, realloc: 40, bursts: 1, rare: 12, near: true,
}

// faultyProgram lets calls of the system fail while a user does operations. Whenever one
// has failed it compares all contents and counts with the reference. When no more fail, no
// request is refused but for a limit; and at the end nothing is left.
func faultyProgram(times int) {
	t := testheap.Panicker{}
	n, err := strconv.Atoi(os.Getenv("CHEAP_TEST_N"))
	if err != nil {
		panic(err)
	}
	SetDecay(-1) // what idles goes back when the program trims, and not when the clock says
	const limit = 1 << 30
	ops := 6000
	if memoryCosts || !*testheap.Long {
		ops /= 4
	}
	system := testheap.Refuse(n, times)
	s, err := newScene(t, 1, limit, bulkyMix)
	for ; err != nil; s, err = newScene(t, 1, limit, bulkyMix) {
		if !errors.Is(err, ErrNoMemory) || !errors.Is(err, testheap.ErrRefused) {
			panic(err)
		}
		if times == testheap.Forever {
			system.End()
		}
	}
	s.refuse(ErrNoMemory)
	u := s.users[0]
	for checked := int64(0); u.done.ops < ops; {
		u.step()
		if raised := system.Raised.Load(); raised > checked && (raised < 10 || raised > checked+50) {
			s.check()
			checked = raised
		}
	}
	s.check()
	calls := system.End()
	s.refuse(nil)
	s.work(ops / 4)
	s.check()
	done := s.end()
	takeHoldings(t).mustBe(t, holdings{heaps: 1, accounts: 1})
	fmt.Printf("%d %d %s\n%s\n", calls, system.Raised.Load(), cmp.Or(system.First, "none"), done)
}

// TestHammerFaults has users work at the same time while one of eight calls of the system
// fails.
func TestHammerFaults(t *testing.T) {
	t.Parallel()
	out, status := testchild.Run(t, func() {
		t := testheap.Panicker{}
		s, err := newScene(t, 4, 1<<30, bulkyMix)
		s.must(err)
		for range 2 {
			s.refuse(ErrNoMemory)
			// Not by a generator: the race detector does not see the locks of the heap.
			system := testheap.RefuseIf(func(call int) bool { return uint32(call)*0x9E3779B1>>29 == 0 })
			s.work(testheap.HammerRounds(300))
			s.check()
			if system.End(); system.Raised.Load() == 0 {
				panic("no call has failed")
			}
			s.refuse(nil)
			s.work(testheap.HammerRounds(100))
			s.check()
		}
		fmt.Println(s.end())
		takeHoldings(t).mustBe(t, holdings{heaps: 1, accounts: 1})
	})
	if status != 0 {
		t.Errorf("status %d\n%s", status, out)
	}
}

// TestRefusalHarmsNothing lets every single call of the system fail that a
// large block needs, in a heap that has blocks.
func TestRefusalHarmsNothing(t *testing.T) {
	testheap.SetDecay(t, -1) // what idles stays held
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
		system := testheap.Refuse(1, testheap.Forever)
		p := f()
		if system.End() == 0 || p != nil {
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
	if osmem.CanMove() {
		remaps := 0
		f := func(op osmem.Op, size uintptr) error {
			if op == osmem.OpRemap {
				remaps++
				return testheap.ErrRefused
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
