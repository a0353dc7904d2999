package ledger

import (
	"fmt"
	"hash/maphash"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
)

// An Origin is a stack that made owners. Equal stacks are mostly one origin.
type Origin struct {
	pcs [32]uintptr
	n   int
}

// recentOrigins has origins of recent owners, in slots by the hash of the stack. It
// keeps a program that makes many owners in few places from having a copy of the
// stack for each. Other origins live as long as the batches of their owners.
var (
	recentOrigins [256]atomic.Pointer[Origin]
	originSeed    = maphash.MakeSeed()
)

// Record records where the owner of an entry is being made, if the kind asks for
// that and the entry is one of those that are recorded.
func (l *Ledger) Record(i uint32) {
	if l.traced() {
		l.origins[i] = here()
	} else if l.Kind.OnCollect != nil && i == l.SampleAt {
		l.sampled = here()
	}
}

// originOf returns the origin of an entry if it was recorded, or nil. The ledger has
// notes.
func (l *Ledger) originOf(i uint32) *Origin {
	switch {
	case l.origins != nil:
		return l.origins[i]
	case i == l.SampleAt:
		return l.sampled
	}
	return nil
}

// here returns the origin of the owner that is being made: the stack of the call
// into package own.
func here() *Origin {
	var pcs [32]uintptr
	n := runtime.Callers(2, pcs[:])
	slot := &recentOrigins[maphash.Comparable(originSeed, pcs)%uint64(len(recentOrigins))]
	o := slot.Load()
	if o == nil || o.pcs != pcs {
		o = &Origin{pcs: pcs, n: n}
		slot.Store(o)
	}
	return o
}

// String returns the stack in the format of a goroutine's trace, from the caller
// of package own on.
func (o *Origin) String() string {
	var text strings.Builder
	inside := true
	for frames := runtime.CallersFrames(o.pcs[:o.n]); ; {
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
	return strings.TrimSuffix(filepath.ToSlash(file), "internal/ledger/origin.go")
}()
