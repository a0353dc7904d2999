package resident

import (
	"cmp"
	"slices"
	"time"
)

// A Point is what is kept of a reading, so that growth can be told.
type Point struct {
	time    time.Time
	parts   [kinds]int64 // with what was swapped out
	mapped  bool
	cError  int64 // of what C has in use
	live    int64 // of Go
	routine int64 // goroutines
	threads int64
	holders map[string]Holder // pools and heaps
}

// Point returns what is kept of a reading.
func (r *Reading) Point() Point {
	t := r.Table()
	return r.point(&t)
}

// point is Point for a reading whose table is known.
func (r *Reading) point(t *Table) Point {
	p := Point{
		time: r.Time, mapped: r.Mappings != nil, cError: r.C.Error, live: r.Go.Live, routine: r.Go.Goroutines,
		threads: r.Kernel.Threads, holders: map[string]Holder{},
	}
	for _, part := range t.Parts {
		p.parts[part.Kind] += part.Bytes + part.Swap
	}
	used, _ := r.inUse()
	p.parts[MallocFree] -= max(0, r.C.Most-used) // what has been free since the point before
	for _, h := range r.Pools {
		p.holders["pool "+h.Name] = p.holders["pool "+h.Name].plus(h)
	}
	for _, h := range r.Heaps {
		p.holders["heap "+h.Name] = p.holders["heap "+h.Name].plus(h)
	}
	return p
}

func (h Holder) plus(o Holder) Holder { return Holder{o.Name, h.Bytes + o.Bytes, h.Count + o.Count} }

// A History has points, the oldest first. It keeps the whole time since the first one: when it is full,
// every second point is dropped, and from then on points are twice as far from each other.
type History struct {
	points []Point
	apart  time.Duration

	// A recording is shorter than the life of a server. These are the least time between two points, and the
	// least that growth is told of; 0 is a second, and 20.
	Apart, Watched time.Duration
}

const (
	mostPoints = 48
	leastApart = time.Second
)

// Add adds a point, and reports true, unless the last one is too close.
func (h *History) Add(p Point) bool {
	n := len(h.points)
	if n > 0 && p.time.Sub(h.points[n-1].time) < max(h.apart, cmp.Or(h.Apart, leastApart)) {
		return false
	}
	if n == mostPoints {
		for i := range n / 2 {
			h.points[i] = h.points[2*i]
		}
		clear(h.points[n/2:])
		h.points = h.points[:n/2]
		h.apart = 2 * max(h.apart, cmp.Or(h.Apart, leastApart))
	}
	h.points = append(h.points, p)
	return true
}

// Growth is how much a number has grown.
type Growth struct {
	By    int64
	Over  time.Duration // of the points
	Error int64         // the standard deviation of By, where that is an estimate; 0 if it is not known
}

const (
	leastWatched = 20 * time.Second // growth is not told earlier
	leastPoints  = 9
)

// grown reports whether a number grows steadily. If the time is divided by three, each point of a later third
// is larger than all of the one before, the middles of two thirds are a sixth of the whole growth from each
// other, and that is at least least, and an eighth of what there is now. A number that rises in steps, as the
// reachable Go objects do at each collection, may be at the start of a third what it was at the end of the one
// before, if it rises in both. So what is filled once does not grow
// at the end, and what goes up and down, such as garbage, does not grow. The time is all, or the last half
// or quarter, so that growth is seen that has begun late. Points are no measure of it: a recording has more of them while the
// memory rises, and a busy machine fewer.
func (h *History) grown(all []Point, least int64, of func(*Point) int64) (g Growth, ok bool) {
	last := all[len(all)-1].time
	for _, part := range []time.Duration{1, 2, 4} {
		if g, ok := h.steady(from(all, last.Add(-last.Sub(all[0].time)/part)), least, of); ok {
			return g, true
		}
	}
	return g, false
}

// from returns the points from a time on.
func from(all []Point, t time.Time) []Point {
	i, _ := slices.BinarySearchFunc(all, t, func(p Point, t time.Time) int { return p.time.Compare(t) })
	return all[i:]
}

// until returns the points before one, and that.
func (h *History) until(now *Point) []Point {
	points := h.points
	for len(points) > 0 && !points[len(points)-1].time.Before(now.time) {
		points = points[:len(points)-1] // now is among them
	}
	return append(points[:len(points):len(points)], *now)
}

// steady is grown for a list of points.
func (h *History) steady(all []Point, least int64, of func(*Point) int64) (g Growth, ok bool) {
	n := len(all)
	if n < leastPoints || all[n-1].time.Sub(all[0].time) < cmp.Or(h.Watched, leastWatched) {
		return g, false
	}
	g = Growth{By: of(&all[n-1]) - of(&all[0]), Over: all[n-1].time.Sub(all[0].time)}
	if g.By < least+of(&all[n-1])/8 {
		return g, false
	}
	var highest, middle int64
	rose := false
	start := all[0].time
	for third := range time.Duration(3) {
		points := all
		if third < 2 {
			all = from(all, start.Add((third+1)*g.Over/3))
			points = points[:len(points)-len(all)]
		}
		if len(points) == 0 {
			return g, false
		}
		low, high := of(&points[0]), of(&points[0])
		for i := range points {
			low, high = min(low, of(&points[i])), max(high, of(&points[i]))
		}
		step := low == highest && rose && high > low
		if third > 0 && (low <= highest && !step || (low+high)/2-middle < g.By/6) {
			return g, false
		}
		highest, middle, rose = high, (low+high)/2, high > low
	}
	return g, true
}
