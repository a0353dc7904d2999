package sample

import (
	"math"
	"sync/atomic"
)

// The table grows with the number of stacks, and with the number of sites: each block size of a
// stack is a site. A program that runs for long may have many sites, however few bytes are in
// use. So if the table is larger than
//
//	foldLeast + bytes in use / foldShare
//
// the sites of a stack that have no block in use become one site. The sizes of their blocks are
// lost: the profile has the mean.

// manySizes is the size of a site that fold has made.
const manySizes = math.MaxUint

const (
	// The table may have foldLeast bytes, and one in foldShare of the bytes of blocks in use.
	// The pages of sampled blocks that hold no block take about as much again.
	foldLeast = 256 << 10
	foldShare = 256
)

// counted is how much a table has.
type counted struct {
	numStacks, frames, sites, lives int
	records                         int // the most there were: a map does not shrink

	// Read without the lock.
	size atomic.Int64 // bytes, about
	now  atomic.Int64 // samples of blocks in use
}

// The bytes of these on a system of 64 bits, with what their maps and slices keep free.
// TestSampleMemory compares the sum with the Go heap.
const (
	stackBytes  = 140
	frameBytes  = 9
	siteBytes   = 104
	lifeBytes   = 24
	recordBytes = 64
	placeBytes  = 32 // of a record in the map
)

// bytes returns about how many bytes the table has.
func (c *counted) bytes() int64 {
	n := int64(c.numStacks*stackBytes + c.frames*frameBytes + c.sites*siteBytes + c.lives*lifeBytes + len(table.live)*recordBytes + c.records*placeBytes)
	c.size.Store(n)
	return n
}

// Bytes returns about how many bytes of the Go heap the samples take. It takes no lock.
func Bytes() int64 { return table.size.Load() }

// Count returns how many samples are of blocks in use. It takes no lock.
func Count() int64 { return table.now.Load() }

// mayFold folds the sites if the table is too large for the bytes in use. The lock is held.
func mayFold() {
	n, most := table.bytes(), foldLeast+int64(table.inUse)/foldShare
	table.foldAt = min(table.foldAt, 2*n) // the samples may have ended that made the table large
	if n <= max(most, table.foldAt) {
		return
	}
	for st := range table.stacks.All {
		st.fold()
	}
	// What is left may be more than most. The next time is when there is a quarter more, so that
	// the time that folding takes is spread over as many samples.
	table.foldAt = table.bytes() * 5 / 4
}

// fold makes one site of those that have the same names and no block in use. The lock is held.
func (st *stack) fold() {
	if len(st.sites) < 2 {
		return
	}
	var kept []*site
	first := map[*names]int{} // places in kept of sites without blocks in use
	for _, s := range st.sites {
		at, ok := first[s.of]
		switch {
		case s.inUse > 0:
			kept = append(kept, s)
		case !ok:
			first[s.of] = len(kept)
			kept = append(kept, s)
		default:
			kept[at].add(s)
			table.sites--
		}
	}
	if len(kept) == len(st.sites) {
		return
	}
	st.sites, st.index = kept, nil
	if len(kept) >= manySites {
		st.makeIndex()
	}
}

// add adds the counts of another site, which is no longer used.
func (s *site) add(o *site) {
	s.size = manySizes
	s.allocs += o.allocs
	s.frees += o.frees
	s.space += o.space
	for _, l := range o.lives {
		s.life(l.age, l.Life)
		table.lives--
	}
}
