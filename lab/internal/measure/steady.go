package measure

import (
	"slices"
	"time"
)

// The rounds of a row that is Steady.
const (
	steadyCollections = 10
	warmPart          = 5 // a warm-up has a fifth of the operations of a round

	// heapGrowth is by how many bytes the Go heap grows between two collections of a
	// program that has next to nothing live: the least heap of GOGC=100.
	heapGrowth = 4 << 20

	// spareGrowth is how much more a round allocates, because what is live adds to it.
	spareGrowth = 1.3

	steadyOverdraft = 1.3

	// leastPart is the part of ten collections that the longest rows have for the sake of
	// enough rounds for an interval.
	leastPart = 0.3
)

// The notes of a row whose rounds have fewer collections.
const (
	shortTime   = "rounds of fewer than ten collections, because the time was short"
	shortRound  = "rounds of fewer than ten collections, because of -benchtime"
	growingHeap = "rounds of fewer than ten collections, although they allocate 52 MiB: objects that wait for their finalizers make the heap larger, so that collections are rarer"
)

// fewCollections returns the note of a row that was to be in a steady state and had fewer
// than ten collections in a round, and else "".
func (u *unit) fewCollections(collections float64) string {
	switch {
	case !u.row.Steady || collections >= steadyCollections || u.tried.Bytes < uint64(u.tried.N):
		return ""
	case u.ten == 0:
		return shortRound
	case u.n < u.ten:
		return shortTime
	}
	return growingHeap
}

// lengthen gives the rows that are Steady as many operations as a round of ten
// collections needs. If six such rounds of all of them take too long, the longest rows have
// down to three tenths of it; if that is still too long there are three rounds, and only then
// fewer collections still. The calibration has run N operations
// of each. It returns by which factor the group may exceed its share: the rounds were made
// for the share.
func (r *run) lengthen(g group, share time.Duration) float64 {
	if r.Each != (Length{}) {
		return overdraft
	}
	var steady []*unit
	var wanted []float64 // nanoseconds of each
	others := 0.0        // nanoseconds of a round that do not depend on how long these are
	for _, u := range g {
		others += float64(u.took)
		if u.row.Steady && u.tried.N > 0 {
			steady = append(steady, u)
			wanted = append(wanted, u.tried.perOp(u.tried.Wall)*float64(u.steadyN()))
			others -= u.tried.Wall
		}
	}
	if len(steady) == 0 {
		return overdraft
	}
	// What one round of these rows may take. The calibration takes about half a round.
	may := func(rounds int) float64 {
		one := steadyOverdraft * float64(share) / (float64(rounds) + 0.5)
		return max(one-others, 0) / (1 + 1.0/warmPart)
	}
	most := level(wanted, may(enoughRounds))
	if most < leastPart*slices.Max(wanted) {
		most = level(wanted, may(fewRounds))
	}
	for _, u := range steady {
		u.ten = u.steadyN()
		n := min(float64(u.ten), most/max(u.tried.perOp(u.tried.Wall), 1e-3))
		// A multiple of N: a row may need that.
		u.n = max(int(n)/u.row.N, 1) * u.row.N
		u.warm = u.n / warmPart
		u.took *= time.Duration(1 + (u.n+u.warm)/u.row.N)
	}
	return steadyOverdraft
}

// steadyN is how many operations have ten collections, if what is live does not grow. A
// row that allocates next to nothing has none.
func (u *unit) steadyN() int {
	bytes := u.tried.perOp(float64(u.tried.Bytes))
	if bytes < 1 {
		return u.row.N
	}
	n := int(steadyCollections * heapGrowth * spareGrowth / bytes)
	return max((n+u.row.N-1)/u.row.N, 1) * u.row.N
}

// level returns the height at which what is wanted has to be cut off for the sum to be
// at most total.
func level(wanted []float64, total float64) float64 {
	sorted := slices.Sorted(slices.Values(wanted))
	for i, w := range sorted {
		if rest := float64(len(sorted) - i); w*rest > total {
			return max(total/rest, 0)
		}
		total -= w
	}
	return 1e18
}
