package batch

import (
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/cheapgo/cheap/internal/stacks"
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

	mu     sync.RWMutex
	byKey  map[uint64]*Origin
	bySum  map[uint64]*Origin
	full   atomic.Bool                            // no further stack is taken
	others struct{ made, collected atomic.Int64 } // of stacks that are not in bySum
}

// mostSites is the largest number of stacks that a spec counts owners by. They take half a
// megabyte at most.
const mostSites = 2048

// keyOf returns a number that tells the stack of its caller from others, or 0. It is made of
// 64 bits, so of a million stacks two have the same with a probability of one in 30 million.
// It takes a fraction of the time of runtime.Callers, which is called only for stacks that are
// not known.
func keyOf() uint64 {
	var pcs Stack
	n := stacks.Frames((*[stacks.MostFrames]uintptr)(&pcs))
	if n == 0 {
		return 0
	}
	return max(sumOf(pcs[:n]), 1)
}

func sumOf(pcs []uintptr) (sum uint64) {
	for _, pc := range pcs {
		sum = (sum ^ uint64(pc)) * 0x9e3779b97f4a7c15
		sum ^= sum >> 29
	}
	return sum
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
	at := &recentOrigins[sumOf(pcs[:n])%uint64(len(recentOrigins))]
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
	o := t.byKey[key]
	t.mu.RUnlock()
	return o
}

// find returns the origin of a stack, and adds it if there is room.
func (t *Table) find(key uint64, pcs []uintptr) *Origin {
	sum := sumOf(pcs)
	t.mu.Lock()
	defer t.mu.Unlock()
	o := t.bySum[sum]
	if o == nil {
		if len(t.bySum) >= mostSites {
			t.full.Store(true)
			return nil
		}
		if t.bySum == nil {
			t.bySum, t.byKey = map[uint64]*Origin{}, map[uint64]*Origin{}
		}
		o = &Origin{pcs: slices.Clone(pcs), sited: true, generation: t.Generation}
		t.bySum[sum] = o
	}
	if !slices.Equal(o.pcs, pcs) {
		return nil // another stack has the same sum
	}
	if key != 0 && len(t.byKey) < 2*mostSites { // stacks that differ in a wrapper only are one for Callers
		t.byKey[key] = o
	}
	return o
}

// all returns the origins of the table.
func (t *Table) all() []*Origin {
	t.mu.RLock()
	defer t.mu.RUnlock()
	list := make([]*Origin, 0, len(t.bySum))
	for _, o := range t.bySum {
		list = append(list, o)
	}
	return list
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
