package sample

import "time"

// A Holder is what hands out blocks: a heap. Samples of holders with different names are
// counted apart.
type Holder struct {
	Name string

	first *record // of its blocks in use; under the lock of the table
}

// A record is what is known of a sampled block that is in use. The records of a holder are a
// list, so that Drop visits no others.
type record struct {
	of         *Holder
	next, prev *record
	site       *site
	p, size    uintptr
	weight     float64
	since      time.Duration // after start
}

// link puts r at the head of its holder's list.
func (r *record) link() {
	if r.next = r.of.first; r.next != nil {
		r.next.prev = r
	}
	r.of.first = r
}

// unlink takes r out of its holder's list.
func (r *record) unlink() {
	if r.prev != nil {
		r.prev.next = r.next
	} else {
		r.of.first = r.next
	}
	if r.next != nil {
		r.next.prev = r.prev
	}
}

// newRecord returns a record, perhaps one that was used before. The lock is held.
func newRecord(r record) *record {
	n := table.spare
	if n == nil {
		n = new(record)
	} else {
		table.spare = n.next
		table.spares--
	}
	*n = r
	return n
}

// release gives back a record that is in no list. The lock is held.
func (r *record) release() {
	if table.spares < mostSpare {
		*r = record{next: table.spare}
		table.spare = r
		table.spares++
	}
}

const mostSpare = 256 // 16 KiB
