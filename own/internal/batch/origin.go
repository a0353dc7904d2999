package batch

import (
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/cheapgo/cheap/internal/watch/stacks"
)

// mostFrames is the largest number of frames of a stack.
const mostFrames = stacks.MostFrames

// A Stack is a stack as runtime.Callers has it, with zeros behind its end.
type Stack [mostFrames]uintptr

// An Origin is a stack that made owners, or used them. Equal stacks are mostly one origin.
type Origin struct {
	pcs []uintptr

	// If sited, the origin is in the table of its spec. It counts the owners that the stack
	// made, and those of them that the collector found, each sampled one as Rate.
	sited           bool
	generation      uint64 // of the table
	made, collected atomic.Int64
}

// Callers returns the stack, as runtime.Callers has it.
func (o *Origin) Callers() []uintptr { return o.pcs }

// recentOrigins has origins of recent owners, in slots by the sum of the stack. It
// keeps a program that makes many owners in few places from having a copy of the
// stack for each. Other origins live as long as the batches of their owners.
//
// recentKeys has them by their keys, see keyOf.
var (
	recentOrigins [256]atomic.Pointer[Origin]
	recentKeys    [256]atomic.Pointer[keyed]
)

type keyed struct {
	key    uint64
	origin *Origin
}

// A Table has the origins of a spec, while its leak level is not off.
type Table struct {
	Generation uint64 // see package leaks; does not change

	mu      sync.RWMutex
	origins stacks.Table[*Origin]
	full    atomic.Bool                            // no further stack is taken
	others  struct{ made, collected atomic.Int64 } // of stacks that have no origin here
}

// mostSites is the largest number of stacks that a spec counts owners by. They take half a
// megabyte at most.
const mostSites = 2048

// keyOf returns the key of the stack of its caller, or 0. See [stacks.Table].
func keyOf() uint64 {
	var pcs Stack
	n := stacks.Frames((*[stacks.MostFrames]uintptr)(&pcs))
	if n == 0 {
		return 0
	}
	return max(stacks.Sum(pcs[:n]), 1)
}

// here returns the origin of what is being done: the stack of the call into package own. If
// k is not nil it is the spec in whose table the origin is to be.
//
//go:noinline
func here(k *Spec) *Origin {
	key := keyOf()
	var t *Table
	if k != nil {
		t = k.sites.Load()
	}
	if t != nil && key != 0 {
		if o := t.known(key); o != nil {
			return o
		}
	}
	slot := &recentKeys[key%uint64(len(recentKeys))]
	if t == nil || t.full.Load() {
		if r := slot.Load(); r != nil && r.key == key && key != 0 {
			return r.origin
		}
	}
	var pcs Stack
	n := runtime.Callers(3, pcs[:])
	if t != nil {
		if o := t.find(key, pcs[:n]); o != nil {
			return o
		}
	}
	at := &recentOrigins[stacks.Sum(pcs[:n])%uint64(len(recentOrigins))]
	o := at.Load()
	if o == nil || !slices.Equal(o.pcs, pcs[:n]) {
		o = &Origin{pcs: slices.Clone(pcs[:n])}
		at.Store(o)
	}
	slot.Store(&keyed{key, o})
	return o
}

// known returns the origin with a key, or nil.
func (t *Table) known(key uint64) *Origin {
	t.mu.RLock()
	o := t.origins.Known(key)
	t.mu.RUnlock()
	return o
}

// find returns the origin of a stack, and adds it if there is room.
func (t *Table) find(key uint64, pcs []uintptr) *Origin {
	t.mu.Lock()
	defer t.mu.Unlock()
	o, place := t.origins.Find(pcs)
	if o == nil {
		if t.origins.Len() >= mostSites {
			t.full.Store(true)
			return nil
		}
		o = &Origin{pcs: slices.Clone(pcs), sited: true, generation: t.Generation}
		t.origins.Add(o, place)
	}
	if key != 0 && t.origins.Keys() < 2*mostSites { // stacks that differ in a wrapper only are one for Callers
		t.origins.Note(key, o)
	}
	return o
}

// all returns the origins of the table.
func (t *Table) all() []*Origin {
	t.mu.RLock()
	defer t.mu.RUnlock()
	list := make([]*Origin, 0, t.origins.Len())
	return slices.AppendSeq(list, t.origins.All)
}

// countMade counts n owners that a stack made.
func (k *Spec) countMade(o *Origin, n int64) {
	if o.sited {
		o.made.Add(n)
	} else {
		k.sites.Load().others.made.Add(n)
	}
}

// countCollected counts n owners that a stack made and the collector found.
func (k *Spec) countCollected(o *Origin, n int64) {
	if o.sited {
		o.collected.Add(n)
	} else {
		k.sites.Load().others.collected.Add(n)
	}
}

// Stack returns the stack as a value that can be compared.
func (o *Origin) Stack() (s Stack) {
	copy(s[:], o.pcs)
	return s
}

// PCs returns the stack from the caller of package own on, as runtime.Callers has it.
func (o *Origin) PCs() []uintptr {
	for i := range o.pcs {
		if f, _ := runtime.CallersFrames(o.pcs[i : i+1]).Next(); !isOwn(f.File) {
			return o.pcs[i:]
		}
	}
	return o.pcs
}

// String returns the stack in the format of a goroutine's trace, from the caller
// of package own on.
func (o *Origin) String() string { return o.Stack().String() }

// String returns the stack in the format of a goroutine's trace, from the caller
// of package own on.
func (s Stack) String() string {
	n := slices.Index(s[:], 0)
	if n < 0 {
		n = len(s)
	}
	var text strings.Builder
	inside := true
	for frames := runtime.CallersFrames(s[:n]); ; {
		f, more := frames.Next()
		if inside && isOwn(f.File) && more {
			continue
		}
		inside = false
		fmt.Fprintf(&text, "%s\n\t%s:%d\n", f.Function, f.File, f.Line)
		if !more {
			return text.String()
		}
	}
}

// isOwn reports whether a file is a source file of package own or of a package
// below it, and no test. It compares the directory with that of this file, as the
// compiler has recorded it. So functions may be renamed, and generic and inlined
// functions need no care.
func isOwn(file string) bool {
	return strings.HasPrefix(filepath.ToSlash(file), ownDir) && !strings.HasSuffix(file, "_test.go")
}

// ownDir is the directory of package own, with a slash at its end.
var ownDir = func() string {
	_, file, _, _ := runtime.Caller(0)
	return strings.TrimSuffix(filepath.ToSlash(file), "internal/batch/origin.go")
}()
