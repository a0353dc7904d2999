package leaktest

import "math"

// How a leak is told from what comes and goes, from a cache that fills, and from what is made once.
//
// The calls of the function are in windows, each twice as long as the one before. Of a window counts the least that
// was in use after a call, the trough: a queue or a pool that empties once in a window has the same trough, however
// full it is at times. In use is a leak if
//
//  1. the trough has risen from each window to the next, and from the last one to the end; and
//  2. the last window has risen as fast for each call as those before, or at least half as fast; and
//  3. it still rises in the last quarter of the last window, unless it is the bytes of as many blocks that rise: a block
//     that becomes twice as large when it is full does so less and less often.
//
// Troughs of longer windows are lower, if chance makes them. So chance alone has four rise one after the other once in
// 10,000 times, and then they do not rise by twice as much each time. A cache that fills stops, and is acquitted by
// the first condition or the third; one that fills slower and slower, because it meets fewer new keys, by the second.
//
// After the first window, only what is more at its end than its trough goes on. If that is nothing, the check ends.

// warmUp is the number of the window before the first. It is as long, and nothing in it counts.
const warmUp = -1

// windows is how many windows there are: 1, 2, 4, 8, and 16 times as long as the first.
const windows = 5

// allStacks is the number of the sum of all stacks. It counts the blocks of all threads, and no bytes.
const allStacks = math.MaxInt32

// A growth sees what is in use after each call, and finds what grows.
type growth struct {
	runs     int // the calls in the first window
	now      int // the window: from warmUp to windows, where all are over
	readings int // in the window
	over     bool
	series   map[int]*series
}

// An amount is what a stack has in use.
type amount struct{ blocks, bytes float64 }

func (a amount) least(b amount) amount { return amount{min(a.blocks, b.blocks), min(a.bytes, b.bytes)} }

// A series has the troughs of a stack, of blocks and of bytes apart.
type series struct {
	troughs [windows]amount
	seen    [windows]bool
	late    amount // the trough of the last quarter of the last window
	last    amount
}

func newGrowth(runs int) *growth { return &growth{runs: runs, now: warmUp, series: map[int]*series{}} }

// length is how many calls the window has.
func (g *growth) length() int  { return g.runs << max(g.now, 0) }
func (g *growth) goesOn() bool { return g.now < windows && !g.over }

// add adds what a stack has in use. A reading begins with the sum of all stacks. After the first window, stacks that do
// not go on are left out.
func (g *growth) add(number int, blocks, bytes float64) {
	if number == allStacks {
		g.readings++
	}
	s := g.series[number]
	if s == nil {
		if g.now > 0 {
			return // it was not there in the first window: what is made once, later
		}
		s = new(series)
		s.seen[0] = g.readings > 1 // before, it had nothing
		g.series[number] = s
	}
	s.last = amount{blocks, bytes}
	trough := &s.troughs[g.now]
	if !s.seen[g.now] {
		s.seen[g.now], *trough = true, s.last
	}
	*trough = trough.least(s.last)
	switch quarter := g.length() / 4; {
	case g.now < windows-1:
	case g.readings <= 3*quarter:
		s.late = s.last
	default:
		s.late = s.late.least(s.last)
	}
}

// end ends a window, and acquits what has not grown. The sum of all stacks stays: it is needed for the others.
func (g *growth) end() {
	g.over = g.now != warmUp
	for number, s := range g.series {
		blocks, bytes := s.rises(g.now, blocksOf), s.rises(g.now, bytesOf)
		if blocks || bytes {
			g.over = false
		} else if number != allStacks {
			delete(g.series, number)
		}
	}
	g.now++
	g.readings = 0
}

func blocksOf(a amount) float64 { return a.blocks }
func bytesOf(a amount) float64  { return a.bytes }

// least is by how much a number has risen at least that is not a rounding error.
const least = 0.5

// rises reports whether the troughs have risen until the end of that window.
func (s *series) rises(window int, of func(amount) float64) bool {
	for i := range window {
		if of(s.troughs[i+1]) < of(s.troughs[i])+least {
			return false
		}
	}
	return of(s.last) >= of(s.troughs[window])+least
}

// grows reports whether a number is one of a leak, after the last window.
func (s *series) grows(of func(amount) float64) bool {
	const last = windows - 1
	before := (of(s.troughs[last]) - of(s.troughs[0])) / (1<<last - 1) // for as many calls as the first window has
	return s.rises(last, of) && of(s.last)-of(s.troughs[last]) >= before*(1<<last)/2
}

// goesOn reports whether a number has risen in the last quarter.
func (s *series) goesOn(of func(amount) float64) bool { return of(s.last) >= of(s.late)+least }

// A grown is a stack that leaks.
type grown struct {
	number        int
	blocks, bytes int64 // more than at first
}

// leaks returns the stacks that leak, after the last window.
func (g *growth) leaks() (all []grown) {
	if g.over {
		return nil
	}
	sum := g.series[allStacks]
	known := 0.0 // blocks of leaks whose stacks are known
	for number, s := range g.series {
		if number == allStacks {
			continue
		}
		blocks, bytes := s.last.blocks-s.troughs[0].blocks, s.last.bytes-s.troughs[0].bytes
		leaks := false
		switch {
		case number < 0:
			leaks = s.grows(bytesOf) && s.goesOn(bytesOf)
		case s.rises(windows-1, blocksOf):
			// Where the sum has not grown, a block from before the check, which is not sampled, has made room for each.
			leaks = s.grows(blocksOf) && s.goesOn(blocksOf) && sum.confirms(s)
		default:
			leaks = blocks < least && s.grows(bytesOf)
		}
		if leaks {
			all = append(all, grown{number, int64(blocks + least), int64(bytes + least)})
			known += blocks
		}
	}
	if rest := sum.last.blocks - sum.troughs[0].blocks; sum.grows(blocksOf) && sum.goesOn(blocksOf) && known < rest/2 {
		all = append(all, grown{allStacks, int64(rest + least), 0})
	}
	return all
}

// confirms reports whether the sum of all stacks has grown by at least half as many blocks as a stack.
func (sum *series) confirms(s *series) bool {
	const last = windows - 1
	return sum != nil && sum.last.blocks-sum.troughs[0].blocks >= (s.troughs[last].blocks-s.troughs[0].blocks)/2
}
