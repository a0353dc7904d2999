// Package giveback decides when malloc gives free memory back to the system.
//
// glibc gives the end of an arena back as soon as 128 KiB to 64 MiB of it are free, and takes it again for the
// next block: a server of images spent two fifths of its processor time on these page faults. So while the
// goroutine of this package runs (giver.go), malloc keeps what is freed, and the goroutine gives back what was
// free for a second. Package pace gives memory back earlier, when its limit is near.
package giveback

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/cheapgo/cheap/internal/mem/account"
	"github.com/cheapgo/cheap/internal/watch/gcwatch"
	"github.com/cheapgo/cheap/internal/watch/procfs"
)

const (
	// keepMost is how much malloc keeps in each arena at most, and keepFrom the least limit with which it keeps
	// anything: below that an eighth of the limit is little more than malloc's own threshold.
	keepMost, keepFrom = 256 << 20, 256 << 20

	// keepPart is the part of a limit that it keeps while there is room, or half of that if nobody says whether there is.
	keepPart = 8

	// roomFor is how long there must be room before malloc keeps more.
	roomFor = time.Second
)

// anonymous returns the resident bytes of the process that are not of files, 0 if that is not known. Tests replace it.
var anonymous = procfs.Anonymous

// Trims counts how often malloc gave memory back, and Trimmed by how many bytes the resident memory was smaller
// after that.
var Trims, Trimmed atomic.Int64

// Trim has malloc give memory back, and returns how many bytes that were. There is a malloc.
func Trim() (returned int64, took time.Duration) {
	begin, before := time.Now(), anonymous()
	account.Process.Malloc().Trim()
	took = time.Since(begin)
	returned = max(before-anonymous(), 0)
	Trims.Add(1)
	Trimmed.Add(returned)
	return returned, took
}

// A Use is a time in which the goroutine may run. There may be several at a time. Its methods may be called from
// any goroutine.
type Use struct {
	always bool  // package pace is not started: the goroutine runs although no account counts anything
	limit  int64 // of the memory of the process, 0 if there is none; under all.mu, as the rest
	room   bool  // see SetRoom
	tight  time.Time
}

// all is what the Uses share.
var all struct {
	mu    sync.Mutex
	uses  map[*Use]bool
	over  chan struct{} // closed when the goroutine is to end; nil if it does not run
	ended chan struct{} // closed when the goroutine that began last has ended

	want    atomic.Int64 // how much malloc is to keep; written under mu
	kept    atomic.Int64 // what malloc was told; written under telling
	telling sync.Mutex   // held in Tell

	giving sync.Mutex // held by the goroutine: another one may begin before the last one has ended
	giver  giver      // under giving
}

// Begin begins a Use, in a process with a limit of so many bytes, or 0. If always is set, the Use does not
// need [Use.Wake].
func Begin(limit int64, always bool) *Use {
	u := &Use{always: always}
	all.mu.Lock()
	if all.uses == nil {
		all.uses = map[*Use]bool{}
	}
	all.uses[u] = true
	all.mu.Unlock()
	u.SetLimit(limit)
	if always {
		u.Wake()
	}
	Tell()
	return u
}

// SetLimit says that the limit is another one. As after SetRoom and Wake, the caller calls [Tell] some time later,
// when it holds no lock.
func (u *Use) SetLimit(limit int64) {
	all.mu.Lock()
	defer all.mu.Unlock()
	u.limit = limit
	keep()
}

// SetRoom says whether there is room under the limit: without it, what malloc keeps in one arena is missing in
// another one. It may be called often: malloc is to keep less at once, and more after there was room for a second.
func (u *Use) SetRoom(yes bool) {
	all.mu.Lock()
	defer all.mu.Unlock()
	if !yes {
		u.tight = time.Now()
	}
	if now := yes && (u.room || time.Since(u.tight) > roomFor); now != u.room {
		u.room = now
		keep()
	}
}

// End ends the Use, and waits for the goroutine if it was the last one.
func (u *Use) End() {
	all.mu.Lock()
	delete(all.uses, u)
	last := len(all.uses) == 0
	if last && all.over != nil {
		close(all.over)
		all.over = nil
	}
	keep()
	ended := all.ended
	all.mu.Unlock()
	Tell()
	if last && ended != nil {
		<-ended
	}
}

// Tell tells malloc how much to keep, if that has changed. That takes a lock of malloc, and waits while malloc gives
// memory back. If another goroutine tells malloc already, Tell returns, and that one tells it this as well.
func Tell() {
	for all.want.Load() != all.kept.Load() && all.telling.TryLock() {
		want := all.want.Load()
		all.kept.Store(want)
		if k, ok := account.Process.Malloc().(account.Keeper); ok {
			k.Keep(want)
		}
		all.telling.Unlock()
	}
}

// keep sets how much malloc is to keep: 0 while the goroutine does not run. The caller holds all.mu.
func keep() {
	account.Process.SetGivesBack(all.over != nil)
	bytes := int64(0)
	if all.over != nil {
		bytes = keepMost
	}
	for u := range all.uses {
		switch {
		case u.limit >= keepFrom && u.always:
			bytes = min(bytes, u.limit/keepPart/2)
		case u.limit >= keepFrom && u.room:
			bytes = min(bytes, u.limit/keepPart)
		case u.limit != 0:
			bytes = 0
		}
	}
	all.want.Store(bytes)
}

// Wake starts the goroutine if it does not run. Package pace calls it when Least bytes or more are counted.
func (u *Use) Wake() {
	all.mu.Lock()
	defer all.mu.Unlock()
	if all.over != nil || !all.uses[u] || account.Process.Malloc() == nil || anonymous() == 0 {
		return
	}
	if gcwatch.InBubble() {
		return // the goroutine would belong to it
	}
	over, ended := make(chan struct{}), make(chan struct{})
	all.over, all.ended = over, ended
	keep()
	go func() {
		defer close(ended)
		give(over)
	}()
}
