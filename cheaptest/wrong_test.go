package cheaptest

import (
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

	"github.com/cheapgo/cheap"
)

// A suite that every allocator passes is worth nothing. So each check runs with
// allocators that are wrong in one respect, and must report an error.

// everything has all guarantees, so that all checks apply.
var everything = Guarantees{Concurrent: true, Reuses: true, CountsLive: true, DetectsMisuse: true, Align: 16}

func TestRightAllocators(t *testing.T) {
	for _, c := range checks {
		var a destroyer = unaltered(t)
		if c.name == "Bounded" {
			a = unalteredSized(t)
		}
		if c.applies != nil && !c.applies(a, everything) {
			t.Errorf("%s does not apply", c.name)
		}
		for _, said := range complaints(c, a, everything) {
			t.Errorf("%s of an allocator that is right: %s", c.name, said)
		}
	}
	for _, c := range checks {
		if a := unalteredSized(t); c.applies == nil {
			for _, said := range complaints(c, a, everything) {
				t.Errorf("%s of a sized allocator that is right: %s", c.name, said)
			}
		}
	}
}

func TestWrongAllocators(t *testing.T) {
	for _, w := range wrongs {
		t.Run(w.name, func(t *testing.T) {
			if w.wide && bits.UintSize == 32 {
				return // the system may have that much memory
			}
			a := unaltered(t)
			w.change(a)
			mustComplain(t, w.check, w.says, a)
		})
	}
	for _, w := range wrongSized {
		t.Run(w.name, func(t *testing.T) {
			s := unalteredSized(t)
			w.change(s)
			mustComplain(t, "Bounded", w.says, s)
		})
	}
}

// TestTime has the random checks run for a given time, by a clock that goes on when it is
// looked at.
func TestTime(t *testing.T) {
	for _, c := range checks {
		if c.name != "Model" && c.name != "Hammer" {
			continue
		}
		trial := newTrial(t, unaltered(t), nil, everything)
		var looks atomic.Int64
		begin := time.Now()
		trial.now = func() time.Time { return begin.Add(time.Duration(looks.Add(1)) * time.Millisecond) }
		trial.time = time.Second
		// One look is at the beginning, and each goroutine looks once when the time is over.
		if c.run(trial); looks.Load() < 1000 || looks.Load() > 1020 {
			t.Errorf("%s ended after %d ms, and was to go on for %v", c.name, looks.Load(), trial.time)
		}
	}
}

// TestSeed checks that a model does the same with the same seed.
func TestSeed(t *testing.T) {
	sizes := func(seed uint64) (sizes []int) {
		a := unaltered(t)
		a.malloc = func(size int) pointer {
			sizes = append(sizes, size)
			return a.heap.Malloc(size)
		}
		trial := newTrial(t, a, a.Destroy, everything)
		trial.seed, trial.time = seed, 0
		checkModel(trial)
		return sizes
	}
	first, again, other := sizes(1), sizes(1), sizes(2)
	if !slices.Equal(first, again) {
		t.Error("the same seed, and other sizes")
	}
	if slices.Equal(first, other) {
		t.Error("another seed, and the same sizes")
	}
}

// mustComplain runs a check of an allocator, which must report an error that
// contains a text.
func mustComplain(t *testing.T, name, says string, a destroyer) {
	t.Helper()
	i := slices.IndexFunc(checks, func(c check) bool { return c.name == name })
	said := complaints(checks[i], a, everything)
	if !strings.Contains(strings.Join(said, "\n"), says) || len(said) == 0 {
		t.Errorf("%s said %q; want %q", name, said, says)
	}
}

func TestEveryCheckCanFail(t *testing.T) {
	for _, c := range checks {
		if c.name != "Bounded" && !slices.ContainsFunc(wrongs, func(w wrong) bool { return w.check == c.name }) {
			t.Errorf("no allocator is wrong in what %s looks at", c.name)
		}
	}
}

// A wrong allocator is made from a right one by a change.
type wrong struct {
	name        string
	check, says string // the check that reports an error, and its text
	change      func(a *altered)
	wide        bool // only if an int has 64 bits
}

var wrongs = []wrong{
	{name: "blocks are too short", check: "Sizes", says: "overlap", change: func(a *altered) {
		var within pointer
		a.malloc = func(size int) pointer {
			if p := within; p != nil {
				within = nil
				return p
			}
			if size != 100 {
				return a.heap.Malloc(size)
			}
			p := a.heap.Malloc(1000)
			within = unsafe.Add(p, 96)
			return p
		}
	}},
	{name: "Free harms another block", check: "Sizes", says: "was written to it", change: func(a *altered) {
		a.free = func(p pointer) {
			a.heap.Free(p)
			a.harm()
		}
	}},
	{name: "the alignment is less than promised", check: "Sizes", says: "not aligned", change: func(a *altered) {
		a.malloc = func(size int) pointer {
			if size == 8 {
				return unsafe.Add(a.heap.Malloc(16), 8)
			}
			return a.heap.Malloc(size)
		}
	}},
	{name: "there is no block of size 0", check: "Zero", says: "returned nil", change: func(a *altered) {
		a.malloc = func(size int) pointer {
			if size == 0 {
				return nil
			}
			return a.heap.Malloc(size)
		}
	}},
	{name: "all blocks of size 0 are one", check: "Zero", says: "overlap", change: func(a *altered) {
		zero := a.heap.Malloc(1)
		a.malloc = func(size int) pointer {
			if size == 0 {
				return zero
			}
			return a.heap.Malloc(size)
		}
	}},
	{name: "a negative size is nil", check: "Negative", says: "did not panic", change: func(a *altered) {
		a.malloc = func(size int) pointer {
			if size < 0 {
				return nil
			}
			return a.heap.Malloc(size)
		}
	}},
	{name: "Free of nil panics", check: "FreeNil", says: "panic: nil", change: func(a *altered) {
		a.free = func(p pointer) {
			if p == nil {
				panic("nil")
			}
			a.heap.Free(p)
		}
	}},
	{name: "the size overflows", check: "TooLarge", says: "want nil", wide: true, change: func(a *altered) {
		a.malloc = func(size int) pointer {
			if size > math.MaxInt-16 {
				size -= math.MaxInt - 16
			}
			return a.heap.Malloc(size)
		}
	}},
	{name: "no memory panics", check: "TooLarge", says: "panic: no memory", wide: true, change: func(a *altered) {
		a.malloc = func(size int) pointer {
			p := a.heap.Malloc(size)
			if p == nil {
				panic("no memory")
			}
			return p
		}
	}},
	{name: "no memory harms what there is", check: "TooLarge", says: "was written to it", wide: true, change: func(a *altered) {
		a.malloc = func(size int) pointer {
			p := a.heap.Malloc(size)
			if p == nil {
				a.harm()
			}
			return p
		}
	}},
	{name: "Destroy is refused for nothing", check: "Destroy", says: "all blocks are freed", change: func(a *altered) {
		a.destroy = func() error { return errors.New("not today") }
	}},
	{name: "Destroy returns nil again", check: "Destroy", says: "a second Destroy", change: func(a *altered) {
		a.destroy = func() error { a.heap.DestroyAll(); return nil }
	}},
	{name: "Malloc goes on after Destroy", check: "Destroy", says: "after Destroy", change: func(a *altered) {
		destroyed := false
		a.destroy = func() error {
			if destroyed {
				return cheap.ErrDestroyed
			}
			destroyed = true
			return nil
		}
	}},
	{name: "live blocks are not counted", check: "Live", says: "returned nil with", change: func(a *altered) {
		a.destroy = func() error { return nil }
	}},
	{name: "live blocks are miscounted", check: "Live", says: "blocks are live", change: func(a *altered) {
		a.destroy = func() error {
			err := a.heap.Destroy()
			if e, ok := errors.AsType[*cheap.LiveError](err); ok {
				e.Blocks++
			}
			return err
		}
	}},
	{name: "the error is not what was promised", check: "Live", says: "want a LiveError", change: func(a *altered) {
		a.destroy = func() error {
			if err := a.heap.Destroy(); err != nil {
				return errors.New("some are live")
			}
			return nil
		}
	}},
	{name: "Destroy that is refused harms", check: "Live", says: "was written to it", change: func(a *altered) {
		a.destroy = func() error {
			err := a.heap.Destroy()
			if err != nil {
				a.harm()
			}
			return err
		}
	}},
	{name: "an error of TryMalloc for what there is", check: "Helpers", says: "Append", change: func(a *altered) {
		a.try = func(size int) (pointer, error) {
			if size > 512 {
				return nil, cheap.ErrNoMemory
			}
			return a.heap.TryMalloc(size)
		}
	}},
	{name: "blocks go when collections run", check: "Collector", says: "was written to it", change: func(a *altered) {
		var oldest pointer
		var first, now runtime.MemStats
		a.malloc = func(size int) pointer {
			p := a.heap.Malloc(size)
			if oldest == nil {
				oldest = p
				runtime.ReadMemStats(&first)
			} else if runtime.ReadMemStats(&now); now.NumGC >= first.NumGC+2 {
				flip(unsafe.Add(oldest, 20))
				first.NumGC = math.MaxUint32 - 2 // once
			}
			return p
		}
	}},
	{name: "there is nothing for other goroutines", check: "Goroutines", says: "in another goroutine", change: func(a *altered) {
		first := sync.OnceValue(goroutine)
		a.malloc = func(size int) pointer {
			if first() != goroutine() {
				return nil
			}
			return a.heap.Malloc(size)
		}
	}},
	{name: "AlignedMalloc aligns to 4096 at most", check: "Aligned", says: "returned 0x", change: func(a *altered) {
		a.aligned = func(size, align int) pointer {
			if align <= 4096 {
				return a.heap.AlignedMalloc(size, align)
			}
			return unsafe.Add(a.heap.AlignedMalloc(size+4096, align), 4096)
		}
	}},
	{name: "AlignedMalloc has nothing", check: "Aligned", says: "each size and alignment", change: func(a *altered) {
		a.aligned = func(size, align int) pointer { return nil }
	}},
	{name: "AlignedMalloc takes any alignment", check: "Aligned", says: "did not panic", change: func(a *altered) {
		a.aligned = func(size, align int) pointer {
			if align <= 0 || align&(align-1) != 0 {
				return a.heap.Malloc(size)
			}
			return a.heap.AlignedMalloc(size, align)
		}
	}},
	{name: "Calloc does not clear all", check: "Calloc", says: "from Calloc is", change: func(a *altered) {
		a.calloc = func(count, size int) pointer {
			p := a.heap.Calloc(count, size)
			if size == 513 {
				flip(unsafe.Add(p, 512))
			}
			return p
		}
	}},
	{name: "the product of Calloc overflows", check: "Calloc", says: "did not return nil", change: func(a *altered) {
		a.calloc = func(count, size int) pointer {
			if count < 0 || size < 0 {
				return a.heap.Calloc(count, size)
			}
			return a.heap.Calloc(1, count*size&math.MaxInt)
		}
	}},
	{name: "Calloc takes negative numbers", check: "Calloc", says: "did not panic", change: func(a *altered) {
		a.calloc = func(count, size int) pointer {
			if count < 0 || size < 0 {
				return nil
			}
			return a.heap.Calloc(count, size)
		}
	}},
	{name: "Realloc keeps too little", check: "Realloc", says: "after Realloc", change: func(a *altered) {
		a.realloc = func(p pointer, size int) pointer {
			p = a.heap.Realloc(p, size)
			if p != nil && size > 5000 {
				flip(unsafe.Add(p, 4097))
			}
			return p
		}
	}},
	{name: "Realloc that fails harms", check: "Realloc", says: "was written to it", wide: true, change: func(a *altered) {
		a.realloc = func(p pointer, size int) pointer {
			q := a.heap.Realloc(p, size)
			if q == nil {
				flip(p)
			}
			return q
		}
	}},
	{name: "Realloc of nil is nil", check: "Realloc", says: "returned nil", change: func(a *altered) {
		a.realloc = func(p pointer, size int) pointer {
			if p == nil {
				return nil
			}
			return a.heap.Realloc(p, size)
		}
	}},
	{name: "Realloc takes negative sizes", check: "Realloc", says: "did not panic", change: func(a *altered) {
		a.realloc = func(p pointer, size int) pointer {
			if size < 0 {
				return nil
			}
			return a.heap.Realloc(p, size)
		}
	}},
	{name: "UsableSize is too little", check: "UsableSize", says: "UsableSize of a block", change: func(a *altered) {
		a.usable = func(p pointer) int { return a.heap.UsableSize(p) &^ 31 }
	}},
	{name: "UsableSize is too much", check: "UsableSize", says: "overlap", change: func(a *altered) {
		slab, n := a.heap.Malloc(4096), 0 // the small blocks lie side by side in it
		a.malloc = func(size int) pointer {
			if size > 16 {
				return a.heap.Malloc(size)
			}
			n++
			return unsafe.Add(slab, n*16)
		}
		a.usable = func(p pointer) int {
			if uintptr(p)-uintptr(slab) < 4096 {
				return 24
			}
			return a.heap.UsableSize(p)
		}
	}},
	{name: "the error of TryMalloc is its own", check: "TryMalloc", says: "wraps ErrNoMemory", wide: true, change: func(a *altered) {
		a.try = func(size int) (pointer, error) {
			if p := a.heap.Malloc(size); p != nil {
				return p, nil
			}
			return nil, errors.New("no")
		}
	}},
	{name: "a live block is handed out again, in the long run", check: "Model", says: "overlap", change: func(a *altered) {
		n := 0
		a.malloc = func(size int) pointer {
			if n++; n%2000 == 0 && size == 0 {
				n--
			} else if n%2000 == 0 {
				for p, was := range a.live {
					if was >= size {
						return p
					}
				}
			}
			return a.heap.Malloc(size)
		}
	}},
	{name: "blocks are harmed, in the long run", check: "Model", says: "was written to it", change: func(a *altered) {
		n := 0
		a.malloc = func(size int) pointer {
			if n++; n%1000 == 0 {
				a.harmed = false // several, as Realloc may still cut off all of one
				a.harm()
			}
			return a.heap.Malloc(size)
		}
	}},
	{name: "nothing is handed out again", check: "Reuse", says: "different addresses", change: func(a *altered) {
		a.free = func(pointer) {}
	}},
	{name: "a second Free is ignored", check: "Misuse", says: "that is free did not panic", change: func(a *altered) {
		a.free = func(p pointer) {
			if a.gaveOut(p) {
				defer func() { _ = recover() }()
			}
			a.heap.Free(p)
		}
	}},
	{name: "a second Free is seen at once only", check: "Misuse", says: "one of 100, did not panic", change: func(a *altered) {
		var last pointer
		a.free = func(p pointer) {
			if p != last && a.gaveOut(p) {
				defer func() { _ = recover() }()
			}
			last = p
			a.heap.Free(p)
		}
	}},
	{name: "Free takes the inside of a block", check: "Misuse", says: "byte 8 of a block did not panic", change: func(a *altered) {
		a.free = func(p pointer) {
			if uintptr(p)%16 != 8 {
				a.heap.Free(p)
			}
		}
	}},
	{name: "Free takes memory of others", check: "Misuse", says: "another heap did not panic", change: func(a *altered) {
		a.free = func(p pointer) {
			if p == nil || a.heap.Owns(p) || a.gaveOut(p) || uintptr(p)%16 != 0 {
				a.heap.Free(p)
			}
		}
	}},
	{name: "Free panics when harm is done", check: "Misuse", says: "was written to it", change: func(a *altered) {
		a.free = func(p pointer) {
			if uintptr(p)%16 != 0 {
				flip(p)
			}
			a.heap.Free(p)
		}
	}},
	{name: "two at a time are too many", check: "Hammer", says: "returned nil", change: func(a *altered) {
		var inside atomic.Int32
		a.malloc = func(size int) pointer {
			defer inside.Add(-1)
			if inside.Add(1) > 1 {
				return nil
			}
			runtime.Gosched()
			return a.heap.Malloc(size)
		}
	}},
	{name: "blocks are harmed where there are several goroutines", check: "Hammer", says: "was written to it", change: func(a *altered) {
		// In each goroutine the second Malloc damages the block of the first one,
		// which the hammer keeps there: no other goroutine reads it meanwhile.
		var mu sync.Mutex
		first, second := map[string]pointer{}, map[string]bool{}
		a.malloc = func(size int) pointer {
			mu.Lock()
			defer mu.Unlock()
			g := goroutine()
			if p := first[g]; p != nil && !second[g] {
				second[g] = true
				flip(p)
			}
			p := a.heap.Malloc(size)
			if first[g] == nil && size > 0 && !second[g] {
				first[g] = p
			}
			second[g] = second[g] || first[g] == nil // a block without contents shows nothing
			return p
		}
	}},
}

// wrongSized are allocators with a largest size that are wrong in the methods of these.
var wrongSized = []struct {
	name, says string
	change     func(s *sized)
}{
	{"Contains is always true", "Contains is true", func(s *sized) {
		s.contains = func(pointer) bool { return true }
	}},
	{"Contains is true for what Malloc returned only", "Contains is false", func(s *sized) {
		s.contains = func(p pointer) bool { return s.live[p] > 0 }
	}},
	{"MaxSize is negative", "MaxSize is -1", func(s *sized) { s.max = -1 }},
	{"MaxSize is too little", "more than MaxSize", func(s *sized) { s.malloc = s.heap.Malloc }},
}
