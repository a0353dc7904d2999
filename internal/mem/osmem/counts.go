package osmem

import "sync/atomic"

// counts are added to after each system call, which takes a hundred times as long as the
// addition.
var counts struct {
	reserved, mapped, changes, decommits, decommitted atomic.Int64
}

// Counts is what this package has of the system, and what it has given back.
type Counts struct {
	Reserved int64 // bytes of address space, by Reserve and not by Release
	Mapped   int64 // bytes by Map. Those by MapSparse are not among them: hardly any is touched

	Changes int64 // calls of Reserve and Release

	Decommits   int64 // calls of Decommit
	Decommitted int64 // their bytes, some of which had no memory
}

// ReadCounts reads the counts. Each is a word that is read by itself.
func ReadCounts() Counts {
	return Counts{
		Reserved:    counts.reserved.Load(),
		Mapped:      counts.mapped.Load(),
		Changes:     counts.changes.Load(),
		Decommits:   counts.decommits.Load(),
		Decommitted: counts.decommitted.Load(),
	}
}
