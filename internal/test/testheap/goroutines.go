package testheap

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cheapgo/cheap/internal/watch/gcwatch"
)

// FewCgoCalls is what runtime.NumCgoCall may count in 100 rounds or more that call no C. On Windows it
// counts calls of the system as well, of which a heap makes a few for its memory.
func FewCgoCalls() int64 {
	if runtime.GOOS == "windows" {
		return 10
	}
	return 0
}

// Faulted reports whether the output of a child is that of Go's runtime after a fault.
func Faulted(output string) bool {
	for _, signal := range []string{"SIGSEGV", "SIGBUS", "[signal 0xc0000005"} { // the last is of Windows
		if strings.Contains(output, signal) {
			return true
		}
	}
	return false
}

// IsIn reports whether a goroutine is in a function with that name, and in one of inner if there are any.
func IsIn(name string, inner ...string) bool { return CountIn(name, inner...) > 0 }

// CountIn returns how many are.
func CountIn(name string, inner ...string) (n int) {
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

// ChangeProcs sets GOMAXPROCS to all numbers from 1 to most in turn and calls pause after
// the i-th change, until stop is called, which returns how many changes there were.
func ChangeProcs(most int, pause func(i int)) (stop func() (changes int)) {
	before := runtime.GOMAXPROCS(0)
	done := make(chan bool)
	changes := 0
	var wg sync.WaitGroup
	wg.Go(func() {
		for ; ; changes++ {
			select {
			case <-done:
				return
			default:
			}
			runtime.GOMAXPROCS(changes%most + 1)
			pause(changes)
		}
	})
	return func() int {
		close(done)
		wg.Wait()
		runtime.GOMAXPROCS(before)
		return changes
	}
}

// Deep calls f with n more frames on the stack.
//
//go:noinline
func Deep(n int, f func()) int {
	var frame [4]int
	if n == 0 {
		f()
		return 0
	}
	frame[n%4] = Deep(n-1, f)
	return frame[n%4] + 1
}

// Panicker is the testing.TB of a machine in a child process.
type Panicker struct{ testing.TB }

func (Panicker) Helper()                           {}
func (Panicker) Fatal(args ...any)                 { panic(fmt.Sprint(args...)) }
func (Panicker) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }
func (Panicker) Error(args ...any)                 { panic(fmt.Sprint(args...)) }
func (Panicker) Errorf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }

// Collect collects, until the memory of all that was dropped before has been given back.
func Collect() {
	runtime.GC()
	for n := gcwatch.Cycles(); !gcwatch.Walked(n); runtime.GC() {
		gcwatch.Walk(n) // the report of the runtime may be lost
	}
}

// OnAllPs calls f in n goroutines that run at the same time, so that each has a P of its own.
func OnAllPs(n int32, f func()) {
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
