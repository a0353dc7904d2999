package own

import (
	"context"
	"fmt"
	"runtime"
	"unsafe"

	"github.com/cheapgo/cheap/internal/account"
	"github.com/cheapgo/cheap/internal/goroutine"
	"github.com/cheapgo/cheap/own/internal/ledger"
)

// A Room is space under a limit for a resource that is about to be made. It is made by
// [Pool.Reserve]. One of its two methods, or OwnIn of a [Handle] or [Number], ends it.
// After that it is empty, and so is the zero Room. A Room must not be copied, and only
// one goroutine at a time may use it.
type Room struct {
	_       noCopy
	pool    *Pool
	size    int64
	counted int64 // size, or 0 if there was no limit
}

// Reserve makes sure that there is room for a resource of size bytes, before C
// allocates it, under a limit that package pace keeps. At the limit it waits, first come
// first served, for a collection that begins after the call, for its releases, and for
// up to 100 ms more. If there is no room by then, it returns an error that wraps
// [cheap.ErrLimit]. After eight collections in a row that gave nothing back, it returns
// that error at once, until more is owned or ten times the duration of a collection has
// passed. If ctx is done before, it returns the error of ctx. Reserve returns
// [ErrQueueFull] if the queue of a pool with Options.MaxQueued is full, without waiting,
// and after Destroy [ErrDestroyed].
//
// The caller must not hold a lock that a release function takes. If releases are queued
// and none ends for 20 ms, Reserve does not wait any longer, and the error says so. That
// includes releases that wait for a [Pool.Drain]. [Pool.Own]
// refuses nothing at a limit: to refuse what is allocated already saves nothing. A size
// of 0 stands for Options.Size. Reserve panics if size is negative.
//
// Room is a part of what package pace counts, until the Room ends.
func (p *Pool) Reserve(ctx context.Context, size int) (Room, error) {
	n := p.sized(size)
	if n < 0 {
		panicMisuse(p.kind.Name, "Reserve", "the size %d is negative; use 0 if it is unknown", size)
	}
	n = min(n, ledger.MaxSize)
	if err := p.intake.Refuses(); err != nil {
		return Room{}, err
	}
	counted := int64(0)
	if account.Limited() {
		if err := p.waitForRoom(ctx, n); err != nil {
			return Room{}, err
		}
		counted = n
	}
	return Room{pool: p, size: n, counted: counted}, nil
}

// waitForRoom counts n bytes when there is room for them.
func (p *Pool) waitForRoom(ctx context.Context, n int64) error {
	if account.Waiting() || !p.kind.Reserve(n) {
		err := account.Wait(ctx, n, true, func() bool { return p.kind.Reserve(n) })
		switch {
		case err == nil:
		case err == ctx.Err():
			return err
		default:
			return fmt.Errorf("cheap: %s.Reserve: %d bytes: %w", p.kind.Name, n, err)
		}
	}
	account.Notify()
	return nil
}

// Release gives the room back: the resource was not made.
func (r *Room) Release() {
	if r.counted != 0 {
		r.pool.kind.Unreserve(r.counted)
	}
	*r = Room{}
}

// Own makes o the owner of a resource for which the room was reserved; see [Pool.Own].
// With a parent that is not nil it is [Pool.OwnUnder]. It fails only after Destroy, with
// [ErrDestroyed], and if the parent is closed, with [ErrClosed]. Own panics if the room
// is empty.
func (r *Room) Own(o, parent *Owner, resource unsafe.Pointer) error {
	p := r.mustHavePool("Own")
	if uintptr(resource)-ledger.LeastAddress >= p.addresses || o == nil {
		p.panicNothing(o, uintptr(resource))
	}
	return r.own(o, parent, uintptr(resource))
}

func (r *Room) mustHavePool(op string) *Pool {
	if r.pool == nil {
		panicMisuse("own.Room", op, "the Room is empty; call Pool.Reserve for each resource")
	}
	return r.pool
}

// own ends the room.
func (r *Room) own(o, parent *Owner, resource uintptr) error {
	p, size := r.pool, r.size
	p.mustBeVacant(o, "Own")
	if parent == nil {
		if t, i := p.intake.Put(resource, size); t != nil {
			o.ref = ledger.RefTo(t, i)
			r.Release() // after the resource is counted, so that no other takes the room
			return nil
		}
	}
	return r.ownSlow(o, parent, resource)
}

// ownSlow is the slow path of own.
func (r *Room) ownSlow(o, parent *Owner, resource uintptr) error {
	p, size := r.pool, r.size
	defer r.Release()
	if parent != nil {
		return p.ownReservedUnder(o, parent, resource, size)
	}
	return p.count(p.intake.OwnReserved(&o.ref, nil, resource, size))
}

func (p *Pool) ownReservedUnder(o, parent *Owner, resource uintptr, size int64) error {
	t := parent.ref.Token()
	defer runtime.KeepAlive(t)
	f := p.familyOf(t, parent)
	if f == nil {
		return ErrClosed
	}
	return p.count(p.intake.OwnReserved(&o.ref, f, resource, size))
}

// Discard releases a resource that has no owner, by the pool's release function with
// Options.State: a resource for which Own has returned an error, for one. In a pool with
// Options.Drain or Thread the release is queued, also in a release function. Discard may
// be called after Destroy. It returns the error of the release function, if it calls
// that. It panics in a pool with Options.Numbers, for which there is the function
// [Discard], and in one with Options.Parent.
//
// Discard is not for children: it knows neither the state of a parent nor the order. If
// OwnUnder has returned an error, the binding destroys the resource itself.
func (p *Pool) Discard(resource unsafe.Pointer) error {
	if uintptr(resource)-ledger.LeastAddress >= p.addresses {
		p.panicNothing(new(Owner), uintptr(resource))
	}
	return p.discard(uintptr(resource))
}

func (p *Pool) discard(resource uintptr) error {
	if p.parent {
		panicMisuse(p.kind.Name, "Discard", "the pool has Options.Parent; destroy the resource directly")
	}
	if p.kind.Queues {
		l := ledger.New(&p.kind, nil, nil, 1, ledger.OneToken)
		l.Put(0, resource, p.kind.Size, 0)
		p.kind.Counts.Made.Add(1)
		p.kind.Count(0, p.kind.Size)
		l.ReleaseStock()
		return nil
	}
	m := goroutine.Enter()
	defer m.Leave()
	return p.kind.Release(p.kind.State, []uintptr{resource})
}
