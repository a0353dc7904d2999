package pace

import (
	"time"

	"github.com/cheapgo/cheap/internal/account"
	"github.com/cheapgo/cheap/internal/gcwatch"
	"github.com/cheapgo/cheap/internal/span"
)

// Memory that a program frees stays in malloc, and resident: after a burst, after a cache was emptied,
// and in the arenas of many threads. So the package has malloc give back what was free for a second. A
// goroutine does that while giveLeast bytes or more are counted outside the Go heap:
//
//  1. Once a second it compares what is resident with what is known to be in use. This costs
//     some microseconds. If the difference was small giveCalm times in a row, and less than giveLeast is
//     counted, the goroutine ends. setBounds starts another one when giveLeast is counted again.
//  2. If the difference is large now, and was large a second ago, the goroutine reads how much malloc has
//     free. malloc walks its free blocks for that, so this takes one percent of the time at most.
//  3. If much is free, malloc gives it back.
//  4. If most of these bytes are resident again a second later, the program needed them: the pause
//     before the next step 3 doubles. When the program has been quiet giveCalm times in a row, which
//     means that neither number of step 1 has changed by a 256th, that pause is over.

const (
	// Free memory stays in malloc up to giveLeast plus an eighth of what is in use: it will be used again.
	giveLeast = 8 << 20

	// Step 2, and likewise step 3, takes one part in giveShare of the time at most.
	giveShare = 100

	giveCalm      = 3               // see steps 1 and 4
	giveMostPause = 8 * time.Second // of step 4
)

// giveEach is the time from one step 1 to the next. Tests change it before Start.
var giveEach = time.Second

// A giver is what the goroutine knows. When it has ended, the next one goes on with it. No other
// goroutine uses it.
type giver struct {
	stats  *stats
	reader reader

	base  int64 // resident bytes beyond held that malloc could not give back, as step 2 or 3 found at based
	based time.Time
	free  int64 // the difference of step 1 a second ago: resident - held - base - giveLeast
	calm  int   // how many times in a row free was 0 or less

	resident, held int64 // the numbers of step 1 a second ago
	quiet          int   // how many times in a row they were about the same

	asked time.Time // no step 2 before this time

	next     time.Time     // no step 3 before this time, unless the program is quiet
	earliest time.Time     // no step 3 before this time
	pause    time.Duration // of step 4

	before, after int64 // resident bytes before and after the last step 3; before is 0 if step 4 has judged it
	took          time.Duration
}

// startGiver starts the goroutine if there is none and there may be something to give back. The caller
// holds p.mu.
func (p *pacer) startGiver() {
	if p.giving || account.Process.Held() < giveLeast || p.state() == stopped || gcwatch.InBubble() {
		return
	}
	if account.Process.Malloc() == nil || anonymousBytes() == 0 {
		return
	}
	p.giving = true
	p.goUntilOver(p.give)
}

func (p *pacer) give(over <-chan struct{}) {
	defer p.tasks.Done()
	g := &p.giver
	g.stats, g.calm = &p.stats, 0
	timer := time.NewTicker(giveEach)
	defer timer.Stop()
	for {
		select {
		case <-over:
			return
		case <-timer.C:
		}
		g.round()
		if g.calm < giveCalm || account.Process.Held() >= giveLeast {
			continue
		}
		p.mu.Lock()
		p.giving = false
		p.mu.Unlock()
		return
	}
}

// round is steps 1 to 4.
func (g *giver) round() {
	resident, held := anonymousBytes(), g.heldBytes()
	g.listen(resident, held)
	if g.before != 0 {
		g.judge(resident < g.after+(g.before-g.after)/2)
	}
	g.base = min(g.base, max(0, resident-held))
	if time.Since(g.based) > giveMostPause {
		g.base = 0 // it may have been freed
	}
	free := resident - held - g.base - giveLeast // an estimate, without reading malloc
	was := g.free
	if g.free = free; free <= 0 {
		g.calm++
		return
	}
	g.calm = 0
	if was <= 0 || time.Now().Before(g.asked) {
		return
	}
	s := takeSample(&g.reader)
	g.asked = time.Now().Add(giveShare * s.took)
	if excessOf(s, resident, held) == 0 {
		g.base, g.based = resident-held, time.Now()
	} else if g.mayGiveBack(time.Now()) {
		g.giveBack(held)
	}
}

// listen notes the numbers of step 1, and whether the program is quiet.
func (g *giver) listen(resident, held int64) {
	if abs(resident-g.resident)+abs(held-g.held) <= resident/256 {
		g.quiet++
	} else {
		g.quiet = 0
	}
	g.resident, g.held = resident, held
}

// mayGiveBack reports whether step 3 may be done.
func (g *giver) mayGiveBack(now time.Time) bool {
	return !now.Before(g.next) || g.quiet >= giveCalm && !now.Before(g.earliest)
}

// heldBytes returns the bytes that are known to be in use, without reading malloc.
func (g *giver) heldBytes() int64 {
	account.Process.Refresh()
	return g.reader.read().total + account.Process.Held() + int64(span.Idle())
}

// excessOf returns how many bytes malloc has free, and resident, beyond what may stay. held of the
// resident bytes are known to be in use.
func excessOf(s sample, resident, held int64) int64 {
	if !s.ok {
		return 0
	}
	outside := held - account.Process.HeldDeclared() // bytes that are not malloc's; declared ones are
	free := min(s.free, resident-outside-s.used)
	return max(0, free-giveLeast-s.used/8)
}

// giveBack is step 3.
func (g *giver) giveBack(held int64) {
	begin := time.Now()
	g.before = anonymousBytes()
	account.Process.Malloc().Trim()
	g.took = time.Since(begin)
	g.after = anonymousBytes()
	g.stats.trims.Add(1)
	g.stats.trimmed.Add(max(0, g.before-g.after))
	g.earliest, g.next = time.Now().Add(giveShare*g.took), time.Now().Add(max(g.pause, giveShare*g.took))
	g.base, g.free = 0, 0
	if g.before-g.after < giveLeast/2 { // malloc cannot give back what it counts as free
		g.base, g.based = g.after-held, time.Now()
		g.judge(false)
	}
}

// judge is step 4. good says that most of the bytes given back stayed away.
func (g *giver) judge(good bool) {
	if g.before = 0; good {
		g.pause = 0
		return
	}
	g.pause = min(max(2*g.pause, giveEach), giveMostPause)
	g.next = g.next.Add(g.pause)
}
