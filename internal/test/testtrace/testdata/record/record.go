// Package record keeps the calls of functions whose sources package testtrace has changed.
package record

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
)

var (
	on    atomic.Bool
	mu    sync.Mutex
	calls [][]uintptr // under mu; of each call its stack, as runtime.Callers has it
)

// Enter is called at the beginning of each function.
func Enter() {
	if !on.Load() {
		return
	}
	var pcs [64]uintptr
	stack := slices.Clone(pcs[:runtime.Callers(2, pcs[:])])
	mu.Lock()
	calls = append(calls, stack)
	mu.Unlock()
}

// Begin begins to record.
func Begin() { on.Store(true) }

// End ends it, and prints the calls since Begin: of each the names of its functions, that
// which was called first, then its caller, and so on.
func End() {
	on.Store(false)
	mu.Lock()
	defer mu.Unlock()
	for _, stack := range calls {
		fmt.Fprint(os.Stdout, "call")
		frames := runtime.CallersFrames(stack)
		for more := true; more; {
			var f runtime.Frame
			f, more = frames.Next()
			fmt.Fprint(os.Stdout, " ", f.Function)
		}
		fmt.Fprintln(os.Stdout)
	}
}
