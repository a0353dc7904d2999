package heappage

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/cheapgo/cheap/internal/figure"
)

const (
	mostGrowing = 5 // places that have grown until the end
	mostPlaces  = 7 // with the others
)

// Rank sets the places: those that have grown until the end, by how much, and then others, by what they have in use. One
// block in every bytes is sampled, in the mean. It returns a sentence about those that have grown, without a period,
// or "".
func (r *Recording) Rank(all []Place, every int64) (sentence string) {
	growing, whole := 0, int64(0)
	for i := range all {
		p := &all[i]
		since, more, ok := Grew(p.At, r.Moments, every)
		if !ok || p.Bytes < r.inUse()/100 {
			continue
		}
		growing, whole, p.more = growing+1, whole+more, more
		if p.Grew = "from the start on"; since > r.Moments[len(r.Moments)-1].At/6 {
			p.Grew = "from about " + seconds(since) + " on"
		}
	}
	slices.SortStableFunc(all, func(x, y Place) int {
		return cmp.Or(cmp.Compare(y.more, x.more), cmp.Compare(y.Bytes, x.Bytes))
	})
	others := slices.IndexFunc(all, func(p Place) bool { return p.more == 0 })
	if others < 0 {
		others = len(all)
	}
	r.Places = slices.Concat(all[:min(growing, mostGrowing)], all[others:])
	r.Places = r.Places[:min(len(r.Places), mostPlaces)]
	if growing == 0 {
		return ""
	}
	where := "at " + all[0].Name
	if growing > 1 {
		where = fmt.Sprintf("in %d places", growing)
	}
	half := 0 // the last moment of the first half
	for half+1 < len(r.Moments) && r.Moments[half+1].At <= r.Moments[len(r.Moments)-1].At/2 {
		half++
	}
	return fmt.Sprintf("C memory grew until the end %s, by %s from %s on", where, figure.Bytes(float64(whole)), seconds(r.Moments[half].At))
}

// seconds writes a time as page.js does.
func seconds(d time.Duration) string {
	if s := int(math.Round(d.Seconds())); s >= 120 {
		return fmt.Sprintf("%d min %d s", s/60, s%60)
	}
	return fmt.Sprintf("%.1f s", d.Seconds())
}

// inUse returns the bytes in use at the end.
func (r *Recording) inUse() (n int64) {
	for i := range r.Stacks {
		n += r.Stacks[i].InUse
	}
	return n
}

// line returns what a place has in use over time, as the points of a polyline of 100 by 20.
func (r *Recording) line(p Place) string {
	if len(p.At) < 2 || len(p.At) != len(r.Moments) {
		return ""
	}
	most, whole := max(slices.Max(p.At), 1), max(r.Moments[len(r.Moments)-1].At, 1)
	var b []byte
	for i, n := range p.At {
		b = fmt.Appendf(b, "%.1f,%.1f ", 100*float64(r.Moments[i].At)/float64(whole), 19-18*float64(n)/float64(most))
	}
	return string(b[:len(b)-1])
}

// Grew reports whether what a place has in use, at each moment, has grown until the end, and about since when. One block in
// every bytes is sampled, in the mean.
//
//  1. At the end there is more than at any moment of the first three quarters of the time.
//  2. What is more than the most of the first half is 1.5 times the standard deviation of a difference of samples, or more: a leak
//     of 20 MiB is found nearly always if one byte in 512 KiB is sampled, and a full cache that large is not accused.
//  3. It began where a line that is level and then rises fits best. A rise of which more than half comes in one step,
//     such as a table that is read at the start, is not looked at.
//
// Whether it is a leak, or a cache that is not full yet, the numbers do not say.
func Grew(at []int64, moments []Moment, every int64) (since time.Duration, more int64, ok bool) {
	n := len(moments)
	if len(at) != n || n < 8 {
		return 0, 0, false
	}
	whole, end := moments[n-1].At, at[n-1]
	var half, later int64
	for i, b := range at[:n-1] {
		if moments[i].At <= whole/2 {
			half = max(half, b)
		} else if moments[i].At <= whole/4*3 {
			later = max(later, b)
		}
	}
	more = end - half
	if end <= later || more <= 0 || float64(more) < 1.5*math.Sqrt(float64(every)*float64(end+half)) {
		return 0, 0, false
	}
	first := 0
	for i := 1; i < n; i++ {
		if at[i]-at[i-1] > end/2 {
			first = i
		}
	}
	return moments[first+bend(at[first:], moments[first:])].At, more, true
}

// bend returns the moment until which a line is level that rises from there on, and fits best: the sum of the squares of
// what it is off by is the least.
func bend(at []int64, moments []Moment) (best int) {
	least := math.Inf(1)
	for b := range max(len(at)-1, 0) {
		var n, x, y, xx, xy, yy float64
		for i, bytes := range at {
			t, v := max(moments[i].At-moments[b].At, 0).Seconds(), float64(bytes)
			n, x, y, xx, xy, yy = n+1, x+t, y+v, xx+t*t, xy+t*v, yy+v*v
		}
		sxx, sxy, syy := xx-x*x/n, xy-x*y/n, yy-y*y/n
		if off := syy - sxy*sxy/sxx; sxx > 0 && off < least {
			least, best = off, b
		}
	}
	return best
}
