package pace

import (
	"time"

	"github.com/cheapgo/cheap/internal/account"
	"github.com/cheapgo/cheap/internal/gcwatch"
	"github.com/cheapgo/cheap/internal/span"
)

// What a program frees stays in malloc, and resident: after a burst, after a cache was emptied, and in
// the arenas of many threads. So, as a heap does, the package gives back what has been free for a
// second. There is a goroutine for that while memory outside the Go heap comes and goes:
//
//  1. Once a second it compares what is resident with what is known to be in use. This costs
//     some microseconds. If the difference was small three times, and little is counted, the goroutine
//     ends. The next check of the bounds at which 8 MiB are counted starts another one.
//  2. If the difference is large now and was a second ago, malloc is asked. That walks its free blocks,
//     so it takes one percent of the time at most.
//  3. If much is free, malloc gives it back.
//  4. If most of that is resident again a second later, the program needed it: the pause
//     before the next time doubles.

const (
	// Free memory up to this and an eighth of what is in use stays: it will be used again.
	giveLeast = 8 << 20

	// giveShare is the share of time for looking at malloc, and for having it give memory back.
	giveShare = 100

	giveCalm      = 3               // see step 1
	giveMostPause = 8 * time.Second // of step 4
)

// giveEach is how often the goroutine looks. Tests change it before Start.
var giveEach = time.Second

// A giver is what that goroutine knows, and the one after it. No other goroutine uses it.
type giver struct {
	stats  *stats
	reader reader

	base  int64     // resident bytes that are not counted and that malloc could not give back, when it was asked
	based time.Time // when that was
	free  int64     // resident bytes beyond that and what is counted, a second ago
	calm  int       // how many times in a row there were none

	asked time.Time // malloc is not asked before

	next  time.Time     // nor does it give memory back before
	pause time.Duration // of step 4

	before, after int64 // resident bytes when it did so the last time, if that is to be judged yet
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
	resident, held := anonymousBytes(), g.held()
	if g.before != 0 {
		g.judge(resident < g.after+(g.before-g.after)/2)
	}
	g.base = min(g.base, max(0, resident-held))
	if time.Since(g.based) > giveMostPause {
		g.base = 0 // it may have been freed
	}
	free := resident - held - g.base - giveLeast // as far as is known
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
	} else if !time.Now().Before(g.next) {
		g.giveBack(held)
	}
}

// held returns the bytes that are in use as far as is known without asking malloc.
func (g *giver) held() int64 {
	account.Process.Refresh()
	return g.reader.read().total + account.Process.Held() + int64(span.Idle())
}

// excessOf returns how many bytes malloc has free, and resident, beyond what may stay. Of resident bytes
// held are known to be in use.
func excessOf(s sample, resident, held int64) int64 {
	if !s.ok {
		return 0
	}
	outside := held - account.Process.HeldDeclared() // what is declared is in malloc, as far as malloc knows of it
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
	g.next = time.Now().Add(max(g.pause, giveShare*g.took))
	g.base, g.free = 0, 0
	if g.before-g.after < giveLeast/2 { // what looks free cannot be given back
		g.base, g.based = g.after-held, time.Now()
		g.judge(false)
	}
}

// judge is step 4: good says that it has brought something.
func (g *giver) judge(good bool) {
	if g.before = 0; good {
		g.pause = 0
		return
	}
	g.pause = min(max(2*g.pause, giveEach), giveMostPause)
	g.next = g.next.Add(g.pause)
}
