package ledger

import (
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cheapgo/cheap/internal/goroutine"
	"github.com/cheapgo/cheap/internal/leaks"
)

// mostFrames is the largest number of frames of a stack.
const mostFrames = goroutine.MostFrames

// A Stack is a stack as runtime.Callers has it, with zeros behind its end.
type Stack [mostFrames]uintptr

// An Origin is a stack that made owners, or used them. Equal stacks are mostly one origin.
type Origin struct {
	pcs []uintptr

	// If sited, the origin is in the table of its kind. It counts the owners that the stack
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

// A Table has the origins of a kind, while its leak level is not off.
type Table struct {
	Generation uint64 // see package leaks; does not change

	mu     sync.RWMutex
	byKey  map[uint64]*Origin
	bySum  map[uint64]*Origin
	full   atomic.Bool                            // no further stack is taken
	others struct{ made, collected atomic.Int64 } // of stacks that are not in bySum
}

// mostSites is the largest number of stacks that a kind counts owners by. They take half a
// megabyte at most.
const mostSites = 2048

// keyOf returns a number that tells the stack of its caller from others, or 0. It is made of
// 64 bits, so of a million stacks two have the same with a probability of one in 30 million.
// It takes a fraction of the time of runtime.Callers, which is called only for stacks that are
// not known.
func keyOf() uint64 {
	var pcs Stack
	n := goroutine.Frames((*[goroutine.MostFrames]uintptr)(&pcs))
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
// k is not nil it is the kind in whose table the origin is to be.
//
//go:noinline
func here(k *Kind) *Origin {
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
func (k *Kind) countMade(o *Origin, n int64) {
	if o.sited {
		o.made.Add(n)
	} else {
		k.sites.Load().others.made.Add(n)
	}
}

// countCollected counts n owners that a stack made and the collector found.
func (k *Kind) countCollected(o *Origin, n int64) {
	if o.sited {
		o.collected.Add(n)
	} else {
		k.sites.Load().others.collected.Add(n)
	}
}

// A sample says who made an owner, and when.
type sample struct {
	origin *Origin
	index  uint32
	born   uint32 // in seconds, see clock
}

var started = time.Now()

// clock returns the seconds since the program was started.
func clock() uint32 { return uint32(time.Since(started) / time.Second) }

// never is the index of no entry.
const never = math.MaxUint32

// Watch decides of which owners the origins are recorded. It is called once for each
// ledger, before the first owner.
func (l *Ledger) Watch() {
	k, level := l.Kind, l.Kind.Level()
	l.SampleAt, l.nextAt = never, never
	l.sited, l.uses = level != leaks.Off, level >= leaks.Advanced
	switch {
	case k.Trace || level == leaks.All:
		l.rate = 1
		l.note()
		l.samples = make([]sample, l.size)
		return
	case level != leaks.Off && l.size == 1:
		l.rate = leaks.RateAlone
		if rand.Uint32N(leaks.RateAlone) == 0 {
			l.nextAt = 0
		}
		l.SampleAt = l.nextAt
	case level != leaks.Off:
		l.rate = leaks.Rate
		l.nextAt = gap()
		l.SampleAt = l.nextAt
	}
	if k.OnCollect != nil {
		l.note()
		l.oneAt = rand.Uint32N(l.size)
		l.SampleAt = min(l.nextAt, l.oneAt)
	}
}

// gap returns how many owners are not sampled before the next one that is. Each owner is
// sampled with the same probability, whatever happened to others. So gaps have a geometric
// distribution, which does not depend on what was before: the end of a batch need not be
// remembered. The whole part of an exponential distribution is one.
func gap() uint32 {
	return uint32(min(rand.ExpFloat64()*meanGap, never-1))
}

var meanGap = -1 / math.Log1p(-1./leaks.Rate)

// Every reports whether the origin of each entry is recorded.
func (l *Ledger) Every() bool { return l.rate == 1 }

// Record records where the owner of an entry is being made, if the entry is one of those of
// which that is recorded. It is called with the shard's lock, or by the only goroutine that
// knows the ledger, before the owner is handed out.
func (l *Ledger) Record(i uint32) {
	if l.rate == 1 || i == l.SampleAt {
		l.record(i)
	}
}

func (l *Ledger) record(i uint32) {
	k := l.Kind
	if !l.sited {
		k = nil
	}
	s := sample{origin: here(k), index: i, born: clock()}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.note()
	switch {
	case l.rate == 1:
		l.samples[i] = s
	case i == l.nextAt:
		if l.samples == nil {
			l.samples = l.few[:0]
		}
		l.samples = append(l.samples, s)
		l.nextAt = i + 1 + min(gap(), never-1-i)
	}
	one := uint32(never)
	if l.Kind.OnCollect != nil && l.rate != 1 {
		if i == l.oneAt {
			l.sampled = s.origin
		} else if i < l.oneAt {
			one = l.oneAt
		}
	}
	l.SampleAt = min(l.nextAt, one)
	if mine := l.sampleOf(i); mine != nil {
		if l.sited {
			k.countMade(s.origin, int64(l.rate))
		}
		if l.uses {
			atomic.OrUint64(&l.at(i).State, Noted)
		}
	}
}

// sampleOf returns the sample of an entry, or nil. The ledger has notes, and the caller
// holds l.mu.
func (l *Ledger) sampleOf(i uint32) *sample {
	if l.rate == 1 {
		if s := &l.samples[i]; s.origin != nil {
			return s
		}
		return nil
	}
	j := l.sampleFrom(i)
	if j == len(l.samples) || l.samples[j].index != i {
		return nil
	}
	return &l.samples[j]
}

// sampleFrom returns the index of the first sample of an entry from i on.
func (l *Ledger) sampleFrom(i uint32) int {
	if l.rate == 1 {
		return int(i)
	}
	j, _ := slices.BinarySearchFunc(l.samples, i, func(s sample, i uint32) int { return int(s.index) - int(i) })
	return j
}

// originOf returns the origin of an entry if it was recorded, or nil. The ledger has
// notes, and the caller holds l.mu.
func (l *Ledger) originOf(i uint32) *Origin {
	if s := l.sampleOf(i); s != nil {
		return s.origin
	}
	if i == l.oneAt {
		return l.sampled
	}
	return nil
}

// foundOpen records that the collector has found the open entries from first on, below next.
// The ledger has notes, and the caller holds l.mu.
func (l *Ledger) foundOpen(first, next uint32) {
	if first <= l.oneAt && l.oneAt < next && l.sampled != nil && l.State(l.oneAt)&Open != 0 {
		l.forgotten = l.sampled
	}
	for j := l.sampleFrom(first); j < len(l.samples) && l.samples[j].index < next; j++ {
		s := l.samples[j]
		if s.origin == nil || l.State(s.index)&Open == 0 {
			continue
		}
		l.forgotten = s.origin
		if l.sited {
			l.Kind.countCollected(s.origin, int64(l.rate))
		}
	}
}

// mostUses is the number of uses of an owner whose stacks are kept.
const mostUses = 4

// used records the stack of a use of an entry that has Noted set.
func (l *Ledger) used(i uint32) {
	o := here(nil)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lastUses == nil {
		l.lastUses = map[uint32]*[mostUses]*Origin{}
	}
	list := l.lastUses[i]
	if list == nil {
		list = new([mostUses]*Origin)
		l.lastUses[i] = list
	}
	at := slices.Index(list[:], o) // a stack is there once
	if at < 0 {
		at = mostUses - 1
	}
	copy(list[1:at+1], list[:at])
	list[0] = o
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
	return strings.TrimSuffix(filepath.ToSlash(file), "internal/ledger/origin.go")
}()
