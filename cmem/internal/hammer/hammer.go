//go:build cgo && linux

package hammer

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/cheapgo/cheap/cmem"
	"github.com/cheapgo/cheap/cmem/internal/cwork"
	"github.com/google/pprof/profile"
)

const (
	goroutines = 8
	short      = 150 // steps of a goroutine
	between    = 250 // steps of all goroutines between two profiles
)

// Run runs eight goroutines for a time, or for a number of steps if that is 0, half of them locked
// to their threads, on stacks of up to 300 functions. They allocate in C, in callbacks, in threads of
// C, map memory, in SQLite, which they load and unload, in children that they fork, and in extra, which is called
// now and then. Meanwhile the collector runs all the time, the CPU profiler looks 1,000 times a
// second, and the rate of samples changes: every block, one in 64 bytes, and others.
func Run(t *testing.T, d time.Duration, extra func()) {
	defer debug.SetGCPercent(debug.SetGCPercent(1))
	defer cmem.SetRate(cmem.SetRate(1))
	runtime.SetCPUProfileRate(1000) // the rate stays, and StartCPUProfile prints a line about it
	var cpu bytes.Buffer
	if err := pprof.StartCPUProfile(&cpu); err != nil {
		t.Error(err)
	}
	defer pprof.StopCPUProfile()
	before := cmem.ReadStats()
	end := time.Now().Add(d)
	goOn := func(steps int) bool {
		if d == 0 {
			return steps < short
		}
		return time.Now().Before(end)
	}
	var all sync.WaitGroup
	var running, taken atomic.Int64 // goroutines, and their steps
	var forks, queries counter
	running.Store(goroutines)
	for g := range goroutines {
		all.Go(func() {
			defer running.Add(-1)
			if g%2 == 0 {
				runtime.LockOSThread() // the thread ends with the goroutine
			}
			w := worker{t: t, forks: &forks, queries: &queries, extra: extra}
			for steps := 0; goOn(steps); steps++ {
				deep(rand.IntN(300), w.step)
				taken.Add(1)
			}
			w.free()
		})
	}
	profiles := 0
	for rates := []int{1, 64, 2000, cmem.DefaultRate, 0}; running.Load() > 0; profiles++ {
		cmem.SetRate(rates[profiles%len(rates)])
		for next := taken.Load() + between; taken.Load() < next && running.Load() > 0; {
			time.Sleep(time.Millisecond)
		}
		runtime.GC()
		Check(t)
	}
	all.Wait()
	after := cmem.ReadStats()
	t.Logf("%d samples of %d blocks in %d steps; %d forks, %d times SQLite, %d profiles", after.Samples-before.Samples, after.Mallocs-before.Mallocs, taken.Load(), forks.n, queries.n, profiles)
	if left := after.Mapped - before.Mapped; left >= int64(os.Getpagesize()) || left < -1 { // the sums are rounded
		t.Errorf("%d bytes are mapped more", left)
	}
	if _, err := cmem.MappedProfile(); err != nil {
		t.Error(err)
	}
	if after.Lost != before.Lost {
		t.Errorf("%d samples were lost", after.Lost-before.Lost)
	}
}

type counter struct {
	sync.Mutex
	n int
}

func (c *counter) add() {
	c.Lock()
	c.n++
	c.Unlock()
}

// A worker belongs to a goroutine.
type worker struct {
	t              *testing.T
	forks, queries *counter
	extra          func()
	blocks         []unsafe.Pointer
}

func (w *worker) step() {
	switch k := rand.IntN(1000); {
	case k < 2:
		w.forks.add()
		if !cwork.Child() {
			w.t.Error("a child has failed")
		}
	case k < 10:
		if n := cwork.SQLite(); n >= 0 {
			w.queries.add()
			if n != 5050 {
				w.t.Errorf("SQLite says %d", n)
			}
		}
	case k < 20:
		cwork.Threads(1+rand.IntN(4), 100, rand.IntN(1000))
	case k < 22:
		cwork.Many(1 + rand.IntN(4))
	case k < 50:
		if cwork.Within() == 0 {
			w.t.Error("a callback has failed")
		}
	case k < 100:
		w.extra()
	case k < 290:
		w.blocks = append(w.blocks, cwork.Back(1+rand.IntN(5), rand.IntN(3000)))
	case k < 300:
		w.blocks = append(w.blocks, cwork.BackThread(1+rand.IntN(3), rand.IntN(3000)))
	case k < 310:
		w.panics()
	case k < 350:
		if p := cwork.Assembly(rand.IntN(3000)); p != nil {
			w.blocks = append(w.blocks, p)
		}
	case k < 360:
		if n := cwork.Mappings(rand.IntN(100), rand.Uint32()); n != 0 {
			w.t.Errorf("%d pages of mappings are wrong", n)
		}
	case k < 550:
		w.blocks = append(w.blocks, cwork.Site(rand.IntN(100), rand.IntN(10_000)))
	case k < 800:
		if n := len(w.blocks); n > 0 {
			w.blocks[n-1] = cwork.Realloc(w.blocks[n-1], 1+rand.IntN(20_000))
		}
	default:
		cwork.Pairs(rand.IntN(300), rand.IntN(500))
	}
	if len(w.blocks) > 100 {
		w.free()
	}
}

// panics has a panic unwind through C, and allocates meanwhile and afterwards.
func (w *worker) panics() {
	add := func() { w.blocks = append(w.blocks, cwork.Alloc(2, rand.IntN(3000))) }
	defer func() {
		recover()
		add()
	}()
	cwork.Call(func() {
		defer add()
		if rand.IntN(2) == 0 {
			cwork.Grow()
		}
		panic("through C")
	})
}

func (w *worker) free() {
	for _, p := range w.blocks {
		cwork.Free(p)
	}
	w.blocks = nil
}

//go:noinline
func deep(n int, f func()) {
	var room [64]byte
	if n > 0 {
		deep(n-1, f)
	} else {
		f()
	}
	runtime.KeepAlive(&room)
}

// Check looks at the profile of now: each address lies in code, and each stack of Go is one that
// the program can have.
func Check(t *testing.T) {
	p, err := cmem.Profile()
	if err != nil {
		t.Error(err)
		return
	}
	for _, l := range p.Location {
		if l.Address != 0 && l.Mapping == nil {
			t.Errorf("%#x is in no mapping", l.Address)
		}
	}
	called := map[uint64]bool{} // by the address in C at which it goes on to functions of Go
	missing := map[uint64]*profile.Sample{}
	for _, s := range p.Sample {
		c, inGo := parts(s)
		if wrong := wrong(c, inGo); wrong != "" {
			t.Errorf("%s: %s", wrong, text(s))
		}
		switch n := len(c); {
		case n == 0 || n == 96:
		case len(inGo) > 0:
			called[c[n-1].Address] = true
		default:
			missing[c[n-1].Address] = s
		}
	}
	for at, s := range missing {
		if called[at] {
			t.Errorf("the functions of Go are missing: %s", text(s))
		}
	}
	if len(called) == 0 {
		t.Error("no stack has functions of Go")
	}
}

// The packages whose functions are in the stacks of a test.
var packages = []string{"github.com/cheapgo/cheap/", "main.", "runtime.", "runtime/pprof.", "sync.", "testing.", "_cgoexp_", "_cgo_", "[thread "}

// parts returns the locations of C that a stack begins with, and the names of the functions behind them: "" for
// those of C that have called Go.
func parts(s *profile.Sample) (c []*profile.Location, inGo []string) {
	for _, l := range s.Location {
		switch {
		case l.Line[0].Line != 0:
			for _, line := range l.Line {
				inGo = append(inGo, line.Function.Name)
			}
		case len(inGo) == 0:
			c = append(c, l)
		default:
			inGo = append(inGo, "")
		}
	}
	return c, inGo
}

// wrong says what is wrong with a stack. C ends where Go calls it, in a function that cgo has made
// for the program, or where a thread or a coroutine begins. Go begins with a function of cgo, and ends where a
// goroutine begins, or at C, which a function of cgo has been called by.
func wrong(c []*profile.Location, inGo []string) string {
	if len(inGo) == 0 {
		return ""
	}
	if n := len(c); n > 0 && (c[n-1].Mapping == nil || c[n-1].Mapping.File != executable && !strings.Contains(c[n-1].Mapping.File, "/libc")) {
		return "Go does not call a library by itself"
	}
	for i, name := range inGo {
		known := name == ""
		for _, prefix := range packages {
			known = known || strings.HasPrefix(name, prefix)
		}
		switch calls := strings.Contains(name, "._Cfunc_") || strings.Contains(name, "/asmcall.") || strings.HasPrefix(name, "runtime."); {
		case !known:
			return fmt.Sprintf("%s is not of this program's stacks", name)
		case name != "" && (i == 0 || inGo[i-1] == "") && !calls:
			return fmt.Sprintf("%s does not call C", name)
		case name == "" && inGo[i-1] != "" && !strings.HasPrefix(inGo[i-1], "_cgoexp_"):
			return fmt.Sprintf("C does not call %s", inGo[i-1])
		}
	}
	// 64 functions at most without a callback, and 128 words in all, with those of the runtime that a profile
	// leaves out.
	if end := inGo[len(inGo)-1]; end != "runtime.goexit" && end != "" && len(inGo) < 60 {
		return fmt.Sprintf("it ends in %s after %d functions", end, len(inGo))
	}
	return ""
}

var executable, _ = os.Readlink("/proc/self/exe")

func text(s *profile.Sample) string {
	var b strings.Builder
	for _, l := range s.Location {
		fmt.Fprintf(&b, " %#x", l.Address)
		for _, line := range l.Line {
			fmt.Fprintf(&b, "=%s", line.Function.Name)
		}
	}
	return b.String()
}
