package own

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/cheapgo/cheap/own/internal/batch"
	"github.com/cheapgo/cheap/own/internal/intake"
	"github.com/cheapgo/cheap/own/internal/worker"
)

// noWait is a context that is done.
var noWait = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

// Close is [Pool.CloseWait] that releases what it can, and does not wait.
func (p *Pool) Close() error { return p.close("Close", noWait) }

// CloseWait ends the pool and releases its resources, after their children in other
// pools. It waits, until ctx is done, for calls of Use and for releases that are
// under way. A resource that is still in Use then is released when its last Use
// returns.
//
// CloseWait returns a [CloseError] if owners were never closed, if resources are not
// released yet, or if a [Room] had not ended. The bytes of such a Room are given back.
// Resources made in advance do not count as never closed. A second Close or CloseWait returns
// [ErrPoolClosed], and so do Own and Make from now on. Close of an owner does nothing from
// now on.
//
// In a pool with a [Queue] all releases are queued, and [Queue.Drain] may
// still be called. In a pool with [Thread] they are queued, and CloseWait
// waits for them, until ctx is done.
//
// If release functions panic, CloseWait first tries all other releases and then
// panics with the first value. If a release function ends its goroutine, CloseWait
// first tries all other releases.
func (p *Pool) CloseWait(ctx context.Context) error { return p.close("CloseWait", ctx) }

func (p *Pool) close(op string, ctx context.Context) error {
	p.mustBeMade(op)
	mine, stock, first := p.intake.End()
	if !first {
		return ErrPoolClosed
	}
	defer p.noteClosed()
	e := &CloseError{Pool: p.spec.Name}
	p.closeRooms(ctx, e)
	var unclosed batch.Unclosed
	for _, b := range mine {
		unclosed.Add(b)
	}
	e.NeverClosed = unclosed.N
	d := destruction{seen: map[*batch.Batch]bool{}, stock: stock, todo: slices.Clone(mine)}
	d.run()
	if d.panicked != nil {
		panic(d.panicked)
	}
	for _, b := range d.done {
		b.Announce()
	}
	err := await(ctx, batch.Changed.Listen, func() bool {
		d.done = slices.DeleteFunc(d.done, (*batch.Batch).Ended)
		inUse, _, releasing := left(d.done)
		return inUse+releasing+onThreads(p, d.done) == 0
	})
	if ctx != noWait {
		e.cause = err
	}
	// Counted after the loop has ended, so what has been released is in no count.
	e.InUse, e.Waiting, e.Releasing = left(mine)
	e.Queued = p.spec.Counts.Queued.Load()
	if e.NeverClosed+e.InUse+e.Waiting+e.Releasing+e.Queued+e.Rooms == 0 {
		return nil
	}
	for o, n := range unclosed.Origins {
		e.Origins = append(e.Origins, Origin{Count: n, Stack: o.String()})
	}
	sortOrigins(e.Origins)
	slices.Sort(unclosed.Labels)
	e.Labels = slices.Compact(unclosed.Labels)
	return e
}

// sortOrigins sorts the most frequent origins first.
func sortOrigins(origins []Origin) {
	slices.SortFunc(origins, func(a, b Origin) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), strings.Compare(a.Stack, b.Stack))
	})
}

// onThreads returns how many entries are queued that need no call of Drain: those of p
// and of batches in other pools.
func onThreads(p *Pool, batches []*batch.Batch) (n int64) {
	specs := map[*batch.Spec]bool{&p.spec: true}
	for _, b := range batches {
		specs[b.Spec] = true
	}
	for k := range specs {
		if q, ok := k.Releaser.(*worker.Queue); ok && q.Thread {
			n += k.Counts.Queued.Load()
		}
	}
	return n
}

// left adds up the entries of batches that are not released. Entries that wait
// for Drain or Thread are in none of the three numbers.
func left(batches []*batch.Batch) (inUse, waiting, releasing int64) {
	inUse, waiting, releasing = batch.Left(batches)
	specs := map[*batch.Spec]bool{}
	for _, b := range batches {
		if !specs[b.Spec] {
			specs[b.Spec] = true
			releasing -= b.Spec.Counts.Queued.Load()
		}
	}
	return inUse, waiting, max(releasing, 0)
}

// A destruction closes batches and the batches of their children.
type destruction struct {
	stock      []*batch.Batch // made in advance
	todo, done []*batch.Batch
	seen       map[*batch.Batch]bool
	panicked   any

	// How far close is with a batch: its next entry, and those to be released.
	next   uint32
	picked batch.Picked // of no batch between two batches
}

// do calls f, recovers its panic, and keeps the first one. If f ends the
// goroutine, do finishes the destruction before that.
func (d *destruction) do(f func()) {
	returned := false
	defer func() {
		if returned {
			return
		}
		if v := recover(); v == nil {
			d.run()
		} else if d.panicked == nil {
			d.panicked = v
		}
	}()
	f()
	returned = true
}

// run closes all batches on the list. close adds the batches of children to the
// list. The last child that is released releases its parent, so there is no
// recursion.
func (d *destruction) run() {
	if d.picked.Batch != nil {
		d.close() // a release function has ended the goroutine
	}
	for len(d.stock) > 0 {
		b := d.stock[len(d.stock)-1]
		d.stock = d.stock[:len(d.stock)-1]
		d.do(b.ReleaseStock)
	}
	for len(d.todo) > 0 {
		b := d.todo[len(d.todo)-1]
		d.todo = d.todo[:len(d.todo)-1]
		if d.seen[b] {
			continue // a batch of children in the pool itself is on the list twice
		}
		d.seen[b] = true
		d.done = append(d.done, b)
		d.next, d.picked = 0, batch.Pick(b)
		d.close()
	}
}

// close closes the entries of a batch that the collector has not found, and puts
// the children of all entries on the list. Entries that can be released now are
// released in one call, or passed to the pool's queue.
func (d *destruction) close() {
	b := d.picked.Batch
	for d.next < b.Len() {
		i := d.next
		d.next++
		e, release, f := b.Shut(i)
		if f != nil {
			n := len(d.todo)
			d.todo = f.Children(d.todo)
			for _, child := range d.todo[n:] {
				intake.Retire(child)
			}
		}
		switch {
		case !release:
		case b.Spec.Queues || f.Alone():
			d.do(func() { b.Dispose(i) })
		default:
			d.picked.Add(e)
		}
	}
	picked := d.picked
	d.picked = batch.Picked{}
	d.do(func() { picked.Release().Settle(b.Spec, picked.K) })
}
