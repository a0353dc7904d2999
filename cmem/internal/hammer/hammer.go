//go:build cgo && linux

package hammer

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"strings"
	"sync"
	"testing"
	"time"
	"unsafe"

	"github.com/cheapgo/cheap/cmem"
	"github.com/cheapgo/cheap/cmem/internal/cwork"
	"github.com/google/pprof/profile"
)

// Run runs eight goroutines for a time, half of them locked to their threads, on stacks of up to
// 300 functions. They allocate in C, in callbacks, in threads of C, in SQLite, which they load and
// unload, in children that they fork, and in extra, which is called now and then. Meanwhile the
// collector runs all the time, the CPU profiler looks 1,000 times a second, and the rate of samples
// changes: every block, one in 64 bytes, and others.
func Run(t *testing.T, d time.Duration, extra func()) {
	defer debug.SetGCPercent(debug.SetGCPercent(1))
	defer cmem.SetRate(cmem.SetRate(1))
	runtime.SetCPUProfileRate(1000) // the rate stays, and StartCPUProfile prints a line about it
	var cpu bytes.Buffer
	if err := pprof.StartCPUProfile(&cpu); err != nil {
		t.Error(err)
	}
	defer pprof.StopCPUProfile()
	before := cmem.Read()
	end := time.Now().Add(d)
	var all sync.WaitGroup
	var forks, queries counter
	for g := range 8 {
		all.Go(func() {
			if g%2 == 0 {
				runtime.LockOSThread() // the thread ends with the goroutine
			}
			w := worker{t: t, forks: &forks, queries: &queries, extra: extra}
			for time.Now().Before(end) {
				deep(rand.IntN(300), w.step)
			}
			w.free()
		})
	}
	profiles := 0
	for rates := []int{1, 64, 2000, cmem.DefaultRate, 0}; time.Now().Before(end); profiles++ {
		cmem.SetRate(rates[profiles%len(rates)])
		time.Sleep(min(200*time.Millisecond, d/10))
		runtime.GC()
		Check(t)
	}
	all.Wait()
	after := cmem.Read()
	t.Logf("%d samples of %d blocks in %v; %d forks, %d times SQLite, %d profiles", after.Samples-before.Samples, after.Mallocs-before.Mallocs, d, forks.n, queries.n, profiles)
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
	case k < 300:
		w.blocks = append(w.blocks, cwork.Back(1+rand.IntN(5), rand.IntN(3000)))
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
	for _, s := range p.Sample {
		if wrong := wrong(s); wrong != "" {
			t.Errorf("%s: %s", wrong, text(s))
		}
	}
}

// The packages whose functions are in the stacks of a test.
var packages = []string{"github.com/cheapgo/cheap/cmem", "main.", "runtime.", "sync.", "testing.", "_cgoexp_", "_cgo_"}

// wrong says what is wrong with a stack: Go code begins with a function of cgo that calls C, and
// ends where a goroutine begins, or at C, or after 64 functions with those of the runtime.
func wrong(s *profile.Sample) string {
	var inGo []string
	last := ""
	for _, l := range s.Location {
		if len(l.Line) == 0 {
			if len(inGo) > 0 {
				return "an address without a name among functions of Go"
			}
			last = "?"
			continue
		}
		name := l.Line[len(l.Line)-1].Function.Name
		// A name of C has no dot, but those of cgo and of parts of a function.
		if l.Line[0].Line != 0 || strings.HasPrefix(name, "[called") {
			for _, line := range l.Line {
				inGo = append(inGo, line.Function.Name)
			}
		} else if len(inGo) > 0 && name != "runtime.goexit" {
			return "a function of C among those of Go"
		} else {
			last = name
		}
	}
	if len(inGo) == 0 {
		if strings.HasPrefix(last, "_cgo_") && strings.Contains(last, "_Cfunc_") {
			return "the functions of Go are missing"
		}
		return ""
	}
	if !strings.Contains(inGo[0], "._Cfunc_") && !strings.HasPrefix(inGo[0], "runtime.") {
		return fmt.Sprintf("%s does not call C", inGo[0])
	}
	if !strings.HasPrefix(last, "_cgo_") && !strings.HasPrefix(last, "cwork_") && !strings.HasPrefix(last, "cxxtest_") && last != "?" && !strings.HasPrefix(inGo[0], "runtime.") {
		return fmt.Sprintf("%s is called by Go", last)
	}
	for _, name := range inGo[:len(inGo)-1] {
		known := false
		for _, prefix := range packages {
			known = known || strings.HasPrefix(name, prefix)
		}
		if !known {
			return fmt.Sprintf("%s is not of this program's stacks", name)
		}
	}
	if end := inGo[len(inGo)-1]; end != "runtime.goexit" && end != "[called from C]" && len(inGo) < 60 {
		return fmt.Sprintf("it ends in %s after %d functions", end, len(inGo))
	}
	return ""
}

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
