//go:build amd64 || arm64

package main

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/pprof/profile"

	"github.com/cheapgo/cheap/cmd/cheap/internal/shared"
	"github.com/cheapgo/cheap/cmem/heapprofile"
	"github.com/cheapgo/cheap/internal/page/figure"
	"github.com/cheapgo/cheap/internal/page/heappage"
	"github.com/cheapgo/cheap/internal/watch/resident"
)

// A timeline keeps what the page shows over time: the parts of the resident memory, and what each stack has in use. When
// it is full it drops every second moment, and from then on moments are twice as far from each other.
type timeline struct {
	began   time.Time
	seen    time.Duration // when the program had memory last: it ends up to a second later on a busy machine
	apart   time.Duration
	points  []heappage.Point
	moments []timelineMoment
}

// A timelineMoment has the bytes in use of the stacks that there were, in the order of File.Sites: the newest first, and
// what was resident, or 0 if there is a point.
type timelineMoment struct {
	at       time.Duration
	inUse    []float64
	mapped   []float64 // likewise, of File.Mappings
	resident int64
}

const (
	mostMoments  = 64
	momentsApart = 200 * time.Millisecond // at first
)

// due reports whether enough time has passed since the last moment.
func (t *timeline) due() bool {
	n := len(t.moments)
	return n == 0 || time.Since(t.began)-t.moments[n-1].at >= max(t.apart, momentsApart)-partsEvery/2 // looks are partsEvery apart
}

// addMoment adds a moment.
func (t *timeline) addMoment(m timelineMoment) {
	if len(t.moments) == mostMoments {
		t.apart = 2 * max(t.apart, momentsApart)
		t.moments = everySecond(t.moments)
	}
	t.moments = append(t.moments, m)
}

// addPoint adds a point. A look takes longer than a moment, and is made when more is resident as well.
func (t *timeline) addPoint(r *resident.Reading) {
	if len(t.points) == mostMoments {
		t.points = everySecond(t.points)
	}
	t.points = append(t.points, pointOf(r.Time.Sub(t.began), r))
}

// toEnd returns the points, and one for each moment behind them, of which it is known only how much was resident: looks
// that take long are far from each other.
func (t *timeline) toEnd() []heappage.Point {
	points := slices.Clone(t.points)
	for _, m := range t.moments {
		if n := len(t.points); n > 0 && m.resident > 0 && m.at > t.points[n-1].At {
			points = append(points, heappage.Point{At: m.at, Bytes: append(make([]int64, len(pageSeries)-1), m.resident)})
		}
	}
	return points
}

// all returns the start, the moments, and the end of a program that has run so long. What was seen of it last may be long before
// that, if it has ended and nobody has waited for it.
func (t *timeline) all(took time.Duration) []heappage.Moment {
	list := []heappage.Moment{{}}
	for _, m := range t.moments {
		list = append(list, heappage.Moment{At: m.at})
	}
	if t.seen > 0 && took-t.seen > momentsApart {
		took = t.seen
	}
	return append(list, heappage.Moment{At: took})
}

// of returns what a stack had in use at each moment. It is number i of so many in the list of now, to which new stacks
// were added in front.
func (t *timeline) of(i, stacks int, list func(*timelineMoment) []float64) []int64 {
	var all []int64
	for k := range t.moments {
		n, list := 0.0, list(&t.moments[k])
		if at := i - (stacks - len(list)); at >= 0 {
			n = list[at]
		}
		all = append(all, int64(max(n, 0)))
	}
	return all
}

func everySecond[T any](list []T) []T {
	n := 0
	for i := 0; i < len(list); i += 2 {
		list[n] = list[i]
		n++
	}
	clear(list[n:])
	return list[:n]
}

// addSlowLeak has a verdict that names nothing say from how much on a leak shows. By rule 2 of heappage.Grew, what rises
// evenly from nothing has grown when there are 20 samples of it.
func addSlowLeak(v *resident.Verdict, rate int) {
	if v.About == resident.AboutNothing && !v.Fault && v.Sentence != "" && rate > 1 {
		v.Do = strings.TrimPrefix(v.Do+fmt.Sprintf("; a slow leak shows when about %s of it are in use: record longer, or with a smaller -rate", byteCount(int64(20*rate))), "; ")
	}
}

// sentence begins a text with a capital letter, and ends it with a period.
func sentence(text string) string {
	first, n := utf8.DecodeRuneInString(text)
	return string(unicode.ToUpper(first)) + strings.TrimSuffix(text[n:], ".") + "."
}

// pointOf returns what a reading says the resident memory is for.
func pointOf(at time.Duration, r *resident.Reading) heappage.Point {
	table := r.Table()
	sum := func(kinds ...resident.Kind) (n int64) {
		for _, k := range kinds {
			n += table.Of(k)
		}
		return n
	}
	n := []int64{
		sum(resident.CInUse, resident.MallocAll, resident.Unseparated),
		sum(resident.MallocFree),
		sum(resident.GoInUse, resident.GoIdle, resident.GoStacks, resident.GoRuntime),
		sum(resident.Mapped, resident.Sandbox, resident.SharedMemory, resident.CheapInUse, resident.CheapIdle, resident.CheapRecords),
	}
	rest := table.Resident
	for _, part := range n {
		rest -= part
	}
	return heappage.Point{At: at, Bytes: append(n, max(rest, 0), 0)}
}

// pageSeries are the numbers of a point.
var pageSeries = []heappage.Series{{Name: "C, in use", Color: 1}, {Name: "free inside malloc", Color: 4}, {Name: "Go", Color: 0}, {Name: "large mappings", Color: 3}, {Name: "code, files, stacks of threads", Color: 7}, {Name: "resident, not looked at", Color: 6}}

// makePage makes the page, and sets the verdict, the places and what was mapped.
func (r *recording) makePage(c shared.Counts, process *heapprofile.Process, sites []heapprofile.Site) *heappage.Recording {
	t := r.parts.recorded()
	took := r.took
	if took == 0 { // it runs
		took = time.Since(t.began)
	}
	page := &heappage.Recording{Program: filepath.Base(r.path), Version: version(), Series: pageSeries, Points: t.toEnd()}
	page.Facts = []string{fmt.Sprintf("C code called malloc and its like %s times, for %s, and free %s times. The program ran for %v.",
		figure.Thousands(int(c.Mallocs)), byteCount(c.Bytes), figure.Thousands(int(c.Frees)), took.Round(time.Millisecond))}
	if r.pid != 0 {
		page.Facts = append(page.Facts, sentence("calls are counted "+r.counted()))
	}
	for _, what := range r.parts.leavesOut() {
		page.Facts = append(page.Facts, sentence(what))
	}
	for _, a := range process.Allocators() {
		page.Facts = append(page.Facts, sentence(a))
	}
	if c.Samples == 0 {
		page.Facts = append(page.Facts, "There is no sample, so no stack is shown: the program has allocated little. Sample more with -rate.")
	} else {
		page.Facts = append(page.Facts, fmt.Sprintf("At most %s were in use, give or take %s, and %s.", byteCount(c.Peak), byteCount(c.PeakError), strings.Replace(inUse(c), " in use", " at the end", 1)))
	}
	page.Rate = "Every block was sampled, so the bytes of stacks are exact."
	if c.Samples == 0 {
		page.Rate = ""
	} else if r.rate > 1 {
		page.Rate = fmt.Sprintf("The bytes of stacks are estimates from %s, one in %s in the mean: at the peak they are off by %s (standard deviation).",
			figure.Plural(int(c.Samples), "sample"), byteCount(r.rate), byteCount(c.PeakError))
	}
	if c.Lost > 0 {
		page.Rate += fmt.Sprintf(" %s were lost, so the numbers are too small.", figure.Plural(int(c.Lost), "sample"))
	}
	page.Moments = t.all(took)
	b := process.NewBuilder(r.rate)
	var samples []*profile.Sample
	var at [][]int64
	for i := range sites {
		s := b.Sample(&sites[i])
		if s.Value[0] == 0 {
			continue
		}
		stack := heappage.Stack{
			Thread: "threads of Go", Allocated: s.Value[1], InUse: s.Value[3], Peak: s.Value[len(s.Value)-1],
			At: []int64{0},
		}
		library, labels := heappage.Labels(s.Label)
		stack.Library, stack.Labels = library, strings.Join(labels, " ")
		for _, l := range slices.Backward(s.Location) {
			for _, line := range slices.Backward(l.Line) {
				name := line.Function.Name
				if strings.HasPrefix(name, "[thread ") {
					stack.Thread = strings.TrimSuffix(strings.TrimPrefix(name, "[thread "), "]")
				}
				stack.Frames = append(stack.Frames, figure.Printable(name))
			}
		}
		if !r.program.IsGo && stack.Thread == "threads of Go" {
			stack.Thread = "the first thread"
		}
		stack.At = append(append(stack.At, t.of(i, len(sites), func(m *timelineMoment) []float64 { return m.inUse })...), stack.InUse)
		page.Stacks = append(page.Stacks, stack)
		samples, at = append(samples, s), append(at, stack.At)
	}
	g := grew{peak: int64(c.Peak)}
	module := moduleOf(r.program.At)
	places := placesInUse(samples, at, module)
	if len(places) > 0 {
		g.most = places[0].Name
	}
	if r.pid != 0 {
		page.Renewed = r.file.FreedBefore(c.Held)
	}
	g.sentence, g.by = page.Rank(places, int64(r.rate))
	all := make([]int64, len(page.Moments))
	for _, of := range at {
		for i, n := range of {
			all[i] += n
		}
	}
	_, _, g.all = heappage.Grew(all, page.Moments, int64(r.rate))
	g.freed = freedAtEnd(samples, at, all, page.Moments, module, int64(r.rate))
	g.mapped, g.mappedBy = r.mostMapped(process, module, &t, page.Moments)
	r.places = page.Places
	r.verdict, _ = r.parts.verdict(g)
	addSlowLeak(&r.verdict, r.rate)
	if !r.verdict.Fault && page.Renewed >= leastUnseen {
		r.verdict.Do = strings.TrimPrefix(fmt.Sprintf("%s; %s of what C had in use before were freed, and what is new may have taken their place, as in a full cache: record longer", r.verdict.Do, byteCount(page.Renewed)), "; ")
	}
	reportVerdict(r.verdict, "the flame graph", func(label, format string, args ...any) {
		text := sentence(fmt.Sprintf(format, args...))
		if label == "verdict" {
			page.Verdict = text
		} else {
			page.Do = text
		}
	})
	slices.SortStableFunc(page.Stacks, func(x, y heappage.Stack) int { return cmp.Compare(y.InUse, x.InUse) })
	return page
}
