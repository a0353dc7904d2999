package intake

import (
	"maps"
	"sync"

	"github.com/cheapgo/cheap/internal/mem/percpu"
	"github.com/cheapgo/cheap/internal/watch/gcwatch"
)

// sealOrRequest seals the open batch, or requests that if its window is open on another
// P. It reports whether the batch is sealed now. The caller holds s.mu.
//
// The window of another P cannot be closed. Its limit is set to 0 instead: the next
// goroutine that makes an owner there finds no room, closes the window, and sees the
// request to seal. If there is no such goroutine until the end of the sweep, because the
// P makes no more owners or no longer runs, the world is stopped for a moment, and the
// window can be closed from any P; see Swept. If the end of the sweep is not
// reported, the next collection has stopped the world meanwhile.
func (s *shard) sealOrRequest() bool {
	if !s.closeWindow() {
		s.requestSeal()
		return false
	}
	s.seal()
	return true
}

// windowClosed seals the batch if that was requested while the window was open.
func (s *shard) windowClosed() {
	if s.requested == 0 {
		return
	}
	s.requested = 0
	s.seal()
	if len(s.spare) > 0 {
		s.sealAfterGC() // so that sealOpened sees whether the stock is idle
	}
}

// requestSeal requests that the open batch is sealed: by the next goroutine that finds no
// room in the window, or else after the next collection. The caller holds s.mu, and
// the window is open.
func (s *shard) requestSeal() {
	if s.requested != 0 {
		return
	}
	s.requests = max(s.requests+1, 1)
	s.requested = s.requests
	s.window.Narrow()
	r := sealRequest{s, s.requested}
	narrowed.mu.Lock()
	if narrowed.all == nil {
		narrowed.all = map[sealRequest]struct{}{}
	}
	narrowed.all[r] = struct{}{}
	narrowed.mu.Unlock()
	// The limit is 0 before the collection begins. So the collection has stopped
	// the world after that.
	gcwatch.Next(r.carryOut)
}

// A sealRequest is a request to seal the batch of a shard, and its number.
type sealRequest struct {
	s      *shard
	number uint32
}

// pending reports whether the window is open, and no other goroutine has closed it. The
// caller holds s.mu.
func (r sealRequest) pending() bool { return r.s.window.Opened() && r.s.requested == r.number }

// carryOut closes the window, and seals the batch. The world was stopped since requestSeal.
func (r sealRequest) carryOut() {
	narrowed.mu.Lock()
	delete(narrowed.all, r)
	narrowed.mu.Unlock()
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	if r.pending() {
		r.s.window.Fold(&r.s.Fill)
		r.s.windowClosed()
	}
}

// narrowed are the requests since the end of the last sweep, and since the last
// collection: the end of a sweep may not be reported.
var narrowed struct {
	mu  sync.Mutex
	all map[sealRequest]struct{} // under mu
}

// AfterSweep has a method of [gcwatch.Follower].
type AfterSweep struct{}

// Swept seals the requested batches whose Ps have made no owner since. It is called at the
// end of a sweep.
func (AfterSweep) Swept() {
	narrowed.mu.Lock()
	all := narrowed.all
	narrowed.all = nil
	narrowed.mu.Unlock()
	maps.DeleteFunc(all, func(r sealRequest, _ struct{}) bool {
		r.s.mu.Lock()
		defer r.s.mu.Unlock()
		return !r.pending()
	})
	if len(all) == 0 {
		return
	}
	percpu.Wait()
	for r := range all {
		r.carryOut()
	}
}
