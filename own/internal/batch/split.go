package batch

import (
	"slices"
	"sync"

	"github.com/cheapgo/cheap/internal/watch/gcwatch"
)

// One live owner keeps its batch reachable, and so delays the release of the forgotten
// resources in the batch. A batch that outlives collections may be split. Its ring of
// sentinels is cut, and each sentinel is registered. From then on an owner delays only
// those that share its sentinel.
//
//	   the first sentinel is registered             each sentinel is registered
//
//	           +------------------------+
//	           v                        |
//	owners --> sentinel --> sentinel --> sentinel       sentinel   sentinel   sentinel
//	           |            |           |         -->       |          |          |
//	           v            v           v                   v          v          v
//	         [          the batch         ]               [        the batch        ]
//
// Most batches die as a whole, and pay for one registration only. If some owners of
// a population die early and some live long, the survivors are registered in groups
// of four, or each if their resources are large; see Share. If a population lives as a
// whole, a split would release nothing: only a few batches are split, as a probe. See mix.
type parts struct {
	bits  []uint64 // two for each sentinel, see dead and claimed
	left  uint32   // sentinels not found
	heard bool     // heard was called since the batch was split
}

func newParts(sentinels uint32) *parts {
	return &parts{bits: make([]uint64, (sentinels+31)/32), left: sentinels}
}

// dead reports whether the collector has found a sentinel, and claimed whether then its open
// entries were claimed.
func (p *parts) dead(j uint32) bool    { return p.bits[j/32]>>(j%32)&1 != 0 }
func (p *parts) claimed(j uint32) bool { return p.bits[j/32]>>(j%32)>>32&1 != 0 }

func (p *parts) setDead(j uint32)    { p.bits[j/32] |= 1 << (j % 32) }
func (p *parts) setClaimed(j uint32) { p.bits[j/32] |= 1 << 32 << (j % 32) }

// heard adds the sentinels of a batch that was split to what the pool knows, when it is
// first heard of one of them. The caller holds b.mu.
func (b *Batch) heard() {
	if p := b.parts; !p.heard && b.Share <= FineShare {
		b.Spec.mix.add(int(b.sentinels()), int(p.left))
		p.heard = true
	}
}

// entriesOf returns the entries in use of the sentinel j: from first on, and below next.
func (b *Batch) entriesOf(j uint32) (first, next uint32) {
	return j << b.Share, min((j+1)<<b.Share, b.n)
}

// found reports whether the collector has found the owner of an entry. The caller holds
// b.mu.
func (b *Batch) found(i uint32) bool {
	return b.dead || b.parts != nil && b.parts.dead(i>>b.Share)
}

// claimed records that the open entries of a sentinel are claimed, and drops the page of
// the sentinel if nothing needs it any more. The caller holds b.mu.
func (b *Batch) claimed(j uint32) {
	p := b.parts
	p.setClaimed(j)
	// An entry that is closed, and waits in a queue, or for a child, is needed.
	if b.Spec.Queues || b.pageShift == wholeShift {
		return
	}
	page := j << b.Share >> b.pageShift
	first, next := page<<b.pageShift, min((page+1)<<b.pageShift, b.n)
	for i := first; i < next; i++ {
		if !p.claimed(i>>b.Share) || b.State(i)&kinBit != 0 {
			return
		}
	}
	b.dropPage(page)
}

// outlived is called when a registered sentinel has outlived some collections. It reports
// whether it is to be called again for the sentinel.
func (b *Batch) outlived(t *Sentinel) (again bool) {
	m := &b.Spec.mix
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.parts != nil {
		b.heard()
		return false
	}
	gone, _ := b.Gone()
	if b.dead || uint32(gone) == b.n {
		return false
	}
	if b.old.CompareAndSwap(false, true) {
		m.outlived()
	}
	if t.next == nil {
		return false
	}
	// Where most owners are closed, their sentinels are dead, and their pages are not needed.
	if !b.Probe && uint32(gone) < b.n/2 && !m.pays() {
		return true
	}
	b.parts = newParts(b.sentinels())
	var buf [64]*Sentinel
	ring := buf[:0]
	for next := t.next; next != t; {
		cut := next
		next, cut.next = cut.next, nil
		ring = append(ring, cut)
	}
	t.next = nil
	ring = ring[:b.sentinels()-1] // those of unused entries are not counted as dead owners
	for page := (b.n-1)>>b.pageShift + 1; int(page) < len(b.pages); page++ {
		b.dropPage(page)
	}
	// To register an object, the runtime goes past those with lower addresses that are
	// registered in the same span. Sentinels have mostly ascending addresses.
	for j, cut := range slices.Backward(ring) {
		if !Leak {
			gcwatch.Watch(cut, (*Batch).collected, b, uint16(j+1))
		}
	}
	return true // of its own entries from now on
}

// A mix is what a pool knows about the lifetimes of its owners.
type mix struct {
	mu sync.Mutex
	// The rest is under mu.

	// Batches of the recent past: whole have ended without outliving collections, old have
	// outlived them. A batch is known as old two collections later than as whole. So the two
	// are compared from the round from of package gcwatch on.
	whole, old uint32
	from       uint32

	// Batches of the recent past: when they were sealed, each owner of closed was closed, and
	// of others was not.
	closed, others uint32

	// The sentinels, all and living, of the batches that are split, have a living
	// sentinel, and had a call of heard since the split.
	sentinels, living int
}

// Share of a batch, the binary logarithm of the number of owners that share a sentinel.
const (
	FineShare   = 2
	coarseShare = pageShift
)

const (
	fewBatches   = 32
	mostBatches  = 256
	fewSentinels = 16
	settled      = 4 // rounds
	smallBatch   = 128
	largeMean    = 512 // bytes
)

// ended counts a batch that has not outlived collections.
func (m *mix) ended() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.whole++
	m.fade()
}

// sealed counts a batch that is sealed. closed says whether all its owners are
// closed.
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

// outlived counts a batch that has outlived collections.
func (m *mix) outlived() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.old++
	m.fade()
}

func (m *mix) fade() {
	if m.from == 0 {
		m.from = max(gcwatch.Round()+settled, 1)
	}
	for m.whole+m.old > mostBatches {
		m.whole /= 2
		m.old /= 2
	}
}

// add counts a change of the sentinels of batches that were split.
func (m *mix) add(sentinels, living int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sentinels += sentinels
	m.living += living
}

// rare reports whether few batches outlive collections. The caller holds m.mu.
func (m *mix) rare() bool {
	n := m.whole + m.old
	return n >= fewBatches && m.old <= n/8 && int32(gcwatch.Round()-m.from) >= 0
}

// common reports whether most batches outlive collections, as far as is known. The caller holds m.mu.
func (m *mix) common() bool { return m.old >= m.whole }

// pays reports whether batches that outlive collections should be split: because they
// are few, or because an eighth of the sentinels of others that were split are dead.
func (m *mix) pays() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.rare() || m.sentinels >= fewSentinels && m.living <= m.sentinels/8*7
}

// Share returns how many owners of the next batch, of n owners, share a sentinel, as a
// binary logarithm. mean is about the size of their resources, or 0.
//
//	closed nearly always           one sentinel is enough: the batch is not registered at all
//	few batches outlive            4, or more in a batch of many: it mostly dies as a whole
//	most do, with large resources  1: the last of 4 with random lifetimes lives for 2.08 of them
//	                               (1 + 1/2 + 1/3 + 1/4)
//	else                           4
func (k *Spec) Share(n uint32, mean int64) uint8 {
	m := &k.mix
	m.mu.Lock()
	defer m.mu.Unlock()
	switch all := m.closed + m.others; {
	case all >= fewBatches && m.others <= all/16:
		return OneSentinel
	case n > smallBatch && m.rare():
		return coarseShare
	case n <= smallBatch && mean >= largeMean && m.common():
		return 0
	}
	return FineShare
}
