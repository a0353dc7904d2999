package own

import (
	"context"
	"errors"
	"fmt"
	"unsafe"

	"github.com/cheapgo/cheap/internal/mem/account"
	"github.com/cheapgo/cheap/internal/watch/gcwatch"
	"github.com/cheapgo/cheap/own/internal/batch"
	"github.com/cheapgo/cheap/own/internal/worker"
)

// A Room is space under a limit for a resource that is about to be made. It is made by
// [Pool.Reserve], and ended by OwnWith of a [Handle] or [Number], in With.Room, or by Close. A
// Room may be copied, and its first end counts: after that it holds no bytes, so a Close does
// nothing, and OwnWith counts a resource as Own does. The zero Room is none.
//
// To drop a Room that has not ended is a mistake. Its bytes are given back after a
// collection, like a resource whose owner was forgotten. The rooms of a pool are a pool of
// their own, whose name has the suffix ", rooms". Options.OnCollect is called with that
// name, and [Pools] has it, with the stacks that called Reserve if its pool has a [LeakLevel].
// Stats.Rooms counts the rooms that have not ended.
type Room struct {
	pool *Pool
	size int64
	held owner // in the pool of rooms; owns nothing if there was no limit
}

// Reserve takes room for a resource of size bytes, before C allocates it, under a limit
// that package pace keeps. A size of 0 stands for Options.Size. Until the Room ends, its
// bytes count as those of a resource do. [Handle.Own] refuses nothing at a limit, because
// its resource is allocated already.
//
// At the limit Reserve waits, first come first served. It waits for a collection that
// begins after the call, and for the releases of that collection; then, while releases
// end, for up to a second more. The caller must not hold a lock that a release function takes.
// If releases are queued, also for [Queue.Drain], and none ends for 200 ms, Reserve does not
// wait any longer, and the error says so. If the limit is about what is counted, the two times
// are a tenth.
//
// The errors are
//
//   - one that wraps [cheap.ErrLimit], if there is no room by then; at once, if size is
//     larger than the whole limit; and at once after eight collections in a row that gave
//     nothing back, until more is owned or ten times the duration of a collection has passed,
//   - the error of ctx, if it is done before,
//   - [ErrQueueFull], at once, if the queue of the pool is full, see [NewQueue],
//   - [ErrPoolClosed] after the pool is closed.
//
// Reserve panics if size is negative.
func (p *Pool) Reserve(ctx context.Context, size int) (Room, error) {
	p.mustBeMade("Reserve")
	n := p.sized(size)
	if n < 0 {
		panicMisuse(p.spec.Name, "Reserve", "the size %d is negative; use 0 if it is unknown", size)
	}
	n = min(n, batch.MaxSize)
	if err := p.intake.Refuses(); err != nil {
		return Room{}, err
	}
	var held owner
	if account.Process.Limited() {
		if err := p.waitForRoom(ctx, n); err != nil {
			return Room{}, err
		}
		if err := p.hold(&held, n); err != nil {
			p.spec.Holder.Unreserve(n)
			return Room{}, err
		}
		account.Process.Notify()
	}
	return Room{pool: p, size: n, held: held}, nil
}

// waitForRoom counts n bytes when there is room for them.
func (p *Pool) waitForRoom(ctx context.Context, n int64) error {
	h := p.spec.Holder
	if !account.Process.Contended() && h.Reserve(n) {
		return nil
	}
	err := account.Process.Wait(ctx, n, true, func() bool { return h.Reserve(n) })
	if err == nil || err == ctx.Err() {
		return err
	}
	return fmt.Errorf("cheap: %s.Reserve: %d bytes: %w", p.spec.Name, n, err)
}

// hold makes o, which is in a Room, the owner of n bytes that are counted.
func (p *Pool) hold(o *owner, n int64) error {
	rooms := p.rooms.Load()
	if rooms == nil {
		if rooms = p.makeRooms(); rooms == nil {
			return ErrPoolClosed
		}
	}
	return rooms.own(o, uintptr(n), int(n)) // n was an int
}

// roomsSuffix is in the name of a pool of rooms, behind that of its pool.
const roomsSuffix = ", rooms"

// makeRooms makes the pool of rooms, whose resources are numbers of bytes. A release gives
// the bytes back, whether the Room has ended or was forgotten. It returns nil after the pool is closed.
func (p *Pool) makeRooms() *Pool {
	p.roomsMu.Lock()
	defer p.roomsMu.Unlock()
	if rooms := p.rooms.Load(); rooms != nil || p.intake.Ended() {
		return rooms
	}
	h := p.spec.Holder
	rooms := newPool(Options{
		Name:      p.spec.Name + roomsSuffix,
		Numbers:   true,
		Batch:     p.spec.Batch,
		Pinned:    int(p.spec.Pinned), // was an int
		Trace:     p.spec.Trace,
		OnCollect: p.onCollect,
		Release: func(_ any, sizes []uintptr) error {
			for _, n := range sizes {
				h.Unreserve(int64(n))
			}
			return nil
		},
	}, nil)
	rooms.spec.Rooms, rooms.spec.Holder, rooms.spec.Releaser = true, nil, worker.NewDispatcher(0, false)
	rooms.intake.Init(&rooms.spec, nil, nil)
	rooms.noteMade(nil)
	p.rooms.Store(rooms)
	return rooms
}

// closeRooms destroys the pool of rooms, after the pool's intake has ended, and adds to e
// what is left.
func (p *Pool) closeRooms(ctx context.Context, e *CloseError) {
	p.roomsMu.Lock()
	rooms := p.rooms.Load()
	p.roomsMu.Unlock()
	if rooms == nil {
		return
	}
	var left *CloseError
	if errors.As(rooms.close("CloseWait", ctx), &left) {
		e.Rooms, e.Origins = left.NeverClosed, left.Origins
	}
}

// Close gives the room back: the resource was not made. The error is always nil.
func (r Room) Close() error { return r.held.Close() }

// Discard releases a resource that has no owner, for example because Own has returned an
// error. It calls the pool's release function with Options.State. In a pool with a
// [Queue] or [Thread] the release is queued, also in a release function. Discard may
// be called after the pool is closed. It returns the error of the release function, if it calls
// that function. It panics in a pool with Options.Numbers, for which there is the
// function [Discard], and in a pool with Options.Parent.
//
// Discard is not for children: it knows neither the state of a parent nor the order of
// releases. If OwnWith has returned an error, the binding destroys the resource itself.
func (p *Pool) Discard(resource unsafe.Pointer) error {
	if uintptr(resource)-batch.LeastAddress >= p.addresses {
		p.panicNothing(uintptr(resource))
	}
	return p.discard(uintptr(resource))
}

func (p *Pool) discard(resource uintptr) error {
	if p.parent {
		panicMisuse(p.spec.Name, "Discard", "the pool has Options.Parent; destroy the resource directly")
	}
	if p.spec.Checked() {
		p.spec.Take("Discard", resource)
	}
	if p.spec.Queues {
		b := batch.New(&p.spec, nil, nil, 1, batch.OneSentinel)
		b.Put(0, resource, p.spec.Size, 0)
		p.spec.Counts.Made.Add(1)
		p.spec.Count(0, p.spec.Size)
		b.ReleaseStock()
		return nil
	}
	m := gcwatch.EnterSection()
	defer m.Leave()
	return p.spec.Release(p.spec.State, []uintptr{resource})
}
