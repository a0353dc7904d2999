package cmem

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/google/pprof/profile"
)

// A Watch looks for stacks that keep growing. [NewWatch] makes one.
//
// A stack is a suspect if its bytes in use have grown in each of the last intervals, and if their
// growth in these intervals together is more than five times the standard deviation of that
// estimate. So chance alone hardly makes a suspect: a stack with small blocks needs about 25
// samples of growth, which are 13 MiB with [DefaultRate]. A stack with blocks larger than the
// rate needs a few.
//
// A program whose memory comes and goes in waves has suspects while a wave rises. An interval
// should be longer than a wave. Bytes that change from interval to interval without a trend grow six times in a row
// once in 5,040 times, and twelve times once in 6 × 10⁹.
type Watch struct {
	intervals int

	mu       sync.Mutex
	readings [][]reading // of all stacks, by their numbers, at the beginning of each of the last intervals
}

// A reading is what a stack had in use at a time.
type reading struct{ live, allocVar, freeVar float64 }

func (r reading) variance() float64 { return max(0, r.allocVar-r.freeVar) }

// A Suspect is a stack whose bytes in use keep growing.
type Suspect struct {
	Library    string // as in [Library]
	Live       int64  // bytes in use, an estimate
	Grown      int64  // their growth in all intervals together, an estimate
	GrownError int64  // the standard deviation of Grown, at most
	Stack      []Frame
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
	return &Watch{intervals: intervals}
}

// Look ends an interval and begins the next one. It returns the suspects, those that have grown the
// most first, and none before the first intervals have ended. The program decides when it calls
// Look: once in a minute finds a leak of some hundred KiB in a second within minutes, and once in
// an hour one of some KiB in a second within a day.
//
// A Watch keeps 24 bytes for each stack and interval.
func (w *Watch) Look() ([]Suspect, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var now []reading
	var found []Suspect
	suspects := map[int]bool{} // by their numbers
	full := len(w.readings) == w.intervals
	eachSite(func(s *site) {
		if now == nil {
			now = make([]reading, s.number+1) // the newest comes first
		}
		live, _ := s.live()
		r := reading{live, s.allocVar, s.freeVar}
		now[s.number] = r
		if full {
			if grown, deviation := w.grows(s.number, r); grown > 0 {
				found = append(found, Suspect{Live: round(live), Grown: round(grown), GrownError: round(deviation)})
				suspects[s.number] = true
			}
		}
	})
	if full {
		w.readings = append(w.readings[:0], w.readings[1:]...)
	}
	w.readings = append(w.readings, now)
	if len(found) == 0 {
		return nil, nil
	}
	stacks, p, err := snapshot(func(s *site) bool { return suspects[s.number] }) // in the same order
	if err != nil {
		return nil, err
	}
	b := p.NewBuilder(Rate())
	for i := range stacks {
		sample := b.Sample(stacks[i].known())
		found[i].Library, found[i].Stack = sample.Label["library"][0], framesOf(sample)
	}
	slices.SortStableFunc(found, func(x, y Suspect) int { return cmp.Compare(y.Grown, x.Grown) })
	return found, nil
}

// certain is by how many standard deviations a suspect has grown at least. If the bytes in use are
// constant, and all blocks are replaced in each interval, two estimates differ by that much once in
// 3,400,000 times. With five intervals the estimates in between rise as well in one of 24 of these.
const certain = 5

// grows returns by how much a stack has grown since the first reading, and the standard deviation of
// that, if it is a suspect; else 0.
func (w *Watch) grows(number int, now reading) (grown, deviation float64) {
	at := now
	for _, earlier := range slices.Backward(w.readings) {
		var before reading // all zero before the stack was seen first
		if number < len(earlier) {
			before = earlier[number]
		}
		if before.live >= at.live {
			return 0, 0
		}
		at = before
	}
	// The variance of the growth is that of the blocks in use at one of the two times, and not at the
	// other. Both bounds count more blocks: ends also those in use at both times, and calls also those
	// that were allocated and freed in between.
	ends := now.variance() + at.variance()
	calls := (now.allocVar - at.allocVar) + (now.freeVar - at.freeVar)
	grown, deviation = now.live-at.live, math.Sqrt(min(ends, calls))
	if grown <= certain*deviation {
		return 0, 0
	}
	return grown, deviation
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
