package pace

import (
	"math"
	"slices"
	"time"
)

// A collector is what is known of the last collections.
type collector struct {
	baseline baseline
	based    time.Time // when the collection began after which that was taken
	backoff  int64
	cycles   int64            // collections that this package has started
	costs    [4]time.Duration // processor time of each of the last of them
	leads    [4]int64         // reclaimable bytes that came during each, its releases included

	futileEver  int64     // in state refused: the reclaimable bytes ever taken, when it began
	futileUntil time.Time // in state refused: when it ends at the latest
}

// An aim says when the next collection begins, and who gives way to it.
type aim struct {
	baseline baseline
	event    event // reached: a collection is due; resumed: it is not, and one may free something again
	at       int64 // number of reclaimable bytes at which a collection is due
	why      string
	bound    int64 // the number at which goroutines wait
	yieldAt  int64 // the number at which they yield, while a collection is due or under way
	roomy    bool  // there is so much room that nobody gives way to releases before

	// The numbers of reclaimable bytes at which, and below which, to look again.
	reclaimableAt, below int64
}

// aim returns the aim for what a look has read, where the limit leaves a space.
func (c *collector) aim(v view, s space) aim {
	a := aim{baseline: c.baseline, event: none}
	a.baseline.heap = v.live // of the last collection, whatever started it
	a.baseline.reclaimable = min(a.baseline.reclaimable, v.reclaimable)
	limited := s.ceiling != noBound
	switch {
	case limited:
		a.baseline.pays, a.why = floor, whyLimit
	case v.gogc < 0:
		a.baseline.pays, a.why = unlimited, whyOff
	default:
		a.baseline.pays, a.why = unlimited, whyGOGC
	}
	bound := a.baseline.bound(v.heap, v.gogc, c.backoff)
	if limited {
		// What may be held under the limit, less what is not reclaimable.
		least, soon := a.baseline.least(v.gogc, c.backoff)/2, s.ceiling-v.held
		if s.metered {
			least, soon = s.least, min(soon, s.left)
		}
		if s.scarce {
			least, a.why = 0, whyScarce
		}
		bound = min(bound, max(v.reclaimable+soon, a.baseline.reclaimable+least))
	}
	at := a.baseline.due(bound, c.lead(s.metered))
	if s.roomy {
		roomy := v.reclaimable + min(s.left, (s.ceiling-v.held)/2)
		bound = max(bound, roomy)
		if s.plenty {
			at = max(at, min(a.baseline.reclaimable+c.worth(v, s.ceiling-v.held), v.reclaimable+(roomy-v.reclaimable)/2))
			a.why = whyPlenty
		}
	}
	a.at, a.bound = at, bound
	if a.roomy = s.plenty || !limited; a.roomy {
		a.yieldAt = min(bound-max(bound-at, 0)/2, at+min(max(at-a.baseline.reclaimable, 0), noBound-at))
	}
	switch {
	case v.reclaimable >= at && v.reclaimable > 0:
		a.event = reached
	case v.ever != c.futileEver || v.at.After(c.futileUntil):
		a.event = resumed
	}
	a.reclaimableAt = next(v.reclaimable, at)
	// When half of the baseline was closed by hand, the bound is too high, and Check is called.
	if a.baseline.reclaimable > 2*floor {
		a.below = a.baseline.reclaimable / 2
	}
	return a
}

// Why a collection is due when it is: see Stats.Why.
const (
	whyGOGC   = "no limit: the Go heap and what is reclaimable have grown together as GOGC allows, and by what a collection is worth"
	whyOff    = "GOGC is off and there is no limit"
	whyPlenty = "half of the limit is free: what is dead has taken as much room, for as long, as a collection is worth"
	whyLimit  = "less than half of the limit is free: its releases are to end before goroutines wait"
	whyScarce = "there is no room under the limit"
)

// worth returns the number of bytes since the baseline that are worth a collection, where half of the limit is
// free and room bytes may come. A collection costs processor time, and to leave what is dead costs room for a
// time. So it is due when the second costs as much as the first:
//
//	∫ bytes since the baseline dt  =  processor time of a collection × room × roomPrice
//
// At a constant rate that is the square root rule of MemBalancer (Kirisame, Shenoy and Panchekha, OOPSLA 2022):
// bytes = √(2 × rate × cost × room × price).
func (c *collector) worth(v view, room int64) int64 {
	since := max(v.at.Sub(c.based).Seconds(), 1e-6)
	rate := float64(max(v.reclaimable-c.baseline.reclaimable, floor/8)) / since
	cost := (c.cost() + costBeside).Seconds()
	return int64(math.Sqrt(2 * rate * cost * float64(max(0, min(room, roomMost))) * roomPrice))
}

const (
	// roomPrice is how much processor time it is worth to have the whole room free for as long, and roomMost is
	// as much room as has a price: what is beyond that is free.
	roomPrice, roomMost = 2.75, 320 << 20

	// costBeside is the processor time of a collection that is in no metric: to start, to stop and to start
	// the world, to sweep, to wake workers, to walk. It was 1 to 1.5 ms in a server of images, on 2 processors.
	costBeside = time.Millisecond
)

// lead returns the most bytes that came during one of the last collections. Where the kernel would
// kill, and before the first collection, it is noBound, so the first one begins early.
func (c *collector) lead(metered bool) int64 {
	if metered && c.cycles == 0 {
		return noBound
	}
	return slices.Max(c.leads[:])
}

// note notes a collection that took cost, while lead reclaimable bytes came, of which came had come since the
// one before it began, and that freed freed.
func (c *collector) note(cost time.Duration, lead, freed, came int64) {
	c.backoff = nextBackoff(c.backoff, freed, came)
	if c.cycles++; c.cycles == 1 {
		c.costs = [4]time.Duration{cost, cost, cost, cost}
	}
	c.costs[c.cycles%int64(len(c.costs))] = cost
	c.leads[c.cycles%int64(len(c.leads))] = lead
}

// cost returns the processor time of a collection. The least of the last costs is taken as the real one: a
// higher one means that other processes took the processor meanwhile.
func (c *collector) cost() time.Duration { return slices.Min(c.costs[:]) }

// A baseline is the state after a collection and the releases that followed it.
type baseline struct {
	heap        int64 // reachable bytes of the Go heap
	reclaimable int64 // bytes outside that automatic release could still free
	pays        int64 // number of new bytes from which on a collection pays
}

const (
	// floor is the number of new bytes from which on a collection pays under a limit, and unlimited where there
	// is none.
	floor, unlimited = 8 << 20, 32 << 20

	// mostBackoff is the largest factor on floor, when collections free nothing. That on unlimited is smaller.
	mostBackoff = 8
)

// least returns the number of new bytes since the baseline that a collection requires:
//
//	max(pays, heap/3 * min(1, GOGC/100)) * min(backoff, 8 * 8 MiB/pays)
//
// backoff is 1, or more if the last collections freed little.
func (m baseline) least(gogc int, backoff int64) int64 {
	if gogc < 0 || gogc > 100 {
		gogc = 100
	}
	return max(m.pays, m.heap/300*int64(gogc)) * min(backoff, mostBackoff*floor/m.pays)
}

// bound returns the largest On, the number of reclaimable bytes before the releases of the next
// collection have run, for which one of the two holds:
//
//	On + Hnow <= (Ob + Hb) * (1 + GOGC/100) + 2 * least
//	On - Ob   <= 2 * least
//
// Ob and Hb are the baseline's, and Hnow is heap: the bytes of objects in the Go heap, dead
// ones included. gogc is negative if the collector is off; then there is no bound.
func (m baseline) bound(heap int64, gogc int, backoff int64) int64 {
	if gogc < 0 {
		return noBound
	}
	return max(m.reclaimable, m.goal(gogc)-heap) + 2*m.least(gogc, backoff)
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
