// Package batch keeps batches of owners: the resources of each, and whether they are
// owned, in use, closed or released.
//
// Owners share a registration with the collector:
//
//	                   +----------+ registered
//	owner, a Ref ----> | Sentinel | ----> Batch ----> entries: resource, state
//	owner, a Ref ----> +----------+
//
// A [Ref] is a pointer to a [Sentinel], and the index of an entry in the [Batch]. The
// collector finds the sentinel unreachable when no owner is left.
//
// # The life of an entry
//
//	          Use: the count of uses
//	          grows and shrinks
//	        +------+                   Disown
//	Put --> | open | ----------------------------------------+
//	        +------+                                         |
//	           |  Close, also the pool's, or dead batch      |
//	           v                                             v
//	       +--------+   no Use, no child   +-----------+   +------+
//	       | closed | -------------------> | releasing | ->| gone |
//	       +--------+                      +-----------+   +------+
//
// The edges from open are one compare-and-swap each on the entry's state, except in a dead
// batch: no owner is left that could close an entry, and Close of the pool skips it, so its open
// entries belong to the goroutine that claims them. Hence exactly one goroutine closes an
// entry. It is released once:
//
//	by the goroutine that       if the entry, when it is closed,
//	closes or claims it         is in no Use and has no child
//	ends the last Use           is in a Use
//	releases the last child     has children
//
// To release an entry is to pass it to the [Releaser] of the [Spec]. Package intake makes
// entries, and package worker runs the releases that no Close runs. way.go has the way from
// a forgotten owner to its release.
//
// # The life of a batch
//
//	open      Shards of package intake write entries. Close counts what is gone in
//	          the batch alone. The shard refers to the sentinel.
//	sealed    by Seal. No entry is added. The sentinel is registered with the
//	          collector, and only owners refer to it.
//	dead      The collector has found the sentinel unreachable. The open entries are
//	          claimed, in one or several steps, and released.
//	ended     The last entry is gone. A chunk of a heap returns to the heap.
//
// A sealed batch whose entries are all closed goes to ended directly: it is never
// dead.
package batch

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/internal/mem/account"
	"github.com/cheapgo/cheap/internal/watch/gcwatch"
	"github.com/cheapgo/cheap/internal/watch/leaks"
)

// A Spec is what all resources of a pool have in common. It is immutable after the first
// batch is made, except Counts, mix, maker, level and sites.
type Spec struct {
	Name      string
	Batch     int   // the largest number of live owners in a batch
	Pinned    int64 // the largest sum of the sizes of a batch
	Size      int64 // of resources whose size is unknown
	MaxQueued int64 // of Counts.Queued; 0 for no bound
	Unshared  bool
	Trace     bool
	Numbers   bool // resources are numbers, never converted to pointers
	Rooms     bool // entries are rooms: Holder.Reserve of another spec has counted their bytes
	Queues    bool // the releaser queues all releases

	// Release destroys resources. state is that of the only one (Batch.Give), or else
	// that of their parent (Family.SetState), or else State.
	Release func(state any, resources []uintptr) error
	State   any

	// OnReleaseError, if not nil, is told of an error of Release that no Close
	// returns, and of how many entries it concerns.
	OnReleaseError func(count int, err error)

	// OnCollect, if not nil, is told how many entries of a batch the collector
	// caused to be released, and the stack that made one of them, or "".
	OnCollect func(count int, stack string)

	// Heap is not nil if resources are blocks in chunks of it. The chunk of a batch
	// returns there when the last entry is gone. The heap counts it in its account.
	Heap *cheap.Heap

	// Holder counts the resources, unless a heap does, or they are rooms.
	Holder *Holder

	Releaser Releaser

	Counts Counts
	mix    mix

	maker *maker // nil unless StartChecks was called

	level atomic.Uint32 // see SetLevel
	sites atomic.Pointer[Table]
}

// Level returns the leak level of the spec.
func (k *Spec) Level() leaks.Level { return leaks.Level(k.level.Load()) }

// SetLevel sets the leak level of batches that are begun from now on, and returns the one
// before. From now on owners are counted in t, which is not nil after a level was not off.
func (k *Spec) SetLevel(l leaks.Level, t *Table) leaks.Level {
	k.sites.Store(t)
	return leaks.Level(k.level.Swap(uint32(l)))
}

// Counts are the counters of a pool.
type Counts struct {
	Owners    atomic.Int64 // in sealed batches
	Bytes     atomic.Int64 // of their resources
	Made      atomic.Int64 // made in advance and not handed out
	Collected atomic.Int64 // released because of the collector
	Queued    atomic.Int64 // releases that wait for Drain or for a thread
	Sealed    atomic.Int64 // owners that sealed batches ever had
	Errors    atomic.Int64 // errors of Release that no Close has returned
}

// A Releaser decides where the resources of a spec are released.
type Releaser interface {
	// Closed takes an entry that is closed, in no Use and without children. The
	// releaser releases it now, on the calling goroutine, or queues it and returns the
	// zero Outcome.
	Closed(b *Batch, i uint32) Outcome

	// Dead takes what the collector has found, a parent whose last child a worker has
	// released, or one of Claim.Apart. It does not block. It is called by cleanups and
	// workers, outside of all bubbles of testing/synctest. If the spec queues, it is also
	// called where a stock is released, on any goroutine.
	Dead(Job)
}

// A Holder counts the resources of sealed batches, and those made in advance, of all specs that it
// is for. Open batches are not counted; they are at most Spec.Pinned bytes for each P and pool.
type Holder struct {
	account *account.Account
	owners  atomic.Int64
}

// The resources in the C heap have an account of their own, because package cmem counts them
// as well.
var (
	others  Holder
	inCHeap Holder

	openCHeap = sync.OnceFunc(func() { inCHeap.open("own, C heap", true) })
)

func init() { others.open("own", false) }

func (h *Holder) open(name string, inCHeap bool) {
	h.account = account.Process.Open(account.Options{
		Name: name, Quick: true, Declared: true, InCHeap: inCHeap,
		Live: func() (int64, int64) { return h.owners.Load(), h.account.Held() },
	})
}

// Holds returns what counts resources that are in the C heap, or those that are not.
func Holds(cHeap bool) *Holder {
	if cHeap {
		openCHeap()
		return &inCHeap
	}
	return &others
}

// Reserve counts n bytes that a resource will have, if there is room for them, and
// reports whether there is. Unreserve gives them back.
func (h *Holder) Reserve(n int64) bool {
	if !h.account.TryCharge(n) {
		return false
	}
	account.Process.Reserve(n)
	return true
}

// Unreserve takes back a Reserve.
func (h *Holder) Unreserve(n int64) {
	account.Process.Reserve(-n)
	h.account.Uncharge(n)
	if account.Process.Waiters() > 0 {
		account.Process.Wake()
	}
}

// Count adds n resources of bytes in all. n may be negative, and bytes with it.
func (k *Spec) Count(n int, bytes int64) {
	k.Counts.Owners.Add(int64(n))
	k.Counts.Bytes.Add(bytes)
	if k.Rooms {
		return
	}
	if bytes >= 0 {
		account.Process.ChargeReclaimable(bytes)
	} else {
		account.Process.UnchargeReclaimable(-bytes)
	}
	h := k.Holder
	if h == nil {
		return
	}
	h.owners.Add(int64(n))
	if bytes >= 0 {
		h.account.Charge(bytes)
	} else {
		h.account.Uncharge(-bytes)
	}
}

// Declared returns how many bytes of declared sizes a batch may have: Pinned, or less if package pace
// has found that resources are larger than that.
func (k *Spec) Declared() int64 {
	if k.Holder == nil {
		return k.Pinned // sizes are exact
	}
	return k.Pinned / account.Process.Scale()
}

// Failed counts an error, if err is one, that concerns count entries, and tells
// OnReleaseError.
func (k *Spec) Failed(count int, err error) {
	if err == nil {
		return
	}
	k.Counts.Errors.Add(1)
	if k.OnReleaseError == nil {
		return
	}
	m := gcwatch.EnterSection()
	defer m.Leave()
	k.OnReleaseError(count, err)
}

// PanicMisuse panics with a [cheap.MisuseError] of an operation of the spec.
func (k *Spec) PanicMisuse(op, format string, args ...any) {
	PanicMisuse(k.Name, op, format, args...)
}

// PanicMisuse panics with a [cheap.MisuseError].
func PanicMisuse(name, op, format string, args ...any) {
	panic(&cheap.MisuseError{Op: name + "." + op, Reason: fmt.Sprintf(format, args...)})
}
