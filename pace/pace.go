package pace

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cheapgo/cheap/internal/account"
)

// Options say how to pace.
type Options struct {
	// Limit bounds the Go heap and what is counted outside of it, together, in
	// bytes. 0 sets no limit. See [SetLimit].
	Limit int64

	// Environment takes the limit, where Limit is 0, from the smaller of
	// GOMEMLIMIT, or what debug.SetMemoryLimit has set, and nine tenths of the
	// memory.max of the cgroup that the process is in. Without either there is
	// no limit.
	Environment bool

	// Duty is the largest share of the time, between 0 and 1, that collections
	// started here may take: 0.2 if 0.
	Duty float64
}

const defaultDuty = 0.2

// ErrStarted says that Start was called before, and Stop was not.
var ErrStarted = errors.New("cheap: pace has been started already")

var (
	startMu sync.Mutex
	current atomic.Pointer[pacer]
)

// Start begins to pace, for the whole program. It returns an error, and does
// nothing, if it has begun already or the options make no sense.
func Start(o Options) error {
	if o.Limit < 0 || !(o.Duty >= 0 && o.Duty <= 1) { // a NaN is neither
		return fmt.Errorf("cheap: pace.Start: a limit of %d, a duty of %v; limits are positive, or 0 for none, a duty is between 0 and 1", o.Limit, o.Duty)
	}
	startMu.Lock()
	defer startMu.Unlock()
	if current.Load() != nil {
		return ErrStarted
	}
	p := &pacer{duty: o.Duty, backoff: 1}
	if p.duty == 0 {
		p.duty = defaultDuty
	}
	p.limit.Store(o.Limit)
	if o.Limit == 0 && o.Environment {
		p.limit.Store(environmentLimit())
	}
	p.begin()
	current.Store(p)
	return nil
}

// Stop ends what Start began: it waits for a collection that is under way, and
// puts the runtime's memory limit back, unless the program has changed it
// meanwhile. Without Start it does nothing. What Read returns is kept until the
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

// SetLimit changes the limit, as if Start had been called with it, and returns
// the one before. 0 sets none. Before Start it does nothing, and returns 0. A
// negative limit panics.
//
// The limit holds for the Go heap, as the runtime's own memory limit does, which
// is kept at the difference, and for what is counted outside: what would
// exceed it waits for up to two collections, and then is refused, with an error
// that wraps [cheap.ErrLimit] and contains a [LimitError], or a nil block. The
// runtime's limit is never set below what the Go heap needs, so what fits
// outside depends on that.
func SetLimit(bytes int64) int64 {
	if bytes < 0 {
		panic(fmt.Sprintf("cheap: pace.SetLimit: the limit %d is negative", bytes))
	}
	p := current.Load()
	if p == nil {
		return 0
	}
	was := p.limit.Swap(bytes)
	p.mu.Lock()
	p.changed = false
	p.look(p.reader.read())
	p.mu.Unlock()
	p.watchLimit()
	return was
}

// Stats is what pacing has done since Start.
type Stats struct {
	Cycles     int64         // collections that were started here
	GivenBack  int64         // bytes outside the Go heap that were released after these
	LastFreed  int64         // of these, after the last
	Time       time.Duration // that these collections took, of all processors together
	Yields     int64         // allocations that yielded while a collection was due
	Waits      int64         // allocations that waited for one
	WaitTime   time.Duration
	Refusals   int64 // requests that were refused at a limit, after collections or in a release function
	Auto       int64 // bytes that automatic release could give back, now
	Held       int64 // bytes in all accounts, now
	Limit      int64 // for the Go heap and Held together; 0 if there is none
	GoLimit    int64 // what the runtime's memory limit was set to; 0 if it was not
	LimitMoved int64 // how often the program was seen to change the runtime's limit itself; it is left alone then
}

// Read returns the counters. Without Start they are those of the last time.
func Read() Stats {
	p := current.Load()
	if p == nil {
		p = last.Load()
	}
	auto, _ := account.Auto()
	st := Stats{Auto: auto, Held: account.Held()}
	if p == nil {
		return st
	}
	st.Cycles, st.GivenBack, st.LastFreed = p.stats.cycles.Load(), p.stats.freed.Load(), p.stats.lastFreed.Load()
	st.Time = time.Duration(p.stats.time.Load())
	st.Yields, st.Waits, st.WaitTime = p.stats.yields.Load(), p.stats.waits.Load(), time.Duration(p.stats.waited.Load())
	st.Refusals = p.stats.refusals.Load()
	st.Limit, st.GoLimit, st.LimitMoved = p.limit.Load(), p.goLimit.Load(), p.stats.moved.Load()
	return st
}
