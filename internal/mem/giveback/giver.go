package giveback

import (
	"runtime/metrics"
	"time"

	"github.com/cheapgo/cheap/internal/mem/account"
	"github.com/cheapgo/cheap/internal/mem/span"
	"github.com/cheapgo/cheap/internal/watch/resident"
)

// Memory that a program frees stays in malloc, and resident: after a burst, after a cache was emptied,
// and in the arenas of many threads. So the package has malloc give back what was free for a second. A
// goroutine does that while Least bytes or more are counted outside the Go heap:
//
//  1. Once a second it compares what is resident with what is known to be in use. This costs
//     some microseconds. If the difference was small giveCalm times in a row, and less than Least is
//     counted, the goroutine ends. apply starts another one when Least is counted again.
//  2. If the difference is large now, and was large a second ago, the goroutine reads how much malloc has
//     free. malloc walks its free blocks for that, so this takes one percent of the time at most.
//  3. If much is free, malloc gives it back.
//  4. If most of these bytes are resident again a second later, the program needed them: the pause
//     before the next step 3 doubles. When the program has been quiet giveCalm times in a row, which
//     means that neither number of step 1 has changed by a 256th, that pause is over.

// Least is the number of counted bytes from which on there may be something to give back.
const Least = 8 << 20

const (
	// Free memory stays in malloc up to giveLeast plus an eighth of what is in use: it will be used again.
	giveLeast = Least

	// Step 2, and likewise step 3, takes one part in giveShare of the time at most.
	giveShare = 100

	giveCalm      = 3               // see steps 1 and 4
	giveMostPause = 8 * time.Second // of step 4
)

// Each is the time from one step 1 to the next. Tests change it before Begin.
var Each = time.Second

// A giver is what the goroutine knows. When it has ended, the next one goes on with it.
type giver struct {
	metrics [2]metrics.Sample

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
}

// give is the goroutine.
func give(over chan struct{}) {
	all.giving.Lock()
	defer all.giving.Unlock()
	g := &all.giver
	g.calm = 0
	timer := time.NewTicker(Each)
	defer timer.Stop()
	for {
		select {
		case <-over:
			return
		case <-timer.C:
		}
		g.round()
		if g.calm >= giveCalm && account.Process.Held() < giveLeast && !needed(over) {
			Tell()
			return
		}
	}
}

// needed reports whether a Use needs the goroutine always, or it has ended. Otherwise Wake may start another one.
func needed(over chan struct{}) bool {
	all.mu.Lock()
	defer all.mu.Unlock()
	for u := range all.uses {
		if u.always {
			return true
		}
	}
	if all.over == over {
		all.over = nil
		keep()
	}
	return false
}

// round is steps 1 to 4.
func (g *giver) round() {
	resident, held := anonymous(), g.heldBytes()
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
	excess, took := excessOf(anonymous(), held)
	g.asked = time.Now().Add(giveShare * took)
	if excess == 0 {
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
	g.metrics[0].Name, g.metrics[1].Name = "/memory/classes/total:bytes", "/memory/classes/heap/released:bytes"
	metrics.Read(g.metrics[:])
	return int64(g.metrics[0].Value.Uint64()-g.metrics[1].Value.Uint64()) + account.Process.Held() + int64(span.Idle())
}

// excessOf is step 2: it returns how many bytes malloc has free, and resident, beyond what may stay. held of the
// resident bytes are known to be in use.
func excessOf(anonymous, held int64) (excess int64, took time.Duration) {
	begin := time.Now()
	used, free, ok := account.Process.Malloc().Read()
	if took = time.Since(begin); !ok {
		return 0, took
	}
	resident.Process.Note(used, free, took)
	outside := held - account.Process.HeldDeclared() // bytes that are not malloc's; declared ones are
	free = min(free, anonymous-outside-used)
	return max(0, free-giveLeast-used/8), took
}

// giveBack is step 3.
func (g *giver) giveBack(held int64) {
	g.before = anonymous()
	returned, took := Trim()
	g.after = g.before - returned
	g.earliest, g.next = time.Now().Add(giveShare*took), time.Now().Add(max(g.pause, giveShare*took))
	g.base, g.free = 0, 0
	if returned < giveLeast/2 { // malloc cannot give back what it counts as free
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
	g.pause = min(max(2*g.pause, Each), giveMostPause)
	g.next = g.next.Add(g.pause)
}

func abs(n int64) int64 { return max(n, -n) }
