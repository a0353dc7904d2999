package callback

import (
	"math/bits"
	"sync"
	"sync/atomic"
	"weak"

	"github.com/cheapgo/cheap/internal/watch/gcwatch"
	"github.com/cheapgo/cheap/own/internal/batch"
)

// A slot is what a number leads to directly. Only weak is read without table.mu.
type slot struct {
	weak   reference // zero if the slot has no cell
	strong *Cell     // while the callback is held, or the slot is in ready
	kind   *Kind     // of the callback, or nil if the slot is in ready or empty
	gen    uint32    // of the next number, or of the present one
	next   uint32    // the slot behind this one in ready or empty, plus 1
	held   uint32    // the place in table.held, plus 1; 0 if it is not held
}

// table has all slots. Slots are never moved, and never given back.
var table slots

type slots struct {
	// Chunk j has firstChunk<<j slots. It is there before n says so.
	chunks [maxChunks][]slot
	n      atomic.Uint32 // slots in chunks

	mu    sync.Mutex
	ready list     // slots with a cell that can be used again
	empty list     // slots without a cell
	used  uint32   // slots with a callback, which may be unreachable
	held  []uint32 // slots whose callback is held
	hand  uint32   // the slot that is examined next
	armed bool     // release runs after the next collection
}

const (
	firstChunk = 64
	maxChunks  = 26 // 2^32 slots and less

	// A slot that is needed is one of these, if a callback in it has become unreachable.
	// So a quarter of the slots at most is of such callbacks, besides those that became
	// unreachable since the last collection.
	examined = 4

	// Cells that are kept to be used again, beside as many as are used.
	fewReady = 1024
)

// A list is a list of slots, linked by their next.
type list struct{ first, last, n uint32 } // first and last plus 1; 0 if n is 0

// at returns a slot, which is there.
func (t *slots) at(i uint32) *slot {
	j := bits.Len32(i/firstChunk+1) - 1
	return &t.chunks[j][i-(firstChunk<<j-firstChunk)]
}

// slotOf returns the slot of a number, or nil if none has had it.
func (t *slots) slotOf(number uintptr) *slot {
	i, ok := indexOf(number)
	if !ok || i >= t.n.Load() {
		return nil
	}
	return t.at(i)
}

// push adds a slot to a list. Where numbers repeat soon, the slot is used last.
func (t *slots) push(l *list, i uint32) {
	s := t.at(i)
	switch {
	case l.n == 0:
		s.next, l.first, l.last = 0, i+1, i+1
	case repeats:
		s.next = 0
		t.at(l.last-1).next, l.last = i+1, i+1
	default:
		s.next, l.first = l.first, i+1
	}
	l.n++
}

// pop takes a slot from a list, which is not empty.
func (t *slots) pop(l *list) uint32 {
	i := l.first - 1
	if l.n--; l.n == 0 {
		*l = list{}
	} else {
		l.first = t.at(i).next
	}
	return i
}

// take returns a slot for a callback of the kind, and its cell if it has one.
func (t *slots) take(k *Kind) (uint32, *Cell) {
	t.mu.Lock()
	defer t.mu.Unlock()
	i, c := t.pick()
	t.at(i).kind = k
	t.used++
	return i, c
}

// pick takes a slot from a list, or makes one.
func (t *slots) pick() (uint32, *Cell) {
	if t.ready.n > fewFree {
		i := t.pop(&t.ready)
		s := t.at(i)
		c := s.strong
		s.strong = nil
		return i, c
	}
	if t.empty.n <= fewFree {
		t.examine(examined)
	}
	if t.empty.n > fewFree {
		return t.pop(&t.empty), nil
	}
	return t.grow(), nil
}

// grow returns a new slot.
func (t *slots) grow() uint32 {
	i := t.n.Load()
	if i >= maxSlots { // the last chunk has more slots than there are numbers
		panic(errTooMany)
	}
	if j := bits.Len32(i/firstChunk+1) - 1; t.chunks[j] == nil {
		if j+1 == maxChunks {
			panic(errTooMany)
		}
		t.chunks[j] = make([]slot, firstChunk<<j)
	}
	t.n.Store(i + 1)
	return i
}

// examine looks at the next n slots, and makes empty those whose callback has become unreachable.
func (t *slots) examine(n uint32) {
	for all := t.n.Load(); n > 0 && all > 0; n-- {
		if t.hand >= all {
			t.hand = 0
		}
		t.vacate(t.hand)
		t.hand++
	}
}

// vacate makes a slot empty if its callback has become unreachable. It keeps no cell alive,
// even while the collector marks.
func (t *slots) vacate(i uint32) {
	s := t.at(i)
	if s.kind == nil {
		return
	}
	if w := s.weak.load(); w != (weak.Pointer[Cell]{}) && gcwatch.Gone(w) {
		t.free(i, nil)
	}
}

// free ends the number of a slot, whose cell may be used again if it is not nil.
func (t *slots) free(i uint32, c *Cell) {
	s := t.at(i)
	t.release(i)
	s.kind = nil
	t.used--
	if s.gen++; s.gen == maxGen {
		if !repeats {
			s.weak.store(weak.Pointer[Cell]{})
			return // it is in no list any more, and none of its numbers is used again
		}
		s.gen = 0
	}
	if c != nil && t.ready.n < max(fewReady, t.used)+fewFree {
		s.strong = c
		t.push(&t.ready, i)
		return
	}
	s.weak.store(weak.Pointer[Cell]{})
	t.push(&t.empty, i)
}

// hold keeps the callback of a slot reachable.
func (t *slots) hold(i uint32, c *Cell) {
	s := t.at(i)
	if s.held != 0 {
		return
	}
	s.strong = c
	t.held = append(t.held, i)
	s.held = uint32(len(t.held))
	if !t.armed {
		t.armed = true
		gcwatch.Next(t.collected)
	}
}

// release ends a hold.
func (t *slots) release(i uint32) {
	s := t.at(i)
	if s.held == 0 {
		return
	}
	last := t.held[len(t.held)-1]
	t.held[s.held-1] = last
	t.at(last).held = s.held
	t.held = t.held[:len(t.held)-1]
	s.held, s.strong = 0, nil
}

// collected runs after a collection while callbacks are held. It releases those whose owner is
// closed: nothing else tells the table.
func (t *slots) collected() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for k := len(t.held) - 1; k >= 0; k-- {
		i := t.held[k]
		if target := t.at(i).strong.target.Load(); target.over() {
			t.release(i)
		}
	}
	if t.armed = len(t.held) > 0; t.armed {
		gcwatch.Next(t.collected)
	}
}

// A Place is where the Go side of a callback keeps its target, and so all that the target refers
// to. It is stored to under table.mu.
type Place struct{ target atomic.Pointer[Target] }

// current returns the present target of the number of the place, or nil. The caller holds table.mu.
func (p *Place) current() *Target {
	if t := p.target.Load(); t != nil {
		return t.current()
	}
	return nil
}

// current returns the present target of t's number, or nil if it has ended. The caller holds
// table.mu.
func (t *Target) current() *Target {
	if now := t.cell.target.Load(); now != nil && now.number == t.number {
		return now
	}
	return nil
}

// Set gives the place a value of the kind, and an owner, which may be zero. It returns the number: the
// one that the place has, or else a new one. It returns 0 if the place has a number of another
// kind.
func (p *Place) Set(k *Kind, owner batch.Ref, value any) uintptr {
	for {
		if p.target.Load() != nil {
			if n, set := p.replace(k, owner, value); set {
				return n
			}
		}
		t := give(k, owner, value)
		if p.take(t) {
			return t.number
		}
		t.drop() // another goroutine has set the place
	}
}

// replace puts a target in place of the present one, with its number. It reports whether there is
// one, and returns 0 if that is of another kind.
func (p *Place) replace(k *Kind, owner batch.Ref, value any) (number uintptr, set bool) {
	now := &Target{Value: value, kind: k, ref: owner}
	table.mu.Lock()
	defer table.mu.Unlock()
	t := p.current()
	if t == nil || t.kind != k {
		return 0, t != nil
	}
	now.cell, now.number = t.cell, t.number
	p.put(t, now)
	return t.number, true
}

// put puts now in place of t, the present target of the number. If the owner of t is closed, the Hold
// of t has ended, and now is not held. The caller holds table.mu.
func (p *Place) put(t, now *Target) {
	if t.over() {
		table.release(t.cell.slot)
	}
	t.cell.target.Store(now)
	p.target.Store(now)
}

// give returns a target with a new number.
func give(k *Kind, owner batch.Ref, value any) *Target {
	i, c := table.take(k)
	// Nobody else knows the slot. It is not found vacant: it has no weak pointer, or one to c.
	s := table.at(i)
	if c == nil {
		c = &Cell{slot: i}
		s.weak.store(weak.Make(c))
	}
	t := &Target{Value: value, cell: c, kind: k, number: numberOf(i, s.gen), ref: owner}
	c.target.Store(t)
	return t
}

// take makes t the target of the place, and reports whether there was none.
func (p *Place) take(t *Target) bool {
	table.mu.Lock()
	defer table.mu.Unlock()
	if p.current() != nil {
		return false
	}
	p.target.Store(t)
	return true
}

// Bind gives the target another owner. It reports whether there is a target.
func (p *Place) Bind(owner batch.Ref) bool {
	now := new(Target)
	table.mu.Lock()
	defer table.mu.Unlock()
	t := p.current()
	if t == nil {
		return false
	}
	*now = *t
	now.ref = owner
	p.put(t, now)
	return true
}

// Number returns the number of the place, or 0.
func (p *Place) Number() uintptr {
	table.mu.Lock()
	defer table.mu.Unlock()
	if t := p.current(); t != nil {
		return t.number
	}
	return 0
}

// Clear ends the number of the place.
func (p *Place) Clear() {
	table.mu.Lock()
	defer table.mu.Unlock()
	if t := p.target.Load(); t != nil {
		p.target.Store(nil)
		t.end()
	}
}

// drop ends the number.
func (t *Target) drop() {
	table.mu.Lock()
	defer table.mu.Unlock()
	t.end()
}

// end is drop for a caller that holds table.mu.
func (t *Target) end() {
	if t.current() != nil {
		t.cell.target.Store(nil)
		table.free(t.cell.slot, t.cell)
	}
}

// Hold keeps the present target of the number reachable until Weaken, or until the number has ended
// or the owner is closed. It returns false if that is so already.
func (t *Target) Hold() bool {
	table.mu.Lock()
	defer table.mu.Unlock()
	now := t.current()
	if now == nil || now.over() {
		return false
	}
	table.hold(t.cell.slot, t.cell)
	return true
}

// Weaken ends a Hold.
func (t *Target) Weaken() {
	table.mu.Lock()
	defer table.mu.Unlock()
	if t.current() != nil {
		table.release(t.cell.slot)
	}
}

// Find returns the target of a number of the kind, or nil if it has ended.
func (k *Kind) Find(number uintptr) *Target {
	s := table.slotOf(number)
	if s == nil {
		k.panicNumber(number)
	}
	t := s.live(number)
	if t != nil && t.kind != k {
		k.panicKind(t)
	}
	return t
}

// Count returns how many callbacks of the kind there are, and how many of them are held. It looks
// at all slots.
func (k *Kind) Count() (live, held int) {
	table.mu.Lock()
	defer table.mu.Unlock()
	for i := range table.n.Load() {
		table.vacate(i)
		if s := table.at(i); s.kind == k {
			live++
			if s.held != 0 {
				held++
			}
		}
	}
	return live, held
}
