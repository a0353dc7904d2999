package heappage

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/cheapgo/cheap/internal/page/figure"
)

const (
	mostGrowing = 5 // places that have grown until the end
	mostPlaces  = 7 // with the others

	leastMoments = 2 // in each quarter of the time

	certain = 1.645 // standard deviations, for a certainty of 95 %
)

// Rank sets the places: those that have grown until the end, by how much, and then others, by what they have in use. One
// block in every bytes is sampled, in the mean. It returns a sentence about the first of those that have grown, without a
// period, or "", and by how much that has grown.
func (r *Recording) Rank(all []Place, every int64) (sentence string, by int64) {
	all = r.joined(all, every)
	growing := 0
	for i := range all {
		p := &all[i]
		since, more, ok := Grew(p.At, r.Moments, every)
		if !ok || p.Bytes < r.inUse()/100 {
			continue
		}
		off := p.deviation(2*p.Bytes-more, every)
		if r.Renewed > 0 && float64(more) < float64(r.Renewed)+certain*off {
			continue
		}
		growing, p.more = growing+1, more
		p.Grew = "by " + figure.Bytes(float64(more))
		if off >= 1 {
			p.Grew += " ± " + figure.Bytes(off)
		}
		if since > r.Moments[len(r.Moments)-1].At/6 {
			p.Grew += " from about " + seconds(since) + " on"
		} else {
			p.Grew += " from the start on"
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
	r.Places = byFunction(r.Places[:min(len(r.Places), mostPlaces)])
	if growing == 0 {
		return "", 0
	}
	p := &all[0]
	sentence = "C memory grew until the end at " + p.Name
	if p.Caller != "" {
		sentence += ", called by " + p.Caller
	}
	if p.Labels != "" {
		sentence += ", with the label " + p.Labels
	}
	sentence += ", " + p.Grew
	if growing > 1 {
		sentence += fmt.Sprintf(", and less at %s", figure.Plural(growing-1, "other place"))
	}
	return sentence, p.more
}

// deviation returns the standard deviation of the difference of two estimates that have so many bytes together. A block of n bytes
// is sampled with the probability 1-exp(-n/every), so of large ones, such as megabytes, hardly any is missed.
func (p *Place) deviation(sum, every int64) float64 {
	if every <= 1 {
		return 0
	}
	size := float64(p.Bytes) / float64(max(p.Blocks, 1))
	return math.Sqrt(float64(sum) * size / math.Expm1(size/float64(every)))
}

// joined makes one place of those of one line that have grown: whatever functions it has called, it has grown by one figure.
func (r *Recording) joined(all []Place, every int64) (list []Place) {
	at := map[string]int{} // in list
	for _, p := range all {
		if _, _, ok := Grew(p.At, r.Moments, every); ok {
			if i, ok := at[p.Name]; ok {
				was := &list[i]
				if p.Bytes > was.Bytes {
					was.By, was.Caller = p.By, p.Caller
				}
				if p.Labels != was.Labels {
					was.Labels = ""
				}
				was.Bytes, was.Blocks, was.At = was.Bytes+p.Bytes, was.Blocks+p.Blocks, slices.Clone(was.At)
				for m, n := range p.At {
					was.At[m] += n
				}
				continue
			}
			at[p.Name] = len(list)
		}
		list = append(list, p)
	}
	return list
}

// byFunction puts the lines of a function together, where the first one of them is.
func byFunction(all []Place) []Place {
	first := map[string]int{}
	for i, p := range all {
		if _, ok := first[p.Function()]; !ok {
			first[p.Function()] = i
		}
	}
	slices.SortStableFunc(all, func(x, y Place) int { return cmp.Compare(first[x.Function()], first[y.Function()]) })
	for i := range all {
		all[i].Follows = i > 0 && all[i].Function() == all[i-1].Function()
	}
	return all
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

// Grew reports whether what a place has in use, at each moment, has grown until the end, by how much and about since when. One
// block in every bytes is sampled, in the mean.
//
//  0. Each quarter of the time has moments.
//  1. At the end there is more than at any moment of the first three quarters of the time.
//  2. It is more than the most of the first half, with a certainty of 95 %: samples of a level would be so many more than
//     before in one of 20 cases, by the normal approximation with its correction for small numbers. So is the mean of the
//     last quarter, and a line through the last half rises, which is not so where blocks of any size are replaced.
//  3. It began where a line that is level and then rises fits best. A rise of which more than half comes in one step,
//     such as a table that is read at the start, is not looked at.
//  4. The last half of the time of the rise has a quarter of it or more, and the last quarter a sixteenth: what is nearly full, or
//     has stopped, does not grow.
//  5. It has never fallen by half of what it has risen in that half, as what is emptied again and again does, and what goes up
//     and down by chance, however few moments have seen it.
//
// Whether it is a leak, or a cache that is not full yet, the numbers do not say.
func Grew(at []int64, moments []Moment, every int64) (since time.Duration, by int64, ok bool) {
	n := len(moments)
	if len(at) != n || n < 8 {
		return 0, 0, false
	}
	whole, end := moments[n-1].At, at[n-1]
	var quarters [4]int // a busy machine may leave out moments
	for _, m := range moments {
		quarters[min(3, 4*m.At/max(whole, 1))]++
	}
	if slices.Min(quarters[:]) < leastMoments {
		return 0, 0, false
	}
	var half, later int64
	last, lasts := int64(0), int64(0) // the sum of the last quarter, and how many
	for i, b := range at {
		switch {
		case moments[i].At <= whole/2:
			half = max(half, b)
		case moments[i].At <= whole/4*3:
			later = max(later, b)
		default:
			last, lasts = last+b, lasts+1
		}
	}
	mean := last / lasts // the end is one of them
	if end <= later || mean <= half || float64(end-half-every) < certain*math.Sqrt(float64(every)*float64(end+half)) {
		return 0, 0, false
	}
	first := 0
	for i := 1; i < n; i++ {
		if at[i]-at[i-1] > end/2 {
			first = i
		}
	}
	first += bend(at[first:], moments[first:])
	since, by = moments[first].At, end-at[first]
	var most, fell, middle, before int64 // at the middle of the rise, and before its last quarter
	for i := range at {
		most = max(most, at[i])
		fell = max(fell, most-at[i])
		if moments[i].At <= whole-(whole-since)/2 {
			middle = at[i]
		}
		if moments[i].At <= whole-(whole-since)/4 {
			before = at[i]
		}
	}
	lately := end - middle
	if by <= 0 || lately < by/4 || fell > lately/2 || end-before <= 0 || end-before < by/16 || !rises(at[n/2:], moments[n/2:]) {
		return 0, 0, false
	}
	return since, by, true
}

// rises reports whether a line through the points rises by three times its standard error.
func rises(at []int64, moments []Moment) bool {
	var n, x, y, xx, xy, yy float64
	for i, bytes := range at {
		t, v := moments[i].At.Seconds(), float64(bytes)
		n, x, y, xx, xy, yy = n+1, x+t, y+v, xx+t*t, xy+t*v, yy+v*v
	}
	sxx, sxy, syy := xx-x*x/n, xy-x*y/n, yy-y*y/n
	return sxy > 0 && sxy*sxy > 9*max(0, syy*sxx-sxy*sxy)/max(n-2, 1)
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
