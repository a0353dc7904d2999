package cheap

import (
	"context"
	"errors"
	"math"
	"math/bits"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/cheapgo/cheap/internal/account"
	"github.com/cheapgo/cheap/internal/osmem"
	"github.com/cheapgo/cheap/internal/race"
	"github.com/cheapgo/cheap/internal/testcall"
	"github.com/cheapgo/cheap/internal/testwait"
)

// fewCgoCalls is what runtime.NumCgoCall may count in 100 rounds or more that call no C. On Windows it
// counts calls of the system as well, of which a heap makes a few for its memory.
func fewCgoCalls() int64 {
	if runtime.GOOS == "windows" {
		return 10
	}
	return 0
}

// faulted reports whether the output of a child is that of Go's runtime after a fault.
func faulted(output string) bool {
	for _, signal := range []string{"SIGSEGV", "SIGBUS", "[signal 0xc0000005"} { // the last is of Windows
		if strings.Contains(output, signal) {
			return true
		}
	}
	return false
}

// A pressureFunc is a Pacer.
type pressureFunc func()

func (f pressureFunc) Pressure() { f() }

func (f pressureFunc) Check() {}

func (f pressureFunc) Reclaim(int64, int, bool) error { return account.ErrUnpaced }

func (f pressureFunc) Wait(context.Context, int64, bool, func() bool) error {
	return account.ErrUnpaced
}

// fakeAlloc is an Allocator over Go memory that counts, refuses when told to,
// fills what it gives out with garbage, and knows what is live. Blocks are
// aligned to 16 and no better, unless AlignedMalloc is asked.
type fakeAlloc struct {
	t       testing.TB
	blocks  map[unsafe.Pointer]fakeBlock
	mallocs int
	frees   int
	fail    bool // refuse memory
}

// A fakeBlock keeps the memory of a block alive.
type fakeBlock struct {
	mem  []byte
	size int
}

func newFake(t testing.TB) *fakeAlloc {
	return &fakeAlloc{t: t, blocks: map[unsafe.Pointer]fakeBlock{}}
}

func (a *fakeAlloc) Malloc(size int) unsafe.Pointer {
	return a.malloc(size, 16, 16)
}

// malloc returns a block whose address modulo 2*align is odd.
func (a *fakeAlloc) malloc(size, align, odd int) unsafe.Pointer {
	if size < 0 {
		a.t.Fatalf("Malloc(%d)", size)
	}
	if a.fail || size > 1<<28 {
		return nil
	}
	mem := make([]byte, size+1+3*align)
	for n := copy(mem, "\xDB"); n < len(mem); n *= 2 {
		copy(mem[n:], mem[:n])
	}
	p := unsafe.Pointer(unsafe.SliceData(mem))
	skip := int(-uintptr(p) & uintptr(2*align-1))
	p = unsafe.Add(p, skip+odd)
	a.blocks[p] = fakeBlock{mem, size}
	a.mallocs++
	return p
}

func (a *fakeAlloc) Free(p unsafe.Pointer) {
	if p == nil {
		return
	}
	if _, ok := a.blocks[p]; !ok {
		a.t.Fatalf("Free(%p) of what is not live", p)
	}
	delete(a.blocks, p)
	a.frees++
}

// live is the sum of the sizes of live blocks.
func (a *fakeAlloc) live() (bytes int) {
	for _, b := range a.blocks {
		bytes += b.size
	}
	return bytes
}

// fakeAligned is a fakeAlloc with AlignedMalloc.
type fakeAligned struct{ *fakeAlloc }

func (a fakeAligned) AlignedMalloc(size, align int) unsafe.Pointer {
	return a.malloc(size, align, 0)
}

// wantMisuse runs f, which must panic with a MisuseError whose text begins with
// "cheap: op: " and contains each of the words.
func wantMisuse(t *testing.T, op string, f func(), words ...string) {
	t.Helper()
	defer func() {
		t.Helper()
		v := recover()
		err, _ := v.(error)
		var m *MisuseError
		if !errors.As(err, &m) || !strings.HasPrefix(m.Error(), "cheap: "+op+": ") {
			t.Errorf("panic value %v, want a MisuseError of %s", v, op)
			return
		}
		for _, w := range words {
			if !strings.Contains(m.Error(), w) {
				t.Errorf("%q does not say %q", m.Error(), w)
			}
		}
	}()
	f()
}

// anyPointer is a pointer to wherever. The runtime itself objects to those below
// 4096.
func anyPointer(n uintptr) unsafe.Pointer {
	return *(*unsafe.Pointer)(unsafe.Pointer(&n)) // never dereferenced
}

// newHeap returns a heap that is destroyed when the test ends; one that has
// live blocks then fails the test.
func newHeap(t testing.TB, o HeapOptions) *Heap {
	t.Helper()
	h, err := NewHeap(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Destroy(); err != nil && err != ErrDestroyed {
			t.Error(err)
		}
	})
	return h
}

// mustAccuse runs f, which has to panic with a MisuseError of op about addr
// that says each of the words.
func mustAccuse(t testing.TB, op string, addr uintptr, f func(), words ...string) {
	t.Helper()
	v := testcall.Catch(f)
	e, ok := v.(*MisuseError)
	if !ok {
		t.Errorf("%s of %#x: panic value %v, want a MisuseError", op, addr, v)
		return
	}
	if e.Addr != addr || e.Op != op || e.Error() != "cheap: "+op+": "+e.Reason {
		t.Errorf("%#v, want %s about %#x", e, op, addr)
	}
	for _, w := range words {
		if !strings.Contains(e.Reason, w) {
			t.Errorf("%s of %#x: %q does not say %q", op, addr, e.Reason, w)
		}
	}
}

// setDecay is SetDecay for the time of a test. Where no tick is to come, none that has begun before
// is under way when it returns.
func setDecay(t testing.TB, d time.Duration) {
	old := SetDecay(d)
	if d <= 0 {
		testwait.Until(t, "no tick runs", func() bool { return !isIn("internal/span.tick(") })
	}
	t.Cleanup(func() { SetDecay(old) })
}

// useSome allocates and frees blocks of many sizes, 4 MiB together.
func useSome(h *Heap) {
	var blocks []unsafe.Pointer
	for i := range 64 {
		blocks = append(blocks, h.Malloc(1000*i), h.Malloc(65_536))
	}
	for _, p := range blocks {
		h.Free(p)
	}
}

// onAllPs calls f in n goroutines that run at the same time, so that each has a
// P of its own.
func onAllPs(n int32, f func()) {
	var arrived atomic.Int32
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			arrived.Add(1)
			for arrived.Load() < n { // not yielding, so each keeps its P
			}
			f()
		})
	}
	wg.Wait()
}

// osmemIsScarce says whether large blocks cost real memory before they are
// touched, or address space that there is little of.
const osmemIsScarce = osmem.GoBacked || bits.UintSize == 32

// A refusal lets calls of the system fail.
type refusal struct {
	calls  atomic.Int64 // how many there were
	raised atomic.Int64 // how many of them failed
	first  osmem.Op     // what the first of these was; read it after end
}

// forever, as the number of calls that fail, is all.
const forever = math.MaxInt32

// refuse lets so many calls of the system fail, from the n-th on, counted from 1.
func refuse(n, times int) *refusal {
	return refuseIf(func(call int) bool { return call >= n && call-n < times })
}

// refuseIf lets the calls of the system fail for which f returns true.
func refuseIf(f func(call int) bool) *refusal {
	r := &refusal{}
	fault := func(op osmem.Op, _ uintptr) error {
		if !f(int(r.calls.Add(1))) {
			return nil
		}
		if r.raised.Add(1) == 1 {
			r.first = op
		}
		return errRefused
	}
	osmem.Fault.Store(&fault)
	return r
}

// end ends that, and returns how many calls there were.
func (r *refusal) end() (calls int) {
	osmem.Fault.Store(nil)
	return int(r.calls.Load())
}

// errRefused is what the system says in these tests.
var errRefused = errors.New("refused by the test")

// recoverMisuse is deferred where a MisuseError ends a goroutine.
func recoverMisuse(t *testing.T) {
	v := recover()
	if _, ok := v.(*MisuseError); !ok && v != nil {
		t.Errorf("panic: %v", v)
	}
}

// hammerRounds returns n, or less of it where time is short.
func hammerRounds(n int) int {
	switch {
	case testing.Short() || race.Told:
		return max(1, n/10)
	case race.Build || osmem.GoBacked:
		return max(1, n/4)
	}
	return n
}

// mustHoldNothing looks whether h, all whose blocks have been freed, is left
// with its caches alone after a Trim.
func mustHoldNothing(t testing.TB, h *Heap) {
	t.Helper()
	if h.checked != nil {
		h.checked.empty()
	}
	h.Trim()
	s := h.Stats()
	if want := int64(s.Caches) * cacheBytes; s.Blocks != 0 || s.Bytes != 0 || s.Cached != 0 || s.Held != want || s.Frees != s.Mallocs {
		t.Errorf("%+v: all is free, Held should be %d", s, want)
	}
}

// someSizes has a size of each kind of class: the smallest, with large batches,
// with small ones, not cached, and the largest.
var someSizes = []int{0, 16, 48, 100, 1024, 3000, 4096, 8192, 9000, 16384, 32768, 33_000, 40_000, 50_000, 65_536}

// newFixed is NewFixedBlock with the options in a row.
func newFixed(inner Allocator, blockSize, align, chunkSize int) *FixedBlock {
	return NewFixedBlock(inner, FixedBlockOptions{BlockSize: blockSize, Align: align, ChunkSize: chunkSize})
}

// isIn reports whether a goroutine is in a function with that name, and in one of inner if there are any.
func isIn(name string, inner ...string) bool { return countIn(name, inner...) > 0 }

// countIn returns how many are.
func countIn(name string, inner ...string) (n int) {
	all := make([]byte, 1<<20)
	all = all[:runtime.Stack(all, true)]
	for stack := range strings.SplitSeq(string(all), "\n\n") {
		within := func(f string) bool { return strings.Contains(stack, f) }
		if within(name) && (len(inner) == 0 || slices.ContainsFunc(inner, within)) {
			n++
		}
	}
	return n
}
