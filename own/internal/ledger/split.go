package ledger

import (
	"slices"
	"sync"

	"github.com/cheapgo/cheap/internal/cleanup"
)

// One live owner keeps its batch, and so delays the release of what the others forgot.
// A batch that outlives collections may be split. Its ring of tokens is cut, and each
// token is registered. From then on an owner delays only those that share its token.
//
//	        the first token is registered        each token is registered
//
//	              +---------------+
//	              v               |
//	owners --> token --> token --> token          token     token     token
//	              |        |        |      -->      |         |         |
//	              v        v        v               v         v         v
//	            [    the ledger      ]            [      the ledger      ]
//
// Most batches die as a whole, and pay for one registration only. What is left of a
// population in which some die early and some live long is registered in fours. A
// population that lives as a whole is not split, but for a few batches as a probe,
// because that would release nothing. See mix.
type parts struct {
	bits  []uint64 // two for each token, see dead and claimed
	left  uint32   // tokens not found
	heard bool     // of a token since the batch was split
}

func newParts(tokens uint32) *parts {
	return &parts{bits: make([]uint64, (tokens+31)/32), left: tokens}
}

// dead reports whether the collector has found a token, and claimed whether then its open
// entries were claimed.
func (p *parts) dead(j uint32) bool    { return p.bits[j/32]>>(j%32)&1 != 0 }
func (p *parts) claimed(j uint32) bool { return p.bits[j/32]>>(j%32)>>32&1 != 0 }

func (p *parts) setDead(j uint32)    { p.bits[j/32] |= 1 << (j % 32) }
func (p *parts) setClaimed(j uint32) { p.bits[j/32] |= 1 << 32 << (j % 32) }

// Lost is set in what a sink gets for a token that the collector has found, with the
// number of the token, and in [All].
const Lost = 1 << 31

// watched is the function of a token that is registered, of the number j: the token was
// found unreachable if alive is nil, and else has outlived some collections. It reports
// whether it is to be asked again after some more. All other functions of package cleanup
// wait for it. It mostly runs on one of the few goroutines on which the runtime calls
// cleanups, which os.File needs as well. So it does not block.
func (l *Ledger) watched(j uint16, alive *Token) (again bool) {
	if alive == nil {
		l.lost(uint32(j))
		return false
	}
	return l.outlived(alive)
}

// lost takes what the owners of a token leave behind, or of a batch that is not split.
func (l *Ledger) lost(j uint32) {
	gone, _ := l.Gone()
	job := uint32(All)
	l.mu.Lock()
	if p := l.parts; p == nil {
		l.unreachable = true
		if uint32(gone) == l.n { // each entry is closed and released
			l.dropPages()
			l.mu.Unlock()
			return
		}
		l.dead = true
	} else {
		job = Lost | j
		p.setDead(j)
		l.heard()
		p.left--
		switch {
		case l.Share != FineShare:
		case p.left > 0:
			l.Kind.mix.add(0, -1)
		default:
			l.Kind.mix.add(-int(l.tokens()), -1)
		}
		first, next := l.entriesOf(j)
		open := false
		for i := first; i < next && !open; i++ {
			open = l.State(i)&Open != 0
		}
		l.unreachable = p.left == 0
		if !open {
			l.claimed(j)
			l.dropPages()
			l.mu.Unlock()
			return
		}
	}
	l.mu.Unlock()
	l.Kind.Sink.Dead(l, job)
}

// heard adds the tokens of a batch that was split to what the pool knows, when it is
// first heard of one of them. The caller holds l.mu.
func (l *Ledger) heard() {
	if p := l.parts; !p.heard && l.Share == FineShare {
		l.Kind.mix.add(int(l.tokens()), int(p.left))
		p.heard = true
	}
}

// entriesOf returns the entries in use of the token j: from first on, and below next.
func (l *Ledger) entriesOf(j uint32) (first, next uint32) {
	return j << l.Share, min((j+1)<<l.Share, l.n)
}

// found reports whether the collector has found the owner of an entry. The caller holds
// l.mu.
func (l *Ledger) found(i uint32) bool {
	return l.dead || l.parts != nil && l.parts.dead(i>>l.Share)
}

// claimed records that the open entries of a token are claimed, and drops the page of
// the token if nothing needs it any more. The caller holds l.mu.
func (l *Ledger) claimed(j uint32) {
	p := l.parts
	p.setClaimed(j)
	// An entry that is closed, and waits in a queue, or for a child, is needed.
	if l.Kind.Queues || l.pageShift == wholeShift {
		return
	}
	page := j << l.Share >> l.pageShift
	first, next := page<<l.pageShift, min((page+1)<<l.pageShift, l.n)
	for i := first; i < next; i++ {
		if !p.claimed(i>>l.Share) || l.State(i)&kinBit != 0 {
			return
		}
	}
	l.dropPage(page)
}

// outlived is told that a token, which is registered, has outlived some collections. It
// reports whether it wants to hear that again.
func (l *Ledger) outlived(t *Token) (again bool) {
	m := &l.Kind.mix
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.parts != nil {
		l.heard()
		return false
	}
	gone, _ := l.Gone()
	if l.dead || uint32(gone) == l.n {
		return false
	}
	if l.old.CompareAndSwap(false, true) {
		m.outlived()
	}
	if t.next == nil {
		return false
	}
	// Where most owners are closed, their tokens are dead, and their pages are not needed.
	if !l.Probe && uint32(gone) < l.n/2 && !m.pays() {
		return true
	}
	l.parts = newParts(l.tokens())
	var buf [64]*Token
	ring := buf[:0]
	for next := t.next; next != t; {
		cut := next
		next, cut.next = cut.next, nil
		ring = append(ring, cut)
	}
	t.next = nil
	ring = ring[:l.tokens()-1] // those of unused entries are not counted as dead owners
	for page := (l.n-1)>>l.pageShift + 1; int(page) < len(l.pages); page++ {
		l.dropPage(page)
	}
	// To register an object, the runtime goes past those with lower addresses that are
	// registered in the same span. Tokens have mostly ascending addresses.
	for j, cut := range slices.Backward(ring) {
		if !Leak {
			cleanup.Watch(cut, (*Ledger).watched, l, uint16(j+1))
		}
	}
	return true // of its own entries from now on
}

// A mix is what a pool knows about the lifetimes of its owners.
type mix struct {
	mu sync.Mutex
	// The rest is under mu.

	// Batches of the recent past that have ended without outliving collections, and
	// that have outlived them. The second is known two collections later than the first.
	// So they are compared from a round of package cleanup on.
	whole, old uint32
	from       uint32

	// Batches of the recent past of which each owner was closed when they were sealed, and
	// all others.
	closed, others uint32

	// Of the batches that were split and have a token that lives, and of which something
	// was heard since: their tokens, and those of them that live.
	tokens, living int
}

// Share of a batch, the binary logarithm of the number of owners that share a token.
const (
	FineShare   = 2
	coarseShare = pageShift
)

const (
	fewBatches  = 32
	mostBatches = 256
	fewTokens   = 16
	settled     = 4 // rounds
	smallBatch  = 128
)

// ended is told of a batch that has not outlived collections.
func (m *mix) ended() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.whole++
	m.fade()
}

// sealed is told of a batch that is sealed, and whether all its owners are closed.
func (m *mix) sealed(closed bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if closed {
		m.closed++
	} else {
		m.others++
	}
	for m.closed+m.others > mostBatches {
		m.closed /= 2
		m.others /= 2
	}
}

// outlived is told of a batch that has outlived collections.
func (m *mix) outlived() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.old++
	m.fade()
}

func (m *mix) fade() {
	if m.from == 0 {
		m.from = max(cleanup.Round()+settled, 1)
	}
	for m.whole+m.old > mostBatches {
		m.whole /= 2
		m.old /= 2
	}
}

// add is told of a change of the tokens of batches that were split.
func (m *mix) add(tokens, living int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.tokens += tokens
	m.living += living
}

// rare reports whether few batches outlive collections. The caller holds m.mu.
func (m *mix) rare() bool {
	n := m.whole + m.old
	return n >= fewBatches && m.old <= n/8 && int32(cleanup.Round()-m.from) >= 0
}

// pays reports whether batches that outlive collections should be split: because they
// are few, or because a quarter of the tokens of others that were split are dead.
func (m *mix) pays() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.rare() || m.tokens >= fewTokens && m.living <= m.tokens/4*3
}

// Share returns how many owners of the next batch, of n owners, share a token, as a
// binary logarithm. Where owners are closed nearly always, one token is enough: then the
// batch is not registered at all.
func (k *Kind) Share(n uint32) uint8 {
	m := &k.mix
	m.mu.Lock()
	defer m.mu.Unlock()
	switch all := m.closed + m.others; {
	case all >= fewBatches && m.others <= all/16:
		return OneToken
	case n > smallBatch && m.rare():
		return coarseShare
	}
	return FineShare
}
