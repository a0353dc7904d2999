package intake

import (
	"runtime"
	"slices"
	"sync/atomic"

	"github.com/cheapgo/cheap/internal/mem/percpu"
	"github.com/cheapgo/cheap/own/internal/window"
)

// places are the shards of a pool for Own, or for Make:
//
//	with windows      one shard for each P below percpu.Max, made with its window by the
//	                  first goroutine that needs it; and one without a window, for a
//	                  goroutine whose P can have none, or whose shard is locked
//	without windows   one shard at first; a goroutine that finds all of them locked makes one
//	                  more, up to GOMAXPROCS
//
// Neither a window nor a shard is ever removed or moved. If GOMAXPROCS is lowered, the
// windows of the Ps that no longer run are closed after two collections, as those of idle
// Ps. If it is raised again, these windows are used again.
type places struct {
	window.Set // changed under Intake.mu

	// shards has all shards, first the one without a window. It is replaced, under
	// Intake.mu, and its elements do not change.
	shards atomic.Pointer[[]*shard]

	in    *Intake
	makes bool // for Make
}

// init must be called before another goroutine knows the places.
func (ps *places) init(in *Intake, makes bool) {
	ps.in, ps.makes = in, makes
	ps.Init()
	ps.addShard()
}

// addWindow returns the shard of the P with a number below percpu.Max, and makes it
// and its window if there is none. The caller holds no lock.
func (ps *places) addWindow(id uint) *shard {
	ps.in.mu.Lock()
	defer ps.in.mu.Unlock()
	if w := ps.At(id); !w.None() {
		return w.Shard.(*shard) // another goroutine was faster
	}
	s := ps.addShard()
	s.window = &window.Window{Place: id, Shard: s}
	ps.Add(s.window)
	return s
}

// addShard adds a shard. The caller holds Intake.mu.
//
// Close of the pool sets Intake.destroyed under the same lock, and then ends all shards of the
// list. So a shard that is not on that list is destroyed from the beginning.
func (ps *places) addShard() *shard {
	s := newShard(ps.in, uint32(min(firstBatch, ps.in.spec.Batch)))
	s.makes = ps.makes
	shards := append(slices.Clip(ps.all()), s)
	ps.shards.Store(&shards)
	return s
}

// all returns all shards.
func (ps *places) all() []*shard {
	if shards := ps.shards.Load(); shards != nil {
		return *shards
	}
	return nil
}

// lock returns the shard of the P, locked and with its window closed. If that
// shard is locked already, lock returns another one.
func (ps *places) lock() *shard {
	if !window.Possible {
		return ps.lockAny()
	}
	if s := ps.lockOwn(); s != nil {
		return s
	}
	s := ps.all()[0]
	s.mu.Lock()
	return s
}

// lockOwn returns the shard of the P, locked and with its window closed. It
// returns nil if the P cannot have a window, or its shard is locked already.
func (ps *places) lockOwn() *shard {
	for {
		id := percpu.Here()
		if id >= percpu.Max {
			return nil
		}
		s, ok := ps.At(id).Shard.(*shard)
		if !ok {
			s = ps.addWindow(id)
		}
		if !s.mu.TryLock() {
			return nil
		}
		if s.closeWindow() {
			return s
		}
		s.mu.Unlock() // the goroutine has moved to another P meanwhile
	}
}

// lockAny is lock without windows. It begins with the same shard again and again
// for the same goroutine.
func (ps *places) lockAny() *shard {
	for {
		shards := ps.all()
		first := int(percpu.Here() % uint(len(shards)))
		for i := range shards {
			if s := shards[(first+i)%len(shards)]; s.mu.TryLock() {
				return s
			}
		}
		if len(shards) >= runtime.GOMAXPROCS(0) {
			shards[first].mu.Lock()
			return shards[first]
		}
		ps.in.mu.Lock()
		if len(ps.all()) == len(shards) { // else another goroutine was faster
			ps.addShard()
		}
		ps.in.mu.Unlock()
	}
}

// openWindow opens the shard's window, if it has one and the open batch has room. The
// caller holds s.mu, and the window is closed.
func (s *shard) openWindow() {
	if s.window != nil && s.N < s.Limit && !s.destroyed {
		s.window.Open(s.sentinels, s.Fill, s.handles)
	}
}

// closeWindow closes the shard's window if it is open and the goroutine is on its
// P. It reports whether the shard has no open window now: then the caller, which
// holds s.mu, may use the shard as one without a window. If the batch was to be
// sealed, closeWindow seals it.
func (s *shard) closeWindow() bool {
	if !s.window.Opened() {
		return true
	}
	if !s.window.Close(&s.Fill) {
		return false
	}
	s.windowClosed()
	return true
}

// end closes the windows of shards for ever.
func end(shards []*shard) {
	open := false
	for _, s := range shards {
		s.mu.Lock()
		s.destroyed = true // the window is not opened again
		if !s.closeWindow() {
			s.window.Narrow()
			open = true
		}
		s.mu.Unlock()
	}
	if !open {
		return
	}
	percpu.Wait()
	for _, s := range shards {
		s.mu.Lock()
		if s.window.Opened() {
			s.window.Fold(&s.Fill)
		}
		s.mu.Unlock()
	}
}

// inUse returns N and Taken of the open batch, from the window if that is open.
// Then they may change while they are read. The caller holds s.mu.
func (s *shard) inUse() (n, taken int64) {
	if s.window.Opened() {
		return s.window.InUse()
	}
	return int64(s.N), s.Taken
}
