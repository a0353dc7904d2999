// Package intake takes resources in: it finds the batch and the entry for each, and
// seals the batches.
//
// A pool has one [Intake]:
//
//	Put, Next, Carve    the fast paths: they write an entry through the window of the
//	                    goroutine's P (package window), and take no lock
//	Own, Make,          the slow paths: they lock a shard (shard.go), seal its batch when it
//	CarveSlow           is full, and begin the next
//	sealOpened          seals batches that do not fill up, after a collection (seal.go)
package intake

import (
	"cmp"
	"errors"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/cheapgo/cheap/own/internal/batch"
)

// An Intake is the way into a pool. Its methods may be called from any goroutine.
type Intake struct {
	spec      *batch.Spec
	construct func(resources []uintptr) (int, error)
	before    func()        // called before construct, or nil
	parent    *batch.Family // of all resources, or nil

	owning places // for Own
	making places // for Make; none without construct

	children  batch.List // batches of children
	mu        sync.Mutex
	families  map[*batch.Family]*shard // under mu; shards of children, see lockFamily
	last      atomic.Pointer[shard]    // the one of families that had a child last, or nil; written under its lock
	destroyed bool                     // under mu
	ended     atomic.Bool              // is destroyed, for Refuses
}

// ErrPoolClosed is returned after End.
var ErrPoolClosed = errors.New("cheap: own: the pool is closed")

// ErrQueueFull is returned while Spec.MaxQueued releases are queued.
var ErrQueueFull = errors.New("cheap: own: too many releases are queued; call Drain")

// Init makes the intake of a spec. construct and parent may be nil. No other
// goroutine may know the Intake before Init returns.
func (in *Intake) Init(k *batch.Spec, construct func([]uintptr) (int, error), parent *batch.Family) {
	in.spec, in.construct, in.parent = k, construct, parent
	in.owning.init(in, false)
	if construct != nil {
		in.making.init(in, true)
	}
}

// After BeforeConstruct, f is called before each call of the constructor, on the same
// goroutine. No other goroutine may know the Intake before BeforeConstruct returns.
func (in *Intake) BeforeConstruct(f func()) { in.before = f }

// Put writes a resource of size bytes, more than 0, to the next
// entry of the P's window. It returns nil if the caller must call Own.
func (in *Intake) Put(resource uintptr, size int64) (t *batch.Sentinel, i uint32) {
	return in.owning.Put(resource, size)
}

// Makes reports whether there is a constructor.
func (in *Intake) Makes() bool { return in.construct != nil }

// Next takes the next entry of the stock. It returns nil if the caller must call
// Make.
func (in *Intake) Next() (t *batch.Sentinel, i uint32) {
	return in.making.Next(in.spec.Size)
}

// Own is the slow path of Put. r owns nothing, and size is not negative. If the
// resource is a child, f is its parent's family. If state is not nil, it is the
// resource's own state. Own reports whether it began a batch.
func (in *Intake) Own(r *batch.Ref, f *batch.Family, resource uintptr, size int64, state any) (began bool, err error) {
	if in.full() {
		return false, ErrQueueFull
	}
	return in.OwnReserved(r, f, resource, size, state)
}

// OwnReserved is Own that does not refuse a resource because of Spec.MaxQueued.
func (in *Intake) OwnReserved(r *batch.Ref, f *batch.Family, resource uintptr, size int64, state any) (began bool, err error) {
	f = cmp.Or(f, in.parent)
	size = min(size, batch.MaxSize)
	alone := size >= in.spec.Declared() || in.spec.Batch == 1
	var b *batch.Batch
	var t *batch.Sentinel
	if alone { // before the lock: what allocates may have to help the collector, or to wait for it
		b = batch.New(in.spec, nil, f, 1, in.spec.Share(1, size))
		t = b.NewSentinels(nil, nil)[0]
	}
	var s *shard
	switch {
	case f == nil || alone && in.parent == nil:
		s = in.owning.lock()
	case alone: // without a window, because a pool may be for one parent
		s = in.owning.all()[0]
		s.mu.Lock()
	default:
		s = in.lockFamily(f)
	}
	defer s.unlock()
	if s.destroyed {
		return false, ErrPoolClosed
	}
	if in.spec.Checked() {
		in.spec.Take("Own", resource)
	}
	// Nothing fails after Join. To undo Join could release the parent, here.
	if f != nil && !f.Join() {
		in.spec.Leave(resource)
		return false, batch.ErrClosed
	}
	if alone {
		b.Home, b.Probe = s, s.probe(1)
		s.alone(b, t, resource, size, give(b, 0, state))
		*r = batch.RefTo(t, 0)
		return true, nil
	}
	if !s.setLimits(size) {
		s.seal()
		s.begin(s.newBatch(f, s.grow), nil)
		s.setLimits(size)
		began = true
	}
	s.put(r, resource, size, give(s.open, s.N, state))
	return began, nil
}

// give gives the next entry a state of its own, if it has one, and returns its flags.
func give(b *batch.Batch, i uint32, state any) (flags uint64) {
	if state == nil {
		return 0
	}
	return b.Give(i, state)
}

// full reports whether as many releases are queued as Spec.MaxQueued allows.
func (in *Intake) full() bool {
	k := in.spec
	return k.MaxQueued != 0 && k.Counts.Queued.Load() >= k.MaxQueued
}

// Ended reports whether End was called.
func (in *Intake) Ended() bool { return in.ended.Load() }

// Refuses returns why Own would take no resource now, or nil.
func (in *Intake) Refuses() error {
	switch {
	case in.Ended():
		return ErrPoolClosed
	case in.full():
		return ErrQueueFull
	}
	return nil
}

// lockFamily returns the shard for the children of a family, locked.
func (in *Intake) lockFamily(f *batch.Family) *shard {
	if s := in.last.Load(); s != nil && s.family == f {
		s.mu.Lock()
		if !s.removed {
			s.sealAfterGC() // and remove it
			return s
		}
		s.mu.Unlock()
	}
	for {
		in.mu.Lock()
		s := in.families[f]
		if s == nil {
			s = newShard(in, firstChildren)
			s.family, s.list = f, &in.children
			if in.families == nil {
				in.families = map[*batch.Family]*shard{}
			}
			in.families[f] = s
		}
		in.mu.Unlock()
		s.mu.Lock()
		if !s.removed {
			in.last.Store(s)
			s.sealAfterGC() // and remove it
			return s
		}
		s.mu.Unlock()
	}
}

// remove takes a family's shard out of the map, where it keeps the family and the
// parent's batch reachable. The next child makes another one. The caller holds
// s.mu, and no batch is open.
func (s *shard) remove() {
	s.removed = true
	s.in.last.CompareAndSwap(s, nil)
	s.in.mu.Lock()
	defer s.in.mu.Unlock()
	delete(s.in.families, s.family)
	if len(s.in.families) == 0 {
		s.in.families = nil // a map does not shrink
	}
}

// End ends the intake. It returns the batches that are not ended, all sealed, and
// those made in advance. It reports whether it is the first End.
func (in *Intake) End() (batches, stock []*batch.Batch, first bool) {
	in.mu.Lock()
	first, in.destroyed = !in.destroyed, true
	in.ended.Store(true)
	in.mu.Unlock()
	if !first {
		return nil, nil, false
	}
	shards := in.shards()
	end(shards)
	for _, s := range shards {
		s.mu.Lock()
		s.seal()
		stock = append(stock, s.spare...)
		s.spare = nil
		s.mu.Unlock()
	}
	return in.Batches(), stock, true
}

// Batches returns the batches that are not ended. Before End, open ones are among
// them.
func (in *Intake) Batches() []*batch.Batch {
	batches := in.children.All(nil)
	for _, s := range in.shards() {
		batches = s.batches.All(batches)
	}
	return batches
}

// shards returns all shards. Shards are added under the same lock, and those added
// later have no entry that is older than the call.
func (in *Intake) shards() []*shard {
	in.mu.Lock()
	defer in.mu.Unlock()
	all := slices.Concat(in.owning.all(), in.making.all())
	for _, s := range in.families {
		all = append(all, s)
	}
	return all
}

// Totals returns the numbers of Counts with those of open batches. Only one
// goroutine at a time may call it. Under concurrent use the results may not be
// mutually consistent.
func (in *Intake) Totals() (live, bytes, made int64) {
	// All shards are locked at once, because sealing a batch moves numbers from a
	// shard to the spec. No other code locks two shards, and there is one call at a
	// time, so this cannot deadlock.
	shards := in.shards()
	for _, s := range shards {
		s.mu.Lock()
	}
	c := &in.spec.Counts
	live, bytes, made = c.Owners.Load(), c.Bytes.Load(), c.Made.Load()
	for _, s := range shards {
		if b := s.open; b != nil {
			gone, given := b.Gone()
			n, taken := s.inUse()
			live += n - int64(gone)
			bytes += taken - given
			if s.made > 0 { // what is handed out is taken from the stock at seal
				made -= n
				bytes -= n * in.spec.Size
			}
		}
		s.mu.Unlock()
	}
	return live, bytes, made
}
