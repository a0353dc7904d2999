package own

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
)

// An origin is a stack that made owners. Equal stacks are one origin.
type origin struct {
	pcs [32]uintptr
	n   int
}

var origins struct {
	mu  sync.Mutex
	all map[[32]uintptr]*origin
}

// here returns the origin of the owner that is being made: the stack of who
// called into this package.
func (p *Pool) here() *origin {
	var pcs [32]uintptr
	n := runtime.Callers(2, pcs[:])
	origins.mu.Lock()
	defer origins.mu.Unlock()
	o := origins.all[pcs]
	if o == nil {
		o = &origin{pcs: pcs, n: n}
		if origins.all == nil {
			origins.all = map[[32]uintptr]*origin{}
		}
		origins.all[pcs] = o
	}
	return o
}

// String returns the stack as a goroutine's trace has it, from the caller of
// this package on.
func (o *origin) String() string {
	var text strings.Builder
	inside := true
	for frames := runtime.CallersFrames(o.pcs[:o.n]); ; {
		f, more := frames.Next()
		if inside && isOwn(f.Function) && more {
			continue
		}
		inside = false
		fmt.Fprintf(&text, "%s\n\t%s:%d\n", f.Function, f.File, f.Line)
		if !more {
			return text.String()
		}
	}
}

// isOwn reports whether a function is one of those that make owners.
func isOwn(function string) bool {
	const path = "github.com/cheapgo/cheap/own."
	rest, ok := strings.CutPrefix(function, path)
	return ok && (strings.HasPrefix(rest, "(*Pool).") || strings.HasPrefix(rest, "(*shard).") ||
		strings.HasPrefix(rest, "(*carver).") || strings.HasPrefix(rest, "(*Memory).") || strings.HasPrefix(rest, "NewMem["))
}
