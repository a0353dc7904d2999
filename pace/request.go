package pace

import (
	"context"
	"time"

	"github.com/cheapgo/cheap/internal/mem/account"
)

// A request has met a limit, and waits for room:
//
//  1. A collection begins after the request has come, as soon as MaxGCShare allows it, or after
//     longest.limit.
//  2. When the releases of that collection have run, the request waits up to patience.limit for
//     releases that still end. A second collection may begin meanwhile: dead owners of a batch that
//     was open when the first one began are found by the second.
//  3. If there is no room then, the request is refused; earlier if releases are queued and none ends.
//
// The first request in line is served as soon as there is room. A goroutine that releases wakes the
// requests, and each checks by itself every tick.
type request struct {
	pacer  *pacer
	n      int64
	inLine bool        // the limit is the program's
	take   func() bool // charges the bytes if there is room; or nil
	place  *waiter     // nil if no release can make room for it, or it is not in line

	asked time.Time
	want  int64 // number of the collection of step 1

	deadline time.Time // when step 2 ends; zero in step 1
	queued   int64     // in step 2: queued releases, those that wait for a Drain included
	changed  time.Time // when queued changed last

	timer *time.Timer
}

// Reclaim is called when a request of n bytes has met a limit; try counts the
// calls for one request, from 0. It waits for a collection that begins after the
// call, or for room, so that the request can be tried again, or returns the error.
func (p *pacer) Reclaim(n int64, try int, own bool) error {
	const collections, tries = 2, 8
	if try == 0 && p.state() == stopped {
		return nil // Stop has removed the limit
	}
	fits := func() bool { return n <= account.Process.Headroom() }
	switch {
	case !own && p.beyond(n):
	case try == 0 && (own || p.state() != refused), own && try < collections:
		return p.Wait(context.Background(), n, false, nil)
	case !own && try < tries: // also if another has taken the room, and there is some by now
		return p.Wait(context.Background(), n, true, fits)
	}
	return p.refusal(n, 0, !own)
}

// beyond reports whether n bytes are more than the whole limit. No collection makes room for
// them, so such a request does not wait.
func (p *pacer) beyond(n int64) bool {
	limit := p.most()
	return limit != 0 && n > limit
}

// Wait is called when a request of n bytes has met a limit. It waits until take reports
// true. inLine says that the limit is the program's: then requests are served in the order in
// which they came, but one whose time is up calls take whatever its place is. The error is that of
// ctx, or a refusal. If take is nil, Wait returns when the releases of the collection of step 1
// have run. If ctx is nil, Wait has a collection begin, and does not wait for it.
func (p *pacer) Wait(ctx context.Context, n int64, inLine bool, take func() bool) error {
	if p.state() == stopped || inLine && p.beyond(n) || !mayWait() {
		return p.lastTry(n, 0, inLine, take)
	}
	if inLine {
		defer p.wants(n)()
	}
	if p.futile() {
		return p.lastTry(n, 0, inLine, take)
	}
	if ctx == nil {
		p.demand(false) // for a later request
		return p.lastTry(n, 0, inLine, take)
	}
	r := p.newRequest(n, inLine, take)
	defer r.leave()
	for {
		if done, err := r.step(); done {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if begun, _ := p.counts(); begun <= r.want {
			p.demand(begun < r.want && time.Since(r.asked) > longest.limit)
		}
		r.sleep(ctx)
	}
}

// newRequest counts the request as waiting. It gets a place in line if inLine is set and releases
// can make room for it.
func (p *pacer) newRequest(n int64, inLine bool, take func() bool) *request {
	account.Process.AddWaiters(1)
	begun, _ := p.counts()
	r := &request{pacer: p, n: n, inLine: inLine, take: take, asked: time.Now(), want: begun + 1, timer: time.NewTimer(tick)}
	if inLine && n <= account.Process.Headroom()+account.Process.Held() { // another one would be in the way of those behind it
		r.place = p.atLimit.enter()
	}
	return r
}

// leave ends the wait.
func (r *request) leave() {
	r.timer.Stop()
	if r.place != nil {
		r.pacer.atLimit.leave(r.place)
	}
	account.Process.AddWaiters(-1)
}

// step reports whether the wait is over, and with which error.
func (r *request) step() (done bool, err error) {
	p := r.pacer
	if r.take != nil && r.place.isFirst() && r.take() {
		p.served()
		return true, nil
	}
	_, ended := p.counts()
	switch {
	case ended >= r.want && r.take == nil:
		return true, nil
	case p.state() == stopped, p.futile(): // perhaps because of the collections of other requests
		return true, p.lastTry(r.n, 0, r.inLine, r.take)
	case ended >= r.want, p.state() == refused: // it waits for caches
		return r.stepAfter(p.patience())
	}
	return false, nil
}

// stepAfter is step after the collection: step 2.
func (r *request) stepAfter(most patience) (done bool, err error) {
	p, now := r.pacer, time.Now()
	byWorkers, toDrain := account.Process.Queued.Load(), account.Process.ToDrain.Load()
	queued := byWorkers + toDrain
	if r.deadline.IsZero() {
		r.deadline, r.changed, r.queued = now.Add(most.limit), now, queued
	}
	if queued != r.queued || queued == 0 {
		r.changed, r.queued = now, queued
	}
	stuck, late := now.Sub(r.changed) > most.stuck && queued > 0, now.After(r.deadline)
	switch {
	case stuck && (p.stuck.Load() > 0 || toDrain > 0): // the program may not call Drain
		return true, p.refusal(r.n, byWorkers, r.inLine)
	case stuck && late: // the machine is busy, and the drain has not seen that no release ends
		return true, p.lastTry(r.n, byWorkers, r.inLine, r.take)
	case late:
		return true, p.lastTry(r.n, 0, r.inLine, r.take)
	}
	return false, nil
}

// sleep waits for a release, or for the place in line if it is not the first, but for a tick at most.
func (r *request) sleep(ctx context.Context) {
	next := account.Process.Wakeups()
	if !r.place.isFirst() {
		next = r.place.first
	}
	r.timer.Reset(tick)
	select {
	case <-next:
	case <-r.timer.C:
	case <-ctx.Done():
	}
}

// lastTry ends a wait: it calls take once more. stuck is the number of releases that
// are queued while none ends.
func (p *pacer) lastTry(n, stuck int64, inLine bool, take func() bool) error {
	switch {
	case take == nil && p.state() == stopped:
		return nil // Stop has removed the limit
	case take != nil && take():
		p.served()
		return nil
	}
	return p.refusal(n, stuck, inLine)
}

// served notes that a request at a limit was served.
func (p *pacer) served() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.futileCount = 0
}

// demand has a collection begin for a request at a limit. MaxGCShare may delay it,
// unless regardless is set.
func (p *pacer) demand(regardless bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.to(limitHit)
	if p.state() == due {
		p.demanded = true
		p.launch(regardless)
	}
}

// futile reports whether a collection at a limit would free nothing: the last mostFutile
// freed nothing, no reclaimable bytes were added since, and futileUntil has not passed. A
// program that meets a heap's limit all the time, and makes room by itself, must
// not collect each time. What caches free while they are asked is waited for.
func (p *pacer) futile() bool {
	if p.state() != refused {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.shortage.need > 0 && hope() {
		return false
	}
	if _, ever := account.Process.Reclaimable(); ever == p.collector.futileEver && time.Now().Before(p.collector.futileUntil) {
		return true
	}
	p.to(resumed)
	return false
}
