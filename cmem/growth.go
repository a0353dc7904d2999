package cmem

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"maps"
	"math"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cheapgo/cheap/cmem/heapprofile"
	"github.com/google/pprof/profile"
)

// A Watch looks for memory that keeps growing. [NewWatch] makes one.
//
// It looks at each stack, and at the sum of all stacks with the same functions of Go: an object that a library
// makes of forty parts has forty stacks, each of which grows by a fortieth. A suspect is a stack or a sum whose
// bytes in use have grown in each of the last intervals, and whose growth in these intervals together is more
// than five times the standard deviation of that estimate; or in the same way in intervals that are twice as
// long. So chance alone hardly makes a suspect: small
// blocks need about 25 samples of growth, which are 13 MiB with [DefaultRate]. Blocks larger than the
// rate need a few.
//
// A program whose memory comes and goes in waves has suspects while a wave rises. An interval
// should be longer than a wave. Bytes that change from interval to interval without a trend grow six times in a row
// once in 5,040 times, and twelve times once in 6 × 10⁹.
type Watch struct {
	mu     sync.Mutex
	stacks trend // of all stacks, by their numbers
	sums   trend // of all sums, by theirs

	sumOf []int32          // by the number of a stack: that of its sum; -1 if it has no functions of Go
	byGo  map[uint64]int32 // the sums, by a hash of the functions of Go

	found []Suspect // by the last look
	err   error
}

// A Suspect is a stack whose bytes in use keep growing, or the sum of several with the same functions of Go.
type Suspect struct {
	Library    string  // as in [Library], of Stack
	Live       int64   // bytes in use, an estimate
	Grown      int64   // their growth in all intervals together, an estimate
	GrownError int64   // the standard deviation of Grown, at most
	Stacks     int     // how many stacks have grown, or 1
	Labels     string  // of the goroutines: those of three quarters of what Stack has in use, such as "route=/a tenant=7"
	Line       Frame   // in the program's main module, the innermost; or else in Go
	Stack      []Frame // the one that has grown the most
}

// A Frame is a call on a stack.
type Frame struct {
	Function string // or, of C without symbols, the file and an address in it
	File     string // of source code; of C, the file that is mapped
	Line     int    // 0 in C
}

// NewWatch returns a Watch that compares the last intervals, at least one. The first begins with
// the first call of [Watch.Look].
func NewWatch(intervals int) *Watch {
	if intervals < 1 {
		panic("cmem: NewWatch: less than one interval")
	}
	return &Watch{stacks: trend{intervals: intervals}, sums: trend{intervals: intervals}, byGo: map[uint64]int32{}}
}

// Every calls Look now, and whenever an interval has passed, until stop is called. [Watch.Suspects] returns
// what the last one has found. An interval is at least a second. A look takes some 0.1 ms for each thousand
// stacks.
func (w *Watch) Every(interval time.Duration) (stop func()) {
	var timer *time.Timer
	var mu sync.Mutex // timer is set
	mu.Lock()
	defer mu.Unlock()
	interval = max(interval, time.Second)
	stopped := false
	timer = time.AfterFunc(0, func() {
		_, _ = w.Look() // Suspects has the error
		mu.Lock()
		defer mu.Unlock()
		if !stopped {
			timer.Reset(interval)
		}
	})
	return func() {
		mu.Lock()
		defer mu.Unlock()
		stopped = true
		timer.Stop()
	}
}

// Suspects returns what the last call of Look has returned.
func (w *Watch) Suspects() ([]Suspect, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.found, w.err
}

// Look ends an interval and begins the next one. It returns the suspects, those that have grown the
// most first, and none before the first intervals have ended. The program decides when it calls
// Look: once in a minute finds a leak of some hundred KiB in a second within minutes, and once in
// an hour one of some KiB in a second within a day.
//
// A Watch keeps 48 bytes for each stack and interval, and as much for each sum.
func (w *Watch) Look() ([]Suspect, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	steady, _ := w.look(unlabelled(eachSite))
	w.found, w.err = named(steady)
	return w.found, w.err
}

// look ends an interval with the stacks that each calls its argument for, the newest first. It returns those that
// grow, and those that have grown lately. The lock is held.
func (w *Watch) look(each func(func(*site))) (steady, lately []*suspected) {
	var now []reading
	sums := make([]reading, len(w.byGo))
	each(func(s *site) {
		if now == nil {
			now = make([]reading, s.number+1)
		}
		live, _ := s.live()
		r := reading{live, s.allocVar, s.freeVar}
		now[s.number] = r
		if sum := w.sum(s); sum >= 0 {
			if n := int(sum) + 1 - len(sums); n > 0 {
				sums = append(sums, make([]reading, n)...)
			}
			sums[sum].add(r)
		}
	})
	steady, lately = w.suspects(now, sums, (*trend).grows), w.suspects(now, sums, (*trend).grewLately)
	w.stacks.add(now)
	w.sums.add(sums)
	return steady, lately
}

// sum returns the number of the sum of a stack, or -1.
func (w *Watch) sum(s *site) int32 {
	for len(w.sumOf) <= s.number {
		w.sumOf = append(w.sumOf, unknownSum)
	}
	at := &w.sumOf[s.number]
	if *at != unknownSum {
		return *at
	}
	*at = -1
	hash := fnv.New64a()
	for kind, pcs := range heapprofile.Parts(s.goPart) {
		for _, pc := range pcs {
			if kind == heapprofile.GoPart {
				*at = 0
				_ = binary.Write(hash, binary.NativeEndian, uint64(pc))
			}
		}
	}
	if *at < 0 {
		return -1
	}
	number, ok := w.byGo[hash.Sum64()]
	if !ok {
		number = int32(len(w.byGo))
		w.byGo[hash.Sum64()] = number
	}
	*at = number
	return number
}

const unknownSum = -2

// A suspected is a Suspect without names. stack is the number of the one that has grown the most.
type suspected struct {
	Suspect
	stack int
	most  float64 // its growth
}

// suspects returns the sums that grow by a rule, and the stacks that do without their sum.
func (w *Watch) suspects(now, sums []reading, grows func(*trend, int, reading) (grown, deviation float64)) (all []*suspected) {
	bySum := map[int32]*suspected{}
	for i, r := range sums {
		if grown, deviation := grows(&w.sums, i, r); grown > 0 {
			s := &suspected{Suspect: Suspect{Live: round(r.live), Grown: round(grown), GrownError: round(deviation)}, stack: -1}
			bySum[int32(i)] = s
			all = append(all, s)
		}
	}
	for i, r := range now {
		sum := bySum[w.sumOf[i]]
		if sum == nil {
			if grown, deviation := grows(&w.stacks, i, r); grown > 0 {
				all = append(all, &suspected{
					Suspect: Suspect{Live: round(r.live), Grown: round(grown), GrownError: round(deviation), Stacks: 1}, stack: i,
				})
			}
			continue
		}
		grown := r.live - w.stacks.first(i).live
		if grown > 0 {
			sum.Stacks++
		}
		if sum.stack < 0 || grown > sum.most {
			sum.stack, sum.most = i, grown
		}
	}
	return all
}

// named returns the suspects with the names of their stacks.
func named(all []*suspected) ([]Suspect, error) {
	if len(all) == 0 {
		return nil, nil
	}
	byStack := map[int]*suspected{}
	for _, s := range all {
		byStack[s.stack] = s
	}
	stacks, p, err := snapshot(func(s *site) bool { return byStack[s.number] != nil })
	if err != nil {
		return nil, err
	}
	b := p.NewBuilder(Rate())
	var found []Suspect
	for i := range stacks {
		s := &byStack[stacks[i].number].Suspect
		sample := b.Sample(stacks[i].known())
		s.Library, s.Stack = sample.Label["library"][0], framesOf(sample)
		s.Line, s.Labels = lineOf(s.Stack), mostLabels(&stacks[i])
		found = append(found, *s)
	}
	slices.SortStableFunc(found, func(x, y Suspect) int { return cmp.Compare(y.Grown, x.Grown) })
	return found, nil
}

// mostLabels returns those that three quarters of the bytes of a stack have.
func mostLabels(of *site) string {
	all, held := 0.0, map[string]float64{}
	eachSite(func(s *site) {
		if s.plain != of.id && s.id != of.id {
			return
		}
		live, _ := s.live()
		all += live
		for _, l := range labelsOf(s.labels) {
			held[l.Key+"="+l.Value] += live
		}
	})
	maps.DeleteFunc(held, func(_ string, n float64) bool { return n <= all/4*3 })
	return strings.Join(slices.Sorted(maps.Keys(held)), " ")
}

// A reading is what a stack, or a sum of stacks, had in use at a time.
type reading struct{ live, allocVar, freeVar float64 }

func (r reading) variance() float64 { return max(0, r.allocVar-r.freeVar) }

func (r *reading) add(s reading) {
	r.live += s.live
	r.allocVar += s.allocVar
	r.freeVar += s.freeVar
}

// A trend has the readings at the beginning of each of the last intervals, the oldest first, by numbers: as
// many as there are intervals, and as many before.
type trend struct {
	intervals int
	readings  [][]reading
}

func (t *trend) add(now []reading) {
	if len(t.readings) == longest*t.intervals {
		t.readings = append(t.readings[:0], t.readings[1:]...)
	}
	t.readings = append(t.readings, now)
}

// first returns the reading at the beginning of the last intervals.
func (t *trend) first(number int) reading { return t.back(number, min(t.intervals, len(t.readings))) }

// back returns the reading at the beginning of so many intervals: all zero before the number was seen first.
func (t *trend) back(number, intervals int) (r reading) {
	if intervals == 0 {
		return r
	}
	if then := t.readings[len(t.readings)-intervals]; number < len(then) {
		r = then[number]
	}
	return r
}

// certain is by how many standard deviations a suspect has grown at least. If the bytes in use are
// constant, and all blocks are replaced in each interval, two estimates differ by that much once in
// 3,400,000 times. With five intervals the estimates in between rise as well in one of 24 of these.
const certain = 5

// longest is how many intervals count as one, at most: half as much growth is seen in twice the time.
const longest = 2

// grows returns by how much a stack or sum has grown in the last intervals, and the standard deviation of
// that, if it is a suspect; else 0.
func (t *trend) grows(number int, now reading) (grown, deviation float64) {
	for step := 1; step <= longest && step*t.intervals <= len(t.readings); step++ {
		if t.rises(number, now, t.intervals, step) {
			return growth(t.first(number), now)
		}
	}
	return 0, 0
}

// grewLately is grows for the last two intervals, or the first one.
func (t *trend) grewLately(number int, now reading) (grown, deviation float64) {
	n := min(2, len(t.readings))
	if n == 0 || !t.rises(number, now, n, 1) {
		return 0, 0
	}
	return growth(t.back(number, n), now)
}

// rises reports whether a stack or sum has grown in each of the last intervals, of so many readings each, and enough in
// all of them.
func (t *trend) rises(number int, now reading, intervals, step int) bool {
	at := now
	for n := step; n <= step*intervals; n += step {
		before := t.back(number, n)
		if before.live >= at.live {
			return false
		}
		at = before
	}
	grown, deviation := growth(at, now)
	return grown > certain*deviation
}

// growth returns by how much the bytes in use have grown, and the standard deviation of that, at most.
func growth(then, now reading) (grown, deviation float64) {
	// The variance of the growth is that of the blocks in use at one of the two times, and not at the
	// other. Both bounds count more blocks: ends also those in use at both times, and calls also those
	// that were allocated and freed in between.
	ends := now.variance() + then.variance()
	calls := (now.allocVar - then.allocVar) + (now.freeVar - then.freeVar)
	return now.live - then.live, math.Sqrt(max(0, min(ends, calls)))
}

// mainModule is the path of the program's main module.
var mainModule = sync.OnceValue(func() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		return info.Main.Path
	}
	return ""
})

// lineOf returns the innermost frame of the program's main module, or else of Go, without the functions that
// cgo makes.
func lineOf(stack []Frame) (line Frame) {
	for _, f := range stack {
		if f.Line == 0 || strings.Contains(f.Function, "._Cfunc_") || strings.Contains(f.Function, "_cgo") {
			continue
		}
		rest, ok := strings.CutPrefix(f.Function, mainModule())
		if strings.HasPrefix(f.Function, "main.") || ok && mainModule() != "" && (rest[0] == '.' || rest[0] == '/') {
			return f
		}
		if line.Line == 0 {
			line = f
		}
	}
	return line
}

// framesOf returns the frames of a sample, innermost first.
func framesOf(sample *profile.Sample) []Frame {
	var all []Frame
	for _, l := range sample.Location {
		file := ""
		if l.Mapping != nil {
			file = l.Mapping.File
		}
		for _, line := range l.Line {
			all = append(all, Frame{line.Function.Name, cmp.Or(line.Function.Filename, file), int(line.Line)})
		}
	}
	return all
}

// text returns the line and the stack of a suspect in the format of a goroutine's trace.
func (s *Suspect) text() string {
	text := stackText(s.Stack)
	if s.Line.Line != 0 {
		text = stackText([]Frame{s.Line}) + "by way of\n" + text
	}
	if s.Labels != "" {
		text += "with the label " + s.Labels + "\n"
	}
	return text
}

// stackText returns frames in the format of a goroutine's trace.
func stackText(frames []Frame) string {
	var text strings.Builder
	for _, f := range frames {
		fmt.Fprintf(&text, "%s\n", f.Function)
		if f.Line > 0 {
			fmt.Fprintf(&text, "\t%s:%d\n", f.File, f.Line)
		} else if f.File != "" {
			fmt.Fprintf(&text, "\t%s\n", f.File)
		}
	}
	return text.String()
}
