package batch

import (
	"cmp"
	"math/bits"
	"slices"
	"strings"
)

// A Tally adds up the open entries of batches by the stacks that made their owners. For
// batches that are sampled it estimates, for each stratum alone. A stratum is all entries
// of one sampling rate and of similar size. A sample stands for
//
//	entries of its stratum / samples of its stratum
//
// entries. Hence the sums over all rows are exact.
type Tally struct {
	// With Exact, entries of sampled batches have no stack, and each generation of a
	// stack has a row.
	Exact bool

	rows    map[rowKey]*Row
	sampled strata // the entries of sampled batches
}

type rowKey struct {
	stack      Stack
	label      string
	generation uint64
}

// A Row is the sum over the entries with a stack and a label.
type Row struct {
	Origin *Origin // or nil
	Label  string
	Live   int64

	Generation uint64 // 0 if it is not known

	Bytes   int64
	Samples int64 // entries with a recorded origin
	Born    uint32
	Uses    []*Origin // the last uses of an entry, the last one first

	strata strata // the samples of sampled batches
}

// strata are sums by the rate of the batch and by the number of bits of the size.
type strata map[stratumKey]*stratum

type stratumKey struct {
	rate   uint8
	length int
}

type stratum struct{ n, bytes int64 }

func (s *strata) add(rate uint8, size int64) {
	if *s == nil {
		*s = strata{}
	}
	b := stratumKey{rate, bits.Len64(uint64(size))}
	if (*s)[b] == nil {
		(*s)[b] = new(stratum)
	}
	(*s)[b].n++
	(*s)[b].bytes += size
}

// Add adds the open entries of a batch. The caller holds the lock of its shard.
func (t *Tally) Add(b *Batch) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.dead {
		return
	}
	for i := range b.size {
		s := b.State(i)
		if s&Open == 0 || b.found(i) {
			continue
		}
		t.entry(b, i, SizeOf(s))
	}
}

func (t *Tally) entry(b *Batch, i uint32, size int64) {
	var mine *sample
	label := ""
	if b.notes != nil {
		mine, label = b.sampleOf(i), b.labels[i]
	}
	estimate := b.rate > 1
	switch {
	case estimate && t.Exact:
		mine, estimate = nil, false
	case estimate:
		t.sampled.add(b.rate, size)
		if mine == nil {
			return
		}
	}
	var r *Row
	if mine == nil {
		r = t.row(nil, label)
	} else {
		r = t.row(mine.origin, label)
		if r.Samples == 0 || mine.born < r.Born {
			r.Born = mine.born
			r.Uses = nil
		}
		r.Samples++
		if u := b.lastUses[i]; u != nil && r.Uses == nil {
			r.Uses = slices.DeleteFunc(slices.Clone(u[:]), func(o *Origin) bool { return o == nil })
		}
	}
	if estimate {
		r.strata.add(b.rate, size)
	} else {
		r.Live++
		r.Bytes += size
	}
}

func (t *Tally) row(o *Origin, label string) *Row {
	if t.rows == nil {
		t.rows = map[rowKey]*Row{}
	}
	key := rowKey{label: label}
	if o != nil {
		if key.stack = o.Stack(); t.Exact {
			key.generation = o.generation
		}
	}
	r := t.rows[key]
	if r == nil {
		r = &Row{Origin: o, Label: label, Generation: key.generation}
		t.rows[key] = r
	}
	return r
}

// Rows returns the rows, in no order. The Tally is of no use after that.
func (t *Tally) Rows() []*Row {
	sums := strata{} // of the samples
	for _, r := range t.rows {
		for b, s := range r.strata {
			if sums[b] == nil {
				sums[b] = new(stratum)
			}
			sums[b].n += s.n
			sums[b].bytes += s.bytes
		}
	}
	rows := t.sorted()
	for b := range t.sampled {
		all, of := t.sampled[b], sums[b]
		if of == nil { // no entry of about this size was sampled
			r := t.row(nil, "")
			r.Live += all.n
			r.Bytes += all.bytes
			continue
		}
		// What rounding leaves goes to the next row, so that the sum is exact.
		n, bytes := shares(all.n, of.n), shares(all.bytes, of.bytes)
		for _, r := range rows {
			if s := r.strata[b]; s != nil {
				r.Live += n(s.n)
				r.Bytes += bytes(s.bytes)
			}
		}
	}
	return t.sorted()
}

// shares returns a function that gives out shares of all in proportion to its argument,
// the sum of whose arguments is of.
func shares(all, of int64) func(part int64) int64 {
	seen, given := int64(0), int64(0)
	return func(part int64) int64 {
		seen += part
		due := int64(0)
		if of > 0 {
			hi, lo := bits.Mul64(uint64(all), uint64(seen))
			q, _ := bits.Div64(hi, lo, uint64(of)) // all, as seen is of at most
			due = int64(q)
		}
		share := due - given
		given = due
		return share
	}
}

// sorted returns the rows in an order that does not depend on the map.
func (t *Tally) sorted() []*Row {
	type keyed struct {
		key rowKey
		row *Row
	}
	all := make([]keyed, 0, len(t.rows))
	for k, r := range t.rows {
		all = append(all, keyed{k, r})
	}
	slices.SortFunc(all, func(x, y keyed) int {
		if c := slices.Compare(x.key.stack[:], y.key.stack[:]); c != 0 {
			return c
		}
		return cmp.Or(strings.Compare(x.key.label, y.key.label), cmp.Compare(x.key.generation, y.key.generation))
	})
	rows := make([]*Row, len(all))
	for i, k := range all {
		rows[i] = k.row
	}
	return rows
}

// A Count says how many owners a stack has made while the leak level of their spec was not
// off, and how many of them the collector found. The numbers are estimates if owners were
// sampled.
type Count struct {
	Origin          *Origin // nil for the stacks that are not in the table
	Made, Collected int64
}

// Counts returns the counts of all stacks.
func (t *Table) Counts() []Count {
	list := []Count{}
	for _, o := range t.all() {
		list = append(list, Count{o, o.made.Load(), o.collected.Load()})
	}
	if n := t.others.made.Load(); n > 0 {
		list = append(list, Count{nil, n, t.others.collected.Load()})
	}
	return list
}

// Age returns how old an owner is, in seconds, that was born at a time of Row.Born.
func Age(born uint32) int64 { return int64(clock()) - int64(born) }
