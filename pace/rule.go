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

// least returns the number of new bytes since the baseline that a collection requires: a third
// of what makes the runtime collect the Go heap, at most. backoff is 1, or more if the last
// collections freed little.
func (m baseline) least(gogc int, backoff int64) int64 {
	if gogc < 0 || gogc > 100 {
		gogc = 100
	}
	return max(floor, m.heap/300*int64(gogc)) * backoff
}

// bound returns the number of reclaimable bytes that there may be before the releases of
// the next collection have run, when the Go heap has heap bytes of objects, dead ones
// included:
//
//	On + Hnow <= (Ob + Hb) * (1 + GOGC/100), or On - Ob <= 2 * least.
//
// gogc is negative if the collector is off; then there is no bound.
func (m baseline) bound(heap int64, gogc int, backoff int64) int64 {
	if gogc < 0 {
		return noBound
	}
	return max(m.reclaimable+2*m.least(gogc, backoff), m.goal(gogc)-heap)
}

// due returns the number of reclaimable bytes at which a collection is due, so that its
// releases have run when there are bound bytes. lead bytes have come during one
// collection lately. A collection is not due before half of the bytes have come.
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

// next returns the number of reclaimable bytes at which to check again, when there are
// reclaimable now. It is halfway to the trigger, because the Go heap grows meanwhile,
// which lowers the trigger.
func next(reclaimable, trigger int64) int64 {
	if trigger == noBound {
		return reclaimable + floor
	}
	return reclaimable + max((trigger-reclaimable)/2, floor/8)
}

// nextBackoff returns the backoff after a collection that freed freed bytes, when
// came new bytes had come since the collection before.
func nextBackoff(backoff, freed, came int64) int64 {
	switch {
	case freed < came/8:
		return min(2*backoff, mostBackoff)
	case freed > came/4:
		return max(backoff/2, 1)
	}
	return backoff
}
