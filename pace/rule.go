package pace

import "math"

// A baseline is the state after a collection and the releases that followed it.
type baseline struct {
	heap        int64 // reachable bytes of the Go heap
	reclaimable int64 // bytes outside that automatic release could still free
}

const (
	// floor is the number of new bytes from which on a collection pays.
	floor = 8 << 20

	// mostBackoff is the largest factor on floor, when collections free nothing.
	mostBackoff = 8
)

// least returns the number of new bytes since the baseline that a collection requires:
//
//	max(8 MiB, heap/3 * min(1, GOGC/100)) * backoff
//
// backoff is 1, or more if the last collections freed little.
func (m baseline) least(gogc int, backoff int64) int64 {
	if gogc < 0 || gogc > 100 {
		gogc = 100
	}
	return max(floor, m.heap/300*int64(gogc)) * backoff
}

// bound returns the largest On, the number of reclaimable bytes before the releases of the next
// collection have run, for which one of the two holds:
//
//	On + Hnow <= (Ob + Hb) * (1 + GOGC/100)
//	On - Ob   <= 2 * least
//
// Ob and Hb are the baseline's, and Hnow is heap: the bytes of objects in the Go heap, dead
// ones included. gogc is negative if the collector is off; then there is no bound.
func (m baseline) bound(heap int64, gogc int, backoff int64) int64 {
	if gogc < 0 {
		return noBound
	}
	return max(m.reclaimable+2*m.least(gogc, backoff), m.goal(gogc)-heap)
}

// due returns the number of reclaimable bytes at which a collection is due, so that its
// releases have run before there are bound bytes. lead is how many bytes come during one
// collection. With slack = bound - baseline, it lies slack/8 to slack/2 below bound.
func (m baseline) due(bound, lead int64) int64 {
	if bound == noBound {
		return noBound
	}
	slack := max(bound-m.reclaimable, 0)
	return bound - min(max(lead, slack/8), slack/2)
}

// goal returns the bytes to which heap and reclaimable together may grow.
func (m baseline) goal(gogc int) int64 {
	g := float64(m.reclaimable+m.heap) * (1 + float64(gogc)/100)
	return int64(min(g, noBound/4))
}

const noBound = math.MaxInt64

// next returns the number of reclaimable bytes at which to check again: halfway from
// reclaimable, the present number, to the trigger. The Go heap grows meanwhile, which lowers
// the trigger.
func next(reclaimable, trigger int64) int64 {
	if trigger == noBound {
		return reclaimable + floor
	}
	return reclaimable + max((trigger-reclaimable)/2, floor/8)
}

// nextBackoff returns the backoff after a collection that freed freed bytes. came is the
// number of bytes that had come since the collection before.
func nextBackoff(backoff, freed, came int64) int64 {
	switch {
	case freed < came/8:
		return min(2*backoff, mostBackoff)
	case freed > came/4:
		return max(backoff/2, 1)
	}
	return backoff
}
