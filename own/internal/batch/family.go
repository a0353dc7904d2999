package batch

import (
	"sync"
	"sync/atomic"
)

// A Family belongs to an entry that is a parent, or has a state of its own. It counts
// the children that are not released, and has the list of their batches. It is made with
// the first child, or with the entry.
//
// Children refer to their family, and the family refers to the parent's batch,
// never to its sentinel. So a child does not keep its parent's owner alive, and the
// collector may find both unreachable in one cycle, in any order. The parent's
// release waits until the number of children is 0.
type Family struct {
	parent *Batch
	index  uint32
	alone  bool // the entry has a state of its own, and so a call of the release function; does not change

	// Under mu. They lie beside alone, so that a family has 80 bytes.
	found  bool // the collector has found the entry, which is alone and had no child left
	joined bool // a child or a pool has joined; state does not change any more
	closed bool // the parent is closed: no child can join, and the last child releases it

	mu      sync.Mutex
	own     any // that state, until the release function gets it; or nil
	state   any // for the release function of the children, or nil
	pending int // children that are not released

	// children are batches that are not ended. A batch refers to its spec, and the
	// spec's release function may refer to the parent's owner, which the parent's
	// batch must not reach. So an ended batch leaves the list at once.
	children List
}

// A kin is the place of a batch in a family.
type kin struct {
	family *Family
	node   node
}

// family returns the family of an entry that has one.
func (b *Batch) family(i uint32) *Family {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.families[i]
}

// Family returns the family of an entry, and makes it if there is none. It returns
// nil if the owner is closed.
func (b *Batch) Family(i uint32) *Family {
	// The bit is set after the family is written, and neither changes after that.
	if b.State(i)&(Open|kinBit) == Open|kinBit {
		return b.families[i]
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for {
		s := b.State(i)
		if s&Open == 0 {
			return nil
		}
		if s&kinBit != 0 {
			return b.families[i]
		}
		b.makeFamily(i, new(Family))
		if atomic.CompareAndSwapUint64(&b.at(i).State, s, s|kinBit) {
			return b.families[i]
		}
		b.families[i] = nil
	}
}

// Give makes the Family of an entry that has a state of its own, before Put, and returns
// what Put gets as flags. The caller is the only one that writes entries.
func (b *Batch) Give(i uint32, state any) (flags uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.makeFamily(i, &Family{alone: true, own: state})
	return kinBit
}

// makeFamily makes f the family of entry i. The caller holds b.mu.
func (b *Batch) makeFamily(i uint32, f *Family) {
	b.note()
	if b.families == nil {
		b.families = make([]*Family, b.size)
	}
	f.parent, f.index = b, i
	b.families[i] = f
}

// take returns the state for the release function of an entry that is closed, and keeps
// it no longer.
func (f *Family) take() any {
	f.mu.Lock()
	defer f.mu.Unlock()
	state := f.own
	f.own = nil
	return state
}

// setFound records that the collector has found the entry.
func (f *Family) setFound() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.found = true
}

// Alone reports whether the entry has a state of its own. Then a call of the release
// function has no other entry.
func (f *Family) Alone() bool { return f != nil && f.alone }

// Join counts one more child. It reports whether the parent is open; a closed one
// takes no child.
func (f *Family) Join() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return false
	}
	f.pending++
	f.joined = true
	return true
}

// SetState sets the state that release functions of children get. It returns ErrClosed
// if the parent is closed, and ErrChildren if it has had a child.
func (f *Family) SetState(state any) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.closed:
		return ErrClosed
	case f.joined:
		return ErrChildren
	}
	f.state = state
	return nil
}

// Fix ends the time in which SetState may be called.
func (f *Family) Fix() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.joined = true
}

// State returns what SetState set, or nil.
func (f *Family) State() any {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.state
}

// leave counts k children as released. It reports whether the caller must release
// the parent now.
func (f *Family) leave(k int) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.pending -= k
	return f.over()
}

// close records that the parent is closed and in no Use. It reports whether the
// caller must release the parent now.
func (f *Family) close() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	return f.over()
}

// over reports whether the parent is closed and has no child left. Then nothing needs
// the state. The caller holds f.mu.
func (f *Family) over() bool {
	if !f.closed || f.pending > 0 {
		return false
	}
	f.state = nil
	return true
}

// waits reports whether children are not released.
func (f *Family) waits() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.pending > 0
}

// Children appends the children's batches that are not ended to list. Open ones are
// among them.
func (f *Family) Children(list []*Batch) []*Batch { return f.children.All(list) }

// A List is a list of batches. The zero value is empty.
type List struct {
	mu    sync.Mutex
	first *node
}

// A node is the place of a batch in a list. All but batch is under the list's
// lock; list does not change after add.
type node struct {
	batch      *Batch
	list       *List // nil if the batch was never on a list
	prev, next *node
}

// add puts a node, which is on no list, on this one.
func (list *List) add(n *node) {
	list.mu.Lock()
	defer list.mu.Unlock()
	n.list = list
	n.next = list.first
	if n.next != nil {
		n.next.prev = n
	}
	list.first = n
}

// remove takes a node off its list. It is called once.
func (n *node) remove() {
	list := n.list
	if list == nil {
		return
	}
	list.mu.Lock()
	defer list.mu.Unlock()
	if n.prev != nil {
		n.prev.next = n.next
	} else {
		list.first = n.next
	}
	if n.next != nil {
		n.next.prev = n.prev
	}
	n.prev, n.next = nil, nil
}

// All appends the batches of the list to buf.
func (list *List) All(buf []*Batch) []*Batch {
	list.mu.Lock()
	defer list.mu.Unlock()
	for n := list.first; n != nil; n = n.next {
		buf = append(buf, n.batch)
	}
	return buf
}
