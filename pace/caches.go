package pace

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cheapgo/cheap/internal/mem/account"
	"github.com/cheapgo/cheap/internal/mem/span"
	"github.com/cheapgo/cheap/internal/watch/gcwatch"
	"github.com/cheapgo/cheap/internal/watch/resident"
)

// A cache holds memory that Go can reach, so that no collection frees it, and that the program can do without. When
// room is short, before collections at the limit and before requests are refused, caches give way:
//
//  1. A look finds that less than Options.LeastRoom is free, or less than requests at the limit wait for (shortage).
//     While half of LeastRoom is free, caches wait for a collection that is due or under way.
//  2. press reads how much each cache holds, and picks the one that has most beyond its floor for its weight (pick).
//  3. The function of that cache runs on a goroutine of its own. press waits for 100 ms at most (grace). After that it
//     asks another cache if it is urgent, or if the call takes more than a second.
//  4. What is in use is compared with what was in use before the call. If less than half of what the function has
//     returned is free, the rest may be garbage of Go: a collection follows, and the runtime gives back what is free.
//     A collection also precedes the next call, and then every 16th, so that garbage of others does not count.
//     After each collection in vain twice as many collections are skipped as before.
//  5. Steps 2 to 4 are repeated until one and a half times LeastRoom is free. Then no cache is asked until less than
//     LeastRoom is free, so caches are not emptied and filled in turns. If more than half of LeastRoom is taken before
//     caches have given anything, both bounds rise by the excess, by half of LeastRoom at most (shortage.deep). Each
//     call lowers them again.
//
// A cache rests for 5 ms after a call, and longer if there was a collection. While there is no hurry, press waits for
// the cache that has most. If it is urgent, press asks another one meanwhile, but only for what ends the hurry. After
// each call in vain a cache rests twice as long as before, a second at most, or until a quarter more is needed. press
// does not wait for such a cache.

// A Share says how much of its memory a cache keeps when room is short, compared with other caches.
type Share struct {
	// Weight says how much a cache keeps beyond its Floor: one of weight 2 twice as much as one of weight 1. 0
	// means 1.
	Weight int

	// Floor is how many bytes a cache keeps in any case. A cache with a Floor needs Held.
	Floor int64

	// Held returns how many bytes the cache has. It runs where free does, before free is called and perhaps after
	// that. A cache without Held is asked first, even if it has nothing, for the part of what is missing that its
	// Weight says.
	Held func() int64
}

// OnPressure registers a cache: memory that the program can do without, and that no collection frees, because Go can
// reach it. Examples are a cache in C, buffers of a database, and a map. While a limit is set (see [Start]), free is
// called when less than Options.LeastRoom is free, or earlier where memory is taken fast, and when a request waits for
// room. It is to free want bytes, and returns about how many it has freed. What it makes unreachable counts as freed: a
// collection follows if less has become free than it returns. name is for people: [Stats] and package inspect show it.
// Two caches may have the same name.
//
// Of several caches, the one is asked that has most beyond its floor, divided by its weight. A cache with a limit of its
// own lowers that limit in free, and raises it slowly: a cache that fills again at once is asked all the time. OnPressure
// may be called before Start, and a registration lasts beyond [Stop].
//
// free runs on a goroutine of this package, never within a call that takes memory, and one call at a time for each
// registration. It may allocate, close owners, and call C. Requests that it makes are refused at once if there is no
// room. free and Held must not wait for a goroutine that waits for room, because that one may be waiting for free. So
// they take a lock by TryLock if a goroutine may request memory while it holds that lock. The first call that takes
// longer than a second is reported on stderr, with its stack and those of the requests that wait for room. A panic of
// free ends the program, as in any goroutine.
//
// end ends the registration: no call begins after it, and none runs when it returns. If free itself calls end, end
// returns at once. The caller must not hold a lock that free waits for.
//
// OnPressure panics with a [cheap.MisuseError] if free is nil, Weight or Floor is negative, or Floor is set without Held.
func OnPressure(name string, s Share, free func(want int64) (freed int64)) (end func()) {
	switch {
	case free == nil:
		panicMisuse("pace", "OnPressure", "the function of %q is nil", name)
	case s.Weight < 0 || s.Floor < 0:
		panicMisuse("pace", "OnPressure", "the share of %q is negative (weight %d, floor %d)", name, s.Weight, s.Floor)
	case s.Floor > 0 && s.Held == nil:
		panicMisuse("pace", "OnPressure", "%q has a floor; set Share.Held, so that it is known when that is reached", name)
	}
	s.Weight = max(s.Weight, 1)
	c := &cache{name: name, share: s, free: free}
	c.held.Store(-1)
	c.least = noBound
	caches.mu.Lock()
	defer caches.mu.Unlock()
	caches.count++
	c.number = caches.count
	caches.all = append(caches.all, c)
	return c.end
}

// A CacheStats has the counters of one registration by [OnPressure].
type CacheStats struct {
	Name   string
	Number uint64        // of the call of OnPressure, from 1
	Calls  int64         // how often free was called
	Asked  int64         // bytes that it was asked for, in all calls
	Freed  int64         // by how many bytes less was in use after the calls, in all: this is measured
	Time   time.Duration // that free took, in all calls
	Held   int64         // what Share.Held has returned last; -1 before that, and without Held
	Slow   bool          // a call of free or Held runs that has taken more than a second
}

// caches has what OnPressure has registered.
var caches struct {
	mu    sync.Mutex // no other lock is taken while it is held
	all   []*cache   // under mu; elements of the list do not change, because allCaches has returned it
	count uint64     // of calls of OnPressure; under mu
}

// A cache is one registration.
type cache struct {
	name   string
	number uint64
	share  Share
	free   func(want int64) int64

	held, calls, asked, freed, time atomic.Int64 // as in CacheStats

	by   atomic.Uintptr // the goroutine that runs free or Held, or 0
	slow atomic.Bool    // that call has taken more than slowAfter
	said atomic.Bool    // a slow call was reported

	// Under caches.mu.
	running chan struct{} // closed when the call that runs has ended; nil if none runs
	ended   bool          // by end
	rest    backoff       // until when the cache rests
	least   int64         // how many needed bytes end the rest; noBound if the last call was not in vain
	misses  int64         // how many calls in a row have freed little of what they were asked for, as far as is measured

	// Only the call that runs uses these: how many collections are still to be skipped, how many after the next one in
	// vain, and after how many calls in a row a collection has found what may be garbage of others.
	skip, skips, doubts int
}

const (
	// defaultLeastRoom is that of Options. Collections at the limit begin when nothing is free, and malloc gives
	// memory back when a 16th is left.
	defaultLeastRoom = 1.0 / 8

	// grace is how long press waits for a call before it asks another cache, and slowAfter after how long a call is
	// reported on stderr.
	grace, slowAfter = 100 * time.Millisecond, time.Second

	// leastFreed is the least number of bytes for which a collection is worth its time.
	leastFreed = 1 << 20

	// mostSkips is how many collections are skipped at most after one that was in vain.
	mostSkips = 1<<10 - 1

	// missesFault is after how many misses in a row the verdict names a cache, and claimsFault if Held has fallen in
	// the last one: others may take as much as it frees.
	missesFault, claimsFault = 3, 16
)

// A shortage says how much is missing.
type shortage struct {
	short  bool  // less than LeastRoom was free, and half as much again is not free yet
	need   int64 // bytes that caches are to free; 0 while a collection is about to free something
	urgent int64 // as many of them as end the hurry, which is that half of LeastRoom is not free, or that requests wait; or 0
	deep   int64 // the most bytes that lately came in a shortage before caches had given: see called
}

// find returns the shortage after a look that has found a space, where least is Options.LeastRoom.
func (h shortage) find(v view, s space, leastRoom float64) shortage {
	if s.room == noBound {
		return shortage{}
	}
	least := v.limit / 64 // less is not worth a call
	half := int64(leastRoom*float64(v.limit)) / 2
	low := 2*half + min(max(0, h.deep-half), half, (v.limit-2*half)/8) // half of LeastRoom is left while caches give
	enough := low + min(half, (v.limit-low)/2)
	if h.short = s.room < low || h.short && s.room < enough; h.short {
		h.deep = max(h.deep, low-s.room)
	}
	wanted := v.wanted - max(0, s.room)
	h.urgent, h.need = 0, 0
	if s.room < half || wanted > 0 {
		h.urgent = max(half-s.room, wanted, least)
	}
	if busy := v.state == due || v.state == collecting || v.state == draining; h.urgent > 0 || h.short && !busy {
		h.need = max(enough-s.room, wanted, least)
	}
	return h
}

// called notes that a cache was asked: what came before that matters less.
func (h *shortage) called() { h.deep -= h.deep / 32 }

// A stake is what pick knows of a cache.
type stake struct {
	weight, floor int64
	held          int64 // -1 if it is not known
	ready         bool  // it may be asked
	soon          bool  // it rests, or a call of it runs, and it may be asked after that
}

// pick returns the cache that is to give way when need bytes are needed, and how many bytes it is to free; or -1.
// Of those that are ready it is the one that has most beyond its floor for its weight. It is asked for as much as it
// has more than the next one, or for half of the need if that is more: others may not be ready. A cache of which
// it is not known what it has comes first, and is asked for the part of the need that its weight says. While one that has
// more rests or is called, the others end the hurry, and no more.
func pick(need, urgent int64, all []stake) (which int, want int64) {
	which = -1
	var weights, most, next, soon float64 // two weights may be more than an int64
	for i, s := range all {
		weights += float64(s.weight)
		level := math.Inf(1)
		if s.held >= 0 {
			level = float64(s.held-s.floor) / float64(s.weight)
		}
		if s.soon {
			soon = max(soon, level)
		}
		switch {
		case level > most && s.ready:
			which, most, next = i, level, most
		case level > next && level <= most:
			next = level
		}
	}
	if most < soon {
		need = min(need, urgent)
	}
	if which < 0 || need <= 0 {
		return -1, 0
	}
	s := all[which]
	if s.held < 0 {
		return which, max(1, int64(float64(need)*float64(s.weight)/weights))
	}
	more := int64((most - next) * float64(s.weight))
	if most >= soon && next > 0 && most > 2*next {
		need = max(need, min(2*need, more/2))
	}
	return which, min(need, s.held-s.floor, max(more, need/2, 1))
}

// rests reports whether the cache rests when need bytes are needed. The caller holds caches.mu.
func (c *cache) rests(need int64, now time.Time) bool { return !c.rest.allowed(now) && need < c.least }

// vain reports whether the last call of the cache was in vain. The caller holds caches.mu.
func (c *cache) vain() bool { return c.least != noBound }

// tell notes whether a call has helped when need bytes were needed, and how long the cache rests at least. The caller
// holds caches.mu.
func (c *cache) tell(helped bool, need int64, rest time.Duration) {
	if c.rest.set(helped, rest); helped {
		c.least = noBound
	} else {
		c.least = more(need)
	}
}

// askCaches notes a shortage, and starts press if caches are to free something, and one may be asked. The caller
// holds p.mu.
func (p *pacer) askCaches(h shortage) {
	was := p.shortage
	p.shortage = h
	if h == was && h.need == 0 || gcwatch.InBubble() {
		return
	}
	caches.mu.Lock()
	defer caches.mu.Unlock()
	if !h.short && h.need == 0 && len(caches.all) > 0 {
		p.gauge.fade() // caches grow without a collection, which fades it otherwise
	}
	if p.pressing && (h.urgent > 0 && was.urgent == 0 || h.need >= more(p.pressed)) {
		select {
		case p.hurry <- struct{}{}:
		default:
		}
	}
	if h.need > 0 && !p.pressing && slices.ContainsFunc(caches.all, func(c *cache) bool { return c.running == nil }) {
		p.pressing, p.hurry = true, make(chan struct{}, 1)
		p.goUntilOver(p.press)
	}
}

// wants has caches asked for n bytes that a request waits for, until done is called.
func (p *pacer) wants(n int64) (done func()) {
	if len(allCaches()) == 0 {
		return func() {}
	}
	p.wanted.Add(n)
	p.mu.Lock()
	p.adjust()
	p.mu.Unlock()
	p.tend()
	return func() { p.wanted.Add(-n) }
}

// press asks one cache after the other, as long as that may help.
func (p *pacer) press(over <-chan struct{}) {
	defer p.tasks.Done()
	for p.state() != stopped && p.pressOnce(over) {
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pressing = false
	p.adjust() // more may be needed since
}

// pressOnce asks one cache, or waits for one that rests. It returns false if none is to be asked.
func (p *pacer) pressOnce(over <-chan struct{}) bool {
	all := slices.Clone(allCaches())
	if begin := time.Now(); begin.After(p.readHeld) {
		for _, c := range all {
			if c.share.Held != nil {
				c.call(over, c.readHeld)
			}
		}
		p.readHeld = time.Now().Add(4 * time.Since(begin)) // a fifth of the time is enough for 1,000 caches
	}
	p.mu.Lock()
	p.adjust()
	need, urgent, hurry := p.shortage.need, p.shortage.urgent, p.hurry
	p.pressed = need
	p.mu.Unlock()
	p.tend()
	if need == 0 {
		return false
	}
	stakes, now := make([]stake, len(all)), time.Now()
	var rest time.Time // until when the cache rests that is to be asked next
	caches.mu.Lock()
	slices.SortStableFunc(all, func(a, b *cache) int { return a.rest.next.Compare(b.rest.next) }) // equal ones take turns
	for i, c := range all {
		may, rests, vain, until := c.running == nil, c.rests(need, now), c.vain(), c.rest.next
		soon := !vain && (rests && urgent > 0 || c.running != nil && !c.slow.Load())
		if !may {
			until = now.Add(backoffLeast)
		}
		stakes[i] = stake{int64(c.share.Weight), c.share.Floor, c.held.Load(), may && !(rests && (urgent > 0 || vain)), soon}
		if (may && rests || soon) && (rest.IsZero() || until.Before(rest)) {
			rest = until
		}
	}
	which, want := pick(need, urgent, stakes)
	for i, c := range all {
		if s := stakes[i]; which < 0 && s.ready && !c.rests(need, now) && s.held >= 0 && s.held <= s.floor { // it has nothing
			c.tell(false, need, 0)
			rest = c.rest.next
		}
	}
	if which >= 0 && all[which].rests(need, now) {
		which, rest = -1, all[which].rest.next
	}
	caches.mu.Unlock()
	switch {
	case which >= 0:
		c := all[which]
		c.call(over, func() { p.ask(c, want, need) })
		p.mu.Lock()
		p.shortage.called()
		p.mu.Unlock()
	case !rest.IsZero():
		await(over, hurry, rest.Sub(now))
	}
	return which >= 0 || !rest.IsZero()
}

// more returns how many needed bytes end the rest of a cache that was asked in vain when need bytes were needed.
func more(need int64) int64 { return need + need/4 }

// await returns when one of the channels is closed, or has a value, or after some time.
func await(over, done <-chan struct{}, most time.Duration) {
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-over:
	case <-done:
	case <-timer.C:
	}
}

// ask asks a cache for some bytes of those that are needed, and notes what has become free. It runs in call.
func (p *pacer) ask(c *cache, want, need int64) {
	held, rest, freed, helped := c.held.Load(), time.Duration(0), int64(0), false
	little := max(want/8, 1)
	defer func() { // also if the function ends the goroutine
		caches.mu.Lock()
		defer caches.mu.Unlock()
		if c.misses++; freed >= little || helped && want < leastFreed { // so little is not measured
			c.misses = 0
		}
		c.tell(helped && (held < 0 || want >= need/64), need, rest) // one that has so little is not asked all the time
	}()
	if c.doubts%16 == 1 && c.skip == 0 {
		rest, _ = p.collectFreed()
	}
	c.calls.Add(1)
	c.asked.Add(want)
	before, begin := p.taken(), time.Now()
	said := c.timed(func() int64 { return c.free(want) })
	c.time.Add(int64(time.Since(begin)))
	if span.Idle() >= leastFreed {
		span.TrimTo(0)
	}
	if freed = p.freedSince(before); said < leastFreed || freed >= said/2 {
		c.doubts = 0
	} else if c.skip--; c.skip < 0 {
		more, garbage := p.collectFreed()
		if freed = max(garbage, p.freedSince(before)); freed >= said/2 {
			rest, c.skips, c.doubts = rest+more, 0, c.doubts+1
		} else { // it was no garbage; others may have taken as much meanwhile
			rest, c.skips, c.doubts = 0, min(2*c.skips+1, mostSkips), 1
		}
		c.skip = c.skips
	}
	freed = min(max(0, freed), max(said, want)) // others may have freed something meanwhile
	c.freed.Add(freed)
	helped = freed >= little
	if c.share.Held != nil {
		c.readHeld()
		helped = helped || held-c.held.Load() >= little // others may have taken as much
	}
}

// readHeld notes how much the cache has. It runs in call.
func (c *cache) readHeld() { c.held.Store(max(0, c.timed(c.share.Held))) }

// A taking has the bytes that are in use, without those that are free in malloc, and those that owners have ever taken.
type taking struct{ inUse, ever int64 }

// taken returns what is in use.
func (p *pacer) taken() (t taking) {
	p.mallocMu.Lock()
	p.do(readTask)
	p.mallocMu.Unlock()
	p.mu.Lock()
	defer p.mu.Unlock()
	t.inUse = p.inUse
	_, t.ever = account.Process.Reclaimable()
	return t
}

// freedSince returns how many bytes became free. What owners have taken meanwhile is not missing.
func (p *pacer) freedSince(before taking) int64 {
	now := p.taken()
	came := now.ever - before.ever
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.metered.Load() {
		came = p.gauge.real(came)
	}
	return before.inUse - now.inUse + came
}

// collectFreed has the runtime collect what a function has forgotten, and give back what is free in its heap, and
// waits for the releases. It returns how long a cache rests for that, as MaxGCShare says, and by how many bytes the
// heap of Go is smaller. What is in use does not say this: a map that fills fast takes as much again at once.
func (p *pacer) collectFreed() (rest time.Duration, garbage int64) {
	var r reader
	before := r.read()
	sweeping := sweepOf(debug.FreeOSMemory)
	after := r.read()
	took := float64(after.cpu-before.cpu+sweeping) / float64(runtime.GOMAXPROCS(0))
	garbage = before.heap - after.heap
	drain(&r, true, p.patience())
	share := p.maxShare
	if p.scarce.Load() {
		share = max(share, hardShare)
	}
	return time.Duration(min(took/share, float64(backoffMost))), garbage
}

// call runs f on a goroutine of its own, if no other call of the cache runs. It returns when f has returned, after
// grace, or when over is closed: Stop does not wait for the program.
func (c *cache) call(over <-chan struct{}, f func()) {
	done := make(chan struct{})
	caches.mu.Lock()
	if c.running != nil || c.ended {
		caches.mu.Unlock()
		return
	}
	c.running = done
	caches.mu.Unlock()
	go func() {
		defer func() { // also if f ends the goroutine
			caches.mu.Lock()
			defer caches.mu.Unlock()
			c.running = nil
			close(done)
		}()
		f()
	}()
	await(over, done, grace)
}

// timed runs a function of the program.
func (c *cache) timed(f func() int64) int64 {
	timer := time.AfterFunc(slowAfter, c.saySlow)
	c.by.Store(gcwatch.GoroutineID())
	defer func() {
		timer.Stop()
		caches.mu.Lock()
		defer caches.mu.Unlock()
		c.by.Store(0)
		c.slow.Store(false)
	}()
	return f()
}

// end is what OnPressure returns.
func (c *cache) end() {
	caches.mu.Lock()
	c.ended = true
	caches.all = slices.DeleteFunc(slices.Clone(caches.all), func(x *cache) bool { return x == c })
	running := c.running
	caches.mu.Unlock()
	if running != nil && c.by.Load() != gcwatch.GoroutineID() {
		<-running
	}
}

// allCaches returns the caches. The caller does not change the list.
func allCaches() []*cache {
	caches.mu.Lock()
	defer caches.mu.Unlock()
	return caches.all
}

// inFree reports whether the calling goroutine runs free or Held of a cache. If it waited for room, it would wait for
// itself.
func inFree() bool {
	all := allCaches()
	return len(all) > 0 && slices.ContainsFunc(all, func(c *cache) bool { return c.by.Load() == gcwatch.GoroutineID() })
}

// saySlow notes that a call is slow, and reports it on stderr if no other one of the cache was reported.
func (c *cache) saySlow() {
	if !c.said.Swap(true) {
		all := make([]byte, 4<<20)
		all = all[:runtime.Stack(all, true)]
		var out strings.Builder
		fmt.Fprintf(&out, "cheap: pace: the function of OnPressure(%q) has run for a second. It must not "+
			"wait for a goroutine that waits for room:\n", c.name)
		for stack := range bytes.SplitSeq(all, []byte("\n\n")) {
			if bytes.Contains(stack, []byte("pace.(*cache).call.func")) || bytes.Contains(stack, []byte("pace.(*pacer).Wait(")) {
				fmt.Fprintf(&out, "\n%s\n", stack)
			}
		}
		fmt.Fprint(os.Stderr, out.String())
	}
	caches.mu.Lock()
	defer caches.mu.Unlock()
	c.slow.Store(c.by.Load() != 0)
}

// hope reports whether a cache may give something soon: a call runs, or the last one was not in vain.
func hope() bool {
	caches.mu.Lock()
	defer caches.mu.Unlock()
	return slices.ContainsFunc(caches.all, func(c *cache) bool { return !c.slow.Load() && (c.running != nil || !c.vain()) })
}

// cacheStats returns what Stats has of caches.
func cacheStats() (list []CacheStats) {
	for _, c := range allCaches() {
		list = append(list, CacheStats{
			c.name, c.number, c.calls.Load(), c.asked.Load(), c.freed.Load(), time.Duration(c.time.Load()), c.held.Load(),
			c.slow.Load(),
		})
	}
	return list
}

func init() {
	resident.Process.SetPace(func() (r resident.Pace) {
		if p := current.Load(); p != nil {
			r.Limit = p.most()
		}
		caches.mu.Lock()
		defer caches.mu.Unlock()
		for _, c := range caches.all {
			if c.misses >= claimsFault || c.misses >= missesFault && c.vain() || c.slow.Load() {
				r.Keepers = append(r.Keepers, resident.Keeper{
					Name: c.name, Held: c.held.Load(), Misses: c.misses, Asked: c.asked.Load(), Freed: c.freed.Load(), Slow: c.slow.Load(),
				})
			}
		}
		return r
	})
}
