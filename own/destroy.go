package own

import (
	"cmp"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// Destroy ends the pool: it releases what is left, the children of that in other
// pools first, and returns a [DestroyError] if owners were never closed, or if
// something is not released yet. For that it waits, at most as long as wait
// says: for running Uses, and for children and releases that are under way.
// What is in Use still is released when its last Use returns.
//
// In a pool with Options.Drain everything is queued, and Drain works on.
//
// After that, Own and Make return [ErrDestroyed], and so does a second Destroy.
// Owners may still be closed, which does nothing. The resources that a pool made
// ahead do not count as never closed. What release functions panic with reaches
// the caller, after everything has been tried; of several panics, the first.
func (p *Pool) Destroy(wait time.Duration) error {
	deadline := time.Now().Add(wait)
	p.mu.Lock()
	if p.destroyed {
		p.mu.Unlock()
		return ErrDestroyed
	}
	p.destroyed = true
	p.mu.Unlock()

	d := destruction{seen: map[*ledger]bool{}}
	var mine, stock []*ledger
	all := p.all()
	end(all)
	for _, s := range all {
		s.mu.Lock()
		s.seal()
		mine = s.sealed(mine)
		stock = append(stock, s.spare...)
		s.spare = nil
		s.mu.Unlock()
	}
	for _, l := range stock {
		p.unstock(l)
		d.do(l.releaseStock)
	}
	e := &DestroyError{Pool: p.name}
	origins := map[*origin]int{}
	for _, l := range mine {
		e.NeverClosed += l.unclosed(origins)
	}
	d.todo = append(d.todo, mine...)
	d.run()
	if d.panicked != nil {
		panic(d.panicked)
	}

	for last := pause(0); ; last = pause(last) {
		e.InUse, e.Waiting, e.Releasing = left(mine)
		e.Queued = int(p.drained.Load())
		inUse, _, releasing := left(d.done)
		if inUse+releasing == 0 || !time.Now().Before(deadline) {
			break
		}
	}
	if e.NeverClosed+e.InUse+e.Waiting+e.Releasing+e.Queued == 0 {
		return nil
	}
	for o, n := range origins {
		e.Origins = append(e.Origins, Origin{Count: n, Stack: o.String()})
	}
	sortOrigins(e.Origins)
	return e
}

// sortOrigins puts the most frequent first.
func sortOrigins(origins []Origin) {
	slices.SortFunc(origins, func(a, b Origin) int {
		return cmp.Or(b.Count-a.Count, strings.Compare(a.Stack, b.Stack))
	})
}

// sealed appends the shard's sealed batches. The caller holds s.mu.
func (s *shard) sealed(list []*ledger) []*ledger {
	for l := s.ledgers; l != nil; l = l.next {
		list = append(list, l)
	}
	return list
}

// unclosed counts entries that nobody has closed, nor the collector found, and
// where they came from.
func (l *ledger) unclosed(origins map[*origin]int) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.dead || l.stock {
		return 0
	}
	for i := range l.n {
		if l.state(i)&stateOpen == 0 {
			continue
		}
		n++
		if l.origins != nil {
			origins[l.origins[i]]++
		}
	}
	return n
}

// left adds up what is not released of some batches. What waits for a Drain is
// in none of the numbers.
func left(ledgers []*ledger) (inUse, waiting, releasing int) {
	pools := map[*Pool]bool{}
	for _, l := range ledgers {
		pools[l.pool] = true
		releasing += int(l.n) - int(l.gone.Load()>>goneOwners&goneMask)
		for i := range l.n {
			if s := l.state(i); s&usesMask != 0 {
				inUse++
			} else if s&stateKin != 0 && l.family(i).waits() {
				waiting++
			}
		}
	}
	for p := range pools {
		releasing -= int(p.drained.Load())
	}
	return inUse, waiting, max(releasing-inUse-waiting, 0)
}

// A destruction closes batches and the batches of their children.
type destruction struct {
	todo, done []*ledger
	seen       map[*ledger]bool
	panicked   any
}

// do calls f, and remembers its panic.
func (d *destruction) do(f func()) {
	defer func() {
		if v := recover(); v != nil && d.panicked == nil {
			d.panicked = v
		}
	}()
	f()
}

// run closes everything on the list. Children of what it closes are put on the
// list; they release their parents as they go, so there is no recursion.
func (d *destruction) run() {
	for len(d.todo) > 0 {
		l := d.todo[len(d.todo)-1]
		d.todo = d.todo[:len(d.todo)-1]
		if d.seen[l] {
			continue // a child in the pool itself
		}
		d.seen[l] = true
		d.done = append(d.done, l)
		d.close(l)
	}
}

// close closes the entries of a batch, but for those that the collector has
// found, and the children of all. It releases what can be released now in one
// call.
func (d *destruction) close(l *ledger) {
	var words []uintptr
	k, bytes := 0, int64(0)
	w := uint32(l.pool.words)
	for i := range l.n {
		s, ours := l.shut(i)
		ours = ours && s&usesMask == 0 // or the last Use goes on
		if s&stateKin != 0 {
			f := l.family(i)
			ours = ours && f.close()
			d.children(f)
		}
		switch {
		case !ours:
		case l.pool.drain && !l.pool.draining():
			l.pool.enqueue(job{ledger: l, entry: i})
		case l.pool.carver != nil:
			l.giveBack(i)
		default:
			words = append(words, l.words[i*w:(i+1)*w]...)
			k++
			bytes += sizeOf(s)
		}
	}
	if k > 0 {
		d.do(func() {
			if parent, i := l.releaseAll(words, k, bytes); parent != nil {
				parent.dispose(i)
			}
		})
	}
}

// shut clears an entry's stateOpen, and reports whether it was set and the entry
// is the caller's now.
func (l *ledger) shut(i uint32) (state uint64, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for {
		s := l.state(i)
		if s&stateOpen == 0 || l.dead {
			return s, false
		}
		if atomic.CompareAndSwapUint64(&l.states[i], s, s&^stateOpen) {
			return s, true
		}
	}
}

// children puts the batches of a family on the list.
func (d *destruction) children(f *family) {
	for _, s := range f.places() {
		s.mu.Lock()
		s.seal()
		d.todo = s.sealed(d.todo)
		s.mu.Unlock()
	}
}
