package own

import (
	"cmp"
	"fmt"
	"math"
	"os"
	"reflect"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/cheapgo/cheap/internal/mem/account"
	"github.com/cheapgo/cheap/internal/mem/osmem"
	"github.com/cheapgo/cheap/internal/watch/census"
	"github.com/cheapgo/cheap/internal/watch/gcwatch"
	"github.com/cheapgo/cheap/own/internal/batch"
	"github.com/cheapgo/cheap/own/internal/intake"
	"github.com/cheapgo/cheap/own/internal/worker"
)

// A ReleaseError is an error that Options.Release has returned. It is passed to
// Options.OnReleaseError.
type ReleaseError struct {
	Pool  string // Options.Name
	Count int64  // resources of that call of Release
	Err   error
}

// Error names the pool and the error.
func (e ReleaseError) Error() string { return fmt.Sprintf("cheap: %s: release: %v", e.Pool, e.Err) }

// Unwrap returns Err.
func (e ReleaseError) Unwrap() error { return e.Err }

// Collected describes a release that the collector caused. It is passed to
// Options.OnCollect.
type Collected struct {
	Pool  string // Options.Name
	Count int64  // owners, or Rooms, of one batch that were found unreachable and never closed
	Stack string // stack that made one of them: always with Options.Trace, else for a sample
}

const (
	defaultBatch  = 256
	mostBatch     = 1 << 16
	defaultPinned = 64 << 10
)

// A Pool releases resources of one kind, and registers their owners with the
// collector in batches. It is made by [NewPool]. Its methods may be called from
// any goroutine.
//
// A Pool may be dropped without Close: its resources are still released after
// their owners become unreachable, and after that the Pool itself is collected.
// This holds even if Release refers to the Pool. A [Queue] must not be dropped:
// its queued releases would never run, and [Flush] would wait for them.
type Pool struct {
	spec   batch.Spec
	intake intake.Intake
	queue  *worker.Queue      // with a Queue or Thread, else nil
	inline *worker.Dispatcher // with Inline, else nil
	parent bool               // Options.Parent is set

	// addresses is the number of addresses from batch.LeastAddress on that Own takes:
	// all, or none in a pool of numbers.
	addresses uintptr

	// handled is the type *P of the first Handle[P], of which it is known that P is a pointer type. It is the first
	// word of an interface that holds a *P.
	handled atomic.Uintptr

	statsMu sync.Mutex // held by Stats

	// The pool of rooms, nil before the first Reserve under a limit. It is made under
	// roomsMu, and never after close has locked that.
	rooms     atomic.Pointer[Pool]
	roomsMu   sync.Mutex
	onCollect func(Collected) // Options.OnCollect

	// Under levels.
	base   *batch.Table   // nil if the leak level was always off
	raised []*batch.Table // while a level is raised: one for each generation since

	serial uint64 // see member; does not change after the constructor
}

// NewPool returns a pool. It panics with a [cheap.MisuseError] if the options
// are out of range or contradict each other.
func NewPool(o Options) *Pool {
	bad := func(format string, args ...any) { panicMisuse("own", "NewPool", format, args...) }
	switch {
	case o.Release == nil:
		bad("Options.Release is nil; set it to the function that destroys resources")
	case o.Parent != (Owner{}) && o.Construct != nil:
		bad("Options.Parent and Construct exclude each other: what is made in advance has no owner that could keep the parent; set With.Parent")
	}
	p := newPool(o, bad)
	if batch.Check {
		p.spec.StartChecks(o.Size != 0)
	}
	switch r := o.Run; {
	case r.queue != nil:
		p.queue = &r.queue.queue
	case r.thread:
		p.queue = &worker.Queue{Thread: true}
	default:
		c := worker.NewDispatcher(r.workers, r.inline)
		if p.spec.Releaser = c; r.inline {
			p.inline = c
		}
	}
	if p.queue != nil {
		p.spec.Releaser, p.spec.Queues = p.queue, true
	}
	var f *batch.Family
	if o.Parent != (Owner{}) {
		t := o.Parent.ref.Sentinel()
		if t == nil {
			bad("Options.Parent owns nothing; give it a resource first")
		}
		if f = t.Batch.Family(o.Parent.ref.Index); f == nil {
			bad("Options.Parent is closed; make the pool while it is open")
		}
		runtime.KeepAlive(t)
		p.parent = true
		f.Fix()
	}
	p.intake.Init(&p.spec, o.Construct, f)
	if p.inline != nil {
		p.intake.BeforeConstruct(p.help)
	}
	p.noteMade(nil)
	return p
}

// newPool returns a pool without a releaser and without an intake. bad panics.
func newPool(o Options, bad func(format string, args ...any)) *Pool {
	switch {
	case o.Batch < 0 || o.Batch > mostBatch:
		bad("Options.Batch is %d; a batch has at most %d owners", o.Batch, mostBatch)
	case o.Pinned < 0 || o.Size < 0:
		bad("Options.Pinned or Size is negative; use 0 for the default")
	}
	p := &Pool{spec: batch.Spec{
		Name:      cmp.Or(o.Name, "own.Handle"),
		Batch:     cmp.Or(o.Batch, defaultBatch),
		Pinned:    min(int64(cmp.Or(o.Pinned, defaultPinned)), batch.MaxSize),
		Size:      min(int64(cmp.Or(o.Size, census.DefaultSize)), batch.MaxSize),
		MaxQueued: o.Run.maxQueued,
		Unshared:  o.Unshared,
		Trace:     o.Trace,
		Release:   o.Release,
		State:     o.State,
		Numbers:   o.Numbers,
		Holder:    batch.Holds(o.CHeap),
	}}
	if !o.Numbers {
		p.addresses = math.MaxUint - batch.LeastAddress + 1
	}
	p.onCollect = o.OnCollect
	if tell, name := o.OnCollect, p.spec.Name; tell != nil {
		// The function must not refer to o, which has the parent's owner.
		p.spec.OnCollect = func(count int, stack string) {
			tell(Collected{Pool: name, Count: int64(count), Stack: stack})
		}
	}
	if tell, name := o.OnReleaseError, p.spec.Name; tell != nil {
		p.spec.OnReleaseError = func(count int, err error) {
			tell(ReleaseError{Pool: name, Count: int64(count), Err: err})
		}
	}
	return p
}

// ownPointer is own of the P at at, the resource of a Handle[P], where typ is a (*P)(nil). It checks both.
// Handle.Own, which does nothing else, is inlined.
func (p *Pool) ownPointer(o *owner, at unsafe.Pointer, typ any, size int) error {
	p.mustHandle(typ)
	resource := *(*unsafe.Pointer)(at) // P is a pointer, see mustHandle
	if uintptr(resource)-batch.LeastAddress >= p.addresses {
		p.panicNothing(uintptr(resource))
	}
	// As own, to save a call.
	n := p.sized(size)
	if n > 0 && o.ref.Sentinel() == nil {
		if t, i := p.intake.Put(uintptr(resource), n); t != nil {
			o.ref = batch.RefTo(t, i)
			return nil
		}
	}
	p.warnOfGo(resource)
	return p.ownSlow(o, uintptr(resource), size)
}

// warnOfGo says once if a resource is in the Go heap. It is called in slow paths, of which the
// first Own of a pool is one.
func (p *Pool) warnOfGo(resource unsafe.Pointer) {
	switch {
	case strconv.IntSize == 32 || osmem.GoBacked || uint64(uintptr(resource))>>goBits != goHeap || warnedOfGo.Load() || !inGoHeap(resource):
	case batch.Check:
		panicMisuse(p.spec.Name, "Own", "the resource %#x is memory of Go: the owner does not keep it, and C cannot free it", uintptr(resource))
	case !warnedOfGo.Swap(true):
		fmt.Fprintf(os.Stderr, "cheap: %s.Own: the resource %#x is memory of Go: the owner does not keep it, and C cannot free it\n", p.spec.Name, uintptr(resource))
	}
}

var warnedOfGo atomic.Bool

// goHeap has the upper bits of most addresses in the Go heap, and of few others. On 32-bit systems
// all have the same ones.
var goHeap = uint64(uintptr(unsafe.Pointer(new([64]byte)))) >> goBits

const goBits = 40

// inGoHeap reports whether p points into the Go heap. A Pinner notes such a pointer, and no other;
// if one of a later version of Go has another form, inGoHeap returns false.
func inGoHeap(p unsafe.Pointer) bool {
	var pin runtime.Pinner
	pin.Pin(p)
	defer pin.Unpin()
	notes := reflect.ValueOf(pin).Field(0)
	if notes.Kind() != reflect.Pointer || notes.Elem().Kind() != reflect.Struct {
		return false
	}
	refs := notes.Elem().FieldByName("refs")
	return refs.IsValid() && refs.Kind() == reflect.Slice && refs.Len() > 0
}

// own is Own of a resource that is checked.
func (p *Pool) own(o *owner, resource uintptr, size int) error {
	n := p.sized(size)
	if n > 0 && o.ref.Sentinel() == nil {
		if t, i := p.intake.Put(resource, n); t != nil {
			o.ref = batch.RefTo(t, i)
			return nil
		}
	}
	return p.ownSlow(o, resource, size)
}

// ownSlow is the slow path of Own.
func (p *Pool) ownSlow(o *owner, resource uintptr, size int) error {
	n := p.sized(size)
	if n < 0 {
		p.panicNegative("Own", size)
	}
	p.mustBeVacant(o, "Own")
	if size == 0 && p.spec.Checked() {
		p.spec.TakeUnsized()
	}
	return p.count(p.intake.Own(&o.ref, nil, resource, n, nil))
}

func (p *Pool) panicNegative(op string, size int) {
	panicMisuse(p.spec.Name, op, "the size %d is negative; use 0 if it is unknown", size)
}

// count tells package pace of a batch that was begun. No lock is held.
func (p *Pool) count(began bool, err error) error {
	if began {
		p.help()
		account.Process.Notify()
		giveWay()
	}
	return err
}

// help releases some of the queued entries of a pool with Inline. No lock is
// held.
func (p *Pool) help() {
	if p.inline != nil && !gcwatch.InBubble() {
		p.inline.Help()
	}
}

func (p *Pool) mustBeVacant(o *owner, op string) {
	if !o.ref.Vacant() {
		panicMisuse(p.spec.Name, op, "it owns something already; close or disown it first, or use another one")
	}
}

// giveWay yields while releases wait. A goroutine that makes owners calls it once
// for each batch, with no lock held. To release an owner takes longer than to
// forget it. With all Ps busy, dead batches would pile up for some time slices of
// 10 ms. On a single P giveWay always yields, because the sweeper, which finds dead
// sentinels, and the walk over the registrations have no other P to run on.
func giveWay() {
	if worker.Waiting() && !account.Process.Roomy() || runtime.GOMAXPROCS(0) == 1 {
		runtime.Gosched()
	}
}

// sized returns the size that is counted for a resource. A negative one is left
// to the slow path, which panics.
func (p *Pool) sized(size int) int64 {
	if size == 0 {
		return p.spec.Size
	}
	return int64(size)
}

//go:noinline
func (p *Pool) panicNothing(resource uintptr) {
	if p.spec.Numbers {
		panicMisuse(p.spec.Name, "Own", "the pool has Options.Numbers, and the resource is a pointer; use a Number, or another pool")
	}
	if resource != 0 {
		panicMisuse(p.spec.Name, "Own", "the resource %#x is not an address; set Options.Numbers, and use a Number", resource)
	}
	panicMisuse(p.spec.Name, "Own", "the resource is nil; check the result of the C function before Own")
}

// mustBeAddress panics if OwnWith takes no such resource.
func (p *Pool) mustBeAddress(resource unsafe.Pointer) {
	if uintptr(resource)-batch.LeastAddress >= p.addresses {
		p.panicNothing(uintptr(resource))
	}
	p.warnOfGo(resource)
}

// ownWith is OwnWith of a resource that is checked.
func (p *Pool) ownWith(o *owner, resource uintptr, w With) error {
	size, room := p.sized(w.Size), w.Room
	switch {
	case room.pool != nil && room.pool != p:
		panicMisuse(p.spec.Name, "OwnWith", "the Room is one of the pool %s; reserve it in the pool that owns the resource", room.pool.spec.Name)
	case room.pool != nil && w.Size != 0:
		panicMisuse(p.spec.Name, "OwnWith", "With.Size is set, and a Room has the size that was reserved; leave one of them out")
	case w.Parent != (Owner{}) && p.parent:
		panicMisuse(p.spec.Name, "OwnWith", "the pool has Options.Parent already; leave With.Parent or that option out")
	case size < 0:
		p.panicNegative("OwnWith", w.Size)
	}
	p.mustBeVacant(o, "OwnWith")
	if room.pool != nil {
		size = room.size
	} else if w.Size == 0 && p.spec.Checked() {
		p.spec.TakeUnsized()
	}
	defer room.Close() // after the resource is counted, so that no other takes the room
	var f *batch.Family
	if w.Parent != (Owner{}) {
		t := w.Parent.ref.Sentinel()
		defer runtime.KeepAlive(t)
		if t != nil {
			f = t.Batch.Family(w.Parent.ref.Index)
		}
		if f == nil {
			return ErrClosed
		}
	} else if w.State == nil {
		if t, i := p.intake.Put(resource, size); t != nil {
			o.ref = batch.RefTo(t, i)
			return nil
		}
	}
	if room.pool != nil {
		return p.count(p.intake.OwnReserved(&o.ref, f, resource, size, w.State))
	}
	return p.count(p.intake.Own(&o.ref, f, resource, size, w.State))
}

// make is Make of a Handle or Number.
func (p *Pool) make(o *owner) error {
	if !p.intake.Makes() {
		panicMisuse(p.spec.Name, "Make", "the pool has no Options.Construct; set it, or call Own")
	}
	if o.ref.Sentinel() == nil {
		if t, i := p.intake.Next(); t != nil {
			o.ref = batch.RefTo(t, i)
			return nil
		}
	}
	p.mustBeVacant(o, "Make")
	err := p.intake.Make(&o.ref)
	giveWay()
	return err
}

// Stats are the counters of a [Pool] or a [Memory]. [cheap.Stats] says when they agree
// with one another.
type Stats struct {
	Live      int64 // resources that are owned and not released, queued ones included
	Bytes     int64 // sizes of the resources in Live and Made, in bytes
	Made      int64 // resources made in advance and not handed out
	Collected int64 // resources released because of the collector, since NewPool
	Queued    int64 // releases that wait for [Queue.Drain] or for the pool's [Thread]
	Rooms     int64 // Rooms under a limit of package pace that have not ended
	RoomBytes int64 // bytes that these hold
	Errors    int64 // errors of Options.Release that no Close has returned, since NewPool

	OldestQueued time.Duration // how long the first of the queued releases has waited, of all pools of a Queue
}

// Stats returns the pool's counters.
func (p *Pool) Stats() Stats {
	p.mustBeMade("Stats")
	p.statsMu.Lock()
	defer p.statsMu.Unlock()
	st := Stats{Collected: p.spec.Counts.Collected.Load(), Queued: p.spec.Counts.Queued.Load(), Errors: p.spec.Counts.Errors.Load()}
	st.Live, st.Bytes, st.Made = p.intake.Totals()
	if p.queue != nil && st.Queued > 0 {
		st.OldestQueued = p.queue.Oldest()
	}
	if b, ok := p.spec.Releaser.(*blockPool); ok {
		st.Bytes += b.grown.Load()
	}
	if rooms := p.rooms.Load(); rooms != nil {
		of := rooms.Stats()
		st.Rooms, st.RoomBytes = of.Live, of.Bytes
	}
	return st
}

// plus returns the sum of two pools' counters.
func (st Stats) plus(o Stats) Stats {
	st.Live += o.Live
	st.Bytes += o.Bytes
	st.Made += o.Made
	st.Collected += o.Collected
	st.Queued += o.Queued
	st.Rooms += o.Rooms
	st.RoomBytes += o.RoomBytes
	st.Errors += o.Errors
	st.OldestQueued = max(st.OldestQueued, o.OldestQueued)
	return st
}
