package pace

import "math"

// A mark is what there was after a collection, when what it found had been
// released.
type mark struct {
	heap int64 // bytes of the Go heap that were reachable
	auto int64 // bytes outside that automatic release could still give back
}

const (
	// floor is how many bytes have to come before a collection is worth while.
	floor = 8 << 20

	// mostBackoff is how many times that, where collections give nothing back.
	mostBackoff = 8
)

// least returns how many bytes have to have come since the mark. backoff is 1,
// or more where the last collections gave little back.
func (m mark) least(backoff int64) int64 { return max(floor, m.heap/3) * backoff }

// trigger returns at how many auto bytes a collection is due, when the Go heap has
// heap bytes of objects, dead ones included:
//
//	On + Hnow >= (Om + Hm) * (1 + GOGC/100), and On - Om exceeds a bound.
//
// gogc is negative where the collector is off; then none is ever due.
func (m mark) trigger(heap int64, gogc int, backoff int64) int64 {
	if gogc < 0 {
		return noBound
	}
	return max(m.auto+m.least(backoff)+1, m.goal(gogc)-heap)
}

// goal returns what heap and auto may grow to.
func (m mark) goal(gogc int) int64 {
	g := float64(m.auto+m.heap) * (1 + float64(gogc)/100)
	return int64(min(g, noBound/4))
}

const noBound = math.MaxInt64

// next returns at how many auto bytes to look again, when there are auto now. The
// heap grows meanwhile, which brings the trigger nearer, so it is half of the
// way.
func next(auto, trigger int64) int64 {
	if trigger == noBound {
		return auto + floor
	}
	return auto + max((trigger-auto)/2, floor/8)
}

// nextBackoff returns the backoff after a collection that gave freed bytes back,
// when came had come since the one before.
func nextBackoff(backoff, freed, came int64) int64 {
	switch {
	case freed < came/8:
		return min(2*backoff, mostBackoff)
	case freed > came/4:
		return max(backoff/2, 1)
	}
	return backoff
}
