package pace

import (
	"cmp"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/internal/mem/account"
	"github.com/cheapgo/cheap/internal/mem/giveback"
)

// # The files
//
//	pace.go            Start, Stop, SetLimit, Stats
//	account.go         Account
//	state.go           the states of the pacer, and what it consists of
//	decide.go          a look at all numbers, the plan that follows, and what is done by it
//	rule.go            the collector: how many bytes may come before a collection
//	gauge.go           the limit: how many bytes may come at all
//	sample.go          what malloc has in use and free
//	malloc.go          the returner: when malloc is read, and gives memory back
//	pressure.go        a goroutine that reaches a bound yields, or waits
//	queue.go           the line of goroutines that wait
//	request.go         a request that has met a limit waits for room
//	collect.go         a collection, its releases, and the bounds after them
//	limit.go           the limits and who reads them; the error of a request that is refused, and its count
//	usage.go           the resident memory of the process; what its cgroups are charged, and may be
//	metrics.go         the metrics of the runtime
//	caches.go          OnPressure: who is asked for memory that can be let go

// Options configure [Start].
type Options struct {
	// Limit bounds the resident memory of the process, in bytes: that of Go, of heaps, of C, code
	// and stacks. 0 sets no limit. See [SetLimit]. On systems other than Linux, and with the race
	// detector or a sanitizer, whose own memory is resident as well, it bounds the sum of the Go heap
	// and all counted memory outside of it.
	Limit int64

	// LimitFromEnvironment, if Limit is 0, takes two limits from the environment, and both hold:
	//
	//   - that of the memory cgroup of the process, which is a container's, and of those around it:
	//     memory.max, or memory.high if that is less. It bounds what the cgroup is charged, less files
	//     that the kernel has cached and drops before it kills, and is read again ten times a second.
	//     Stats.Unread is an error where that cannot be read.
	//   - the runtime's memory limit, which GOMEMLIMIT or [debug.SetMemoryLimit] has set. It bounds
	//     what Limit does.
	//
	// If neither is set there is no limit.
	LimitFromEnvironment bool

	// MaxGCShare is the largest share of processor time, from 0 to 1, that collections
	// started by this package may take. 0 means 0.15. It delays a
	// collection for a request that has met a limit by 100 ms at most. Where the kernel says
	// that there is no room under a limit, collections may take a quarter.
	MaxGCShare float64

	// LeastRoom is the share of the limit, from 0 to 1, that is to be free. When less is free, the caches that
	// [OnPressure] has registered are asked, until half as much again is free. Where so much comes before they have
	// given that less than half of it is left, both are more, by half of it at most. 0 means 1/8.
	LeastRoom float64
}

const defaultMaxGCShare = 0.15

// ErrStarted is returned by [Start] if it was called before, without a [Stop]
// since.
var ErrStarted = errors.New("cheap: pace has been started already")

// ErrCollectorOff is returned by [Start] if the collector is off (GOGC=off) and there
// is no limit. No collection would start, and no resource be released.
var ErrCollectorOff = errors.New("cheap: pace.Start: GOGC is off and there is no limit, so no collection " +
	"would ever start; set Options.Limit or LimitFromEnvironment, or GOGC")

var (
	startMu sync.Mutex
	current atomic.Pointer[pacer]
)

// Start starts pacing for the whole program. It returns [ErrStarted] if that was
// done already, and [ErrCollectorOff] if nothing would start a collection. It panics
// with a [cheap.MisuseError] if Options.Limit is negative, or Options.MaxGCShare or LeastRoom is not
// between 0 and 1.
func Start(o Options) error {
	if o.Limit < 0 {
		panicMisuse("pace", "Start", "Options.Limit is negative (%d); use 0 for no limit", o.Limit)
	}
	if !(o.MaxGCShare >= 0 && o.MaxGCShare <= 1) { // a NaN is neither
		panicMisuse("pace", "Start", "Options.MaxGCShare is %v; set it to a share between 0 and 1", o.MaxGCShare)
	}
	if !(o.LeastRoom >= 0 && o.LeastRoom <= 1) {
		panicMisuse("pace", "Start", "Options.LeastRoom is %v; set it to a share between 0 and 1", o.LeastRoom)
	}
	startMu.Lock()
	defer startMu.Unlock()
	if current.Load() != nil {
		return ErrStarted
	}
	p := &pacer{maxShare: o.MaxGCShare}
	p.leastRoom = cmp.Or(o.LeastRoom, defaultLeastRoom)
	p.collector = collector{backoff: 1, futileEver: -1}
	if p.maxShare == 0 {
		p.maxShare = defaultMaxGCShare
	}
	p.setLimit(o)
	if p.most() == 0 && p.reader.read().gogc < 0 {
		return ErrCollectorOff
	}
	p.begin()
	current.Store(p)
	return nil
}

// Stop ends pacing. It waits for a collection that is under way, and restores the
// runtime's memory limit, unless the program has changed that limit meanwhile.
// Without Start it does nothing. [ReadStats] returns the last counters until the
// next Start.
func Stop() {
	startMu.Lock()
	defer startMu.Unlock()
	p := current.Swap(nil)
	if p == nil {
		return
	}
	p.end()
	last.Store(p)
}

// last is the pacer that was stopped last.
var last atomic.Pointer[pacer]

// SetLimit changes the limit that Options.Limit has set, in bytes, and returns
// the old one. 0 means no limit. Before Start, SetLimit does nothing and returns
// 0. It panics with a [cheap.MisuseError] if the limit is negative.
//
// A limit that SetLimit has set is that of Options.Limit; one from the environment is dropped.
// The package sets the runtime's memory limit to what remains for the Go heap,
// but never to less than the Go heap needs, nor to more than GOMEMLIMIT or [debug.SetMemoryLimit]
// has set before.
//
// A request for memory outside the Go heap that would exceed the limit waits for a collection that
// begins after the request, and then for up to a second while releases end (100 ms where the limit
// is about what is counted), in which a second collection may begin. If there is no room by then,
// the request fails with an error that wraps [cheap.ErrLimit] and contains a [LimitError], or with a
// nil block. A request for more than the whole limit is refused at once. A request of a Heap or an
// own.Memory waits for its collections one by one, and others may overtake it. All other requests
// are served in the order in which they came; one whose time is up takes what room there is.
func SetLimit(bytes int64) int64 {
	if bytes < 0 {
		panicMisuse("pace", "SetLimit", "the limit %d is negative; use 0 for no limit", bytes)
	}
	p := current.Load()
	if p == nil {
		return 0
	}
	var s sample
	if bytes != 0 {
		s = p.sampleFirst()
	}
	p.mu.Lock()
	was := p.most()
	p.limit.Store(bytes)
	p.setUsages(nil)
	p.changed = false
	p.firstSample(s)
	p.adjust()
	p.mu.Unlock()
	p.tend()
	p.startLimit()
	return was
}

// Stats are the counters of pacing since Start, and some current values. When
// they agree with one another [cheap.Stats] says.
type Stats struct {
	Cycles   int64         // collections started by this package
	CPUTime  time.Duration // processor time of these collections
	LastCPU  time.Duration // that of one of the last four, the least
	Released int64         // bytes outside the Go heap released after these collections

	Yields    int64         // allocations that yielded while a collection was due
	YieldTime time.Duration // sum of the times that they yielded
	Waits     int64         // allocations that waited for a collection
	WaitTime  time.Duration // sum of the times that they waited
	Refusals  int64         // requests that failed at a limit

	Trims   int64 // how often this package had malloc give memory back to the system: there was little room, or much was free for long
	Trimmed int64 // by how many bytes the resident memory was smaller after these, in all

	Held        int64 // bytes in all accounts, now
	Reclaimable int64 // the part of Held that collections release, once unreachable
	Limit       int64 // see Options; 0 if there is none
	Used        int64 // bytes that counted against Limit when the package read them last, as far as the kernel says; else 0
	Room        int64 // how many more there might be, then; else 0

	Due int64  // number of Reclaimable bytes at which the next collection begins, as of the last look; math.MaxInt64 if GOGC is off and there is no limit; 0 before Start
	Why string // why at that number; "" before Start

	// Arenas is the number of arenas that glibc's malloc had when there was little room for the first
	// time. It is 0 until then, and if their number is bounded, as package libc/arenas does.
	Arenas int64

	// GoLimit is the runtime's memory limit as this package has set it. It is 0
	// without a Limit, after Stop, and after the program itself has changed the
	// runtime's limit, which this package then leaves alone until SetLimit.
	GoLimit int64

	// LimitFrom is the file that has Limit, such as /sys/fs/cgroup/memory.high, above which the kernel slows the
	// process down. It is "" if Limit is that of Options, of SetLimit or of the runtime, or 0.
	LimitFrom string

	// Unread says why the limits of cgroups could not be read for Options.LimitFromEnvironment. It is nil if they
	// could, or were not asked for.
	Unread error

	Caches []CacheStats // of what OnPressure has registered, in that order
}

// ReadStats returns the counters. After Stop they are those of the last Start.
func ReadStats() Stats {
	p := current.Load()
	if p == nil {
		p = last.Load()
	}
	account.Process.Refresh()
	reclaimable, _ := account.Process.Reclaimable()
	st := Stats{Reclaimable: reclaimable, Held: account.Process.Held(), Caches: cacheStats()}
	if p == nil {
		return st
	}
	st.Cycles, st.Released = p.stats.cycles.Load(), p.stats.released.Load()
	st.CPUTime = time.Duration(p.stats.time.Load())
	st.Yields, st.YieldTime = p.stats.yields.Load(), time.Duration(p.stats.yielded.Load())
	st.Waits, st.WaitTime = p.stats.waits.Load(), time.Duration(p.stats.waited.Load())
	st.Refusals = p.stats.refusals.Load()
	st.Trims, st.Trimmed = giveback.Trims.Load()-p.stats.trims, giveback.Trimmed.Load()-p.stats.trimmed
	st.Arenas = int64(p.arenas.Load())
	p.mu.Lock()
	st.LastCPU, st.Due, st.Why = p.collector.cost(), p.aimed.at, p.aimed.why
	if p.metered.Load() && p.gauge.room != noBound {
		st.Used, st.Room = p.gauge.used, max(0, p.gauge.room)
	}
	st.Limit, st.GoLimit, st.Unread = p.most(), p.goLimit.Load(), p.unread
	for _, u := range p.usages {
		if m, ok := u.(*cgroupUsage); ok && st.Limit == p.cgroups.Load() {
			st.LimitFrom = m.from(st.Limit)
		}
	}
	p.mu.Unlock()
	return st
}

// Decision says in a line how much room there is, what a collection costs, and when and why the next one begins.
// It is "" before Start.
func (s Stats) Decision() string {
	if s.Why == "" {
		return ""
	}
	const mib = 1 << 20
	room, due := "", "never"
	if s.LimitFrom != "" {
		room = fmt.Sprintf("%s has the limit of %d MiB; ", s.LimitFrom, s.Limit/mib)
	}
	if s.Used > 0 {
		room += fmt.Sprintf("room for %d MiB; ", s.Room/mib)
	}
	if s.Due != noBound {
		due = fmt.Sprintf("at %d MiB reclaimable, of which there are %d", s.Due/mib, s.Reclaimable/mib)
	}
	return fmt.Sprintf("%sa collection costs %v; the next one begins %s: %s", room, s.LastCPU.Round(100*time.Microsecond), due, s.Why)
}

// panicMisuse panics with a [cheap.MisuseError]. name is "pace" for a function of
// this package, or the name of the account.
func panicMisuse(name, op, format string, args ...any) {
	panic(&cheap.MisuseError{Op: name + "." + op, Reason: fmt.Sprintf(format, args...)})
}
