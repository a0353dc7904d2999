package pace

import (
	"fmt"
	"math"
	"runtime/debug"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/internal/account"
)

// A LimitError describes a request that failed at a limit. [errors.Is] reports
// true for it and [cheap.ErrLimit].
type LimitError struct {
	Wanted int64 // bytes requested
	Limit  int64 // limit of the program; 0 if the limit of one heap or account was met
	Go     int64 // bytes that the Go runtime has from the system
	Held   int64 // bytes in all accounts
	Auto   int64 // the part of Held that collections release, once unreachable
	Rooms  int64 // the part of Held that is reserved by Rooms of package own

	// Stuck is the number of releases that are queued while none ends. A release
	// function may be waiting for a lock that the caller holds.
	Stuck int64

	// ToDrain is the number of releases that wait for the program to call Drain of a
	// pool of package own.
	ToDrain int64
}

// Error names the request, the limit and the memory in use.
func (e *LimitError) Error() string {
	const mib = 1 << 20
	whole := "a limit of its own, also after collections"
	switch {
	case e.Limit != 0 && e.Wanted > e.Limit:
		whole = fmt.Sprintf("the whole limit of %.1f MiB, so no collection was tried", float64(e.Limit)/mib)
	case e.Limit != 0:
		whole = fmt.Sprintf("a limit of %.1f MiB, also after collections", float64(e.Limit)/mib)
	}
	rooms := ""
	if e.Rooms > 0 {
		rooms = fmt.Sprintf(", %.1f MiB by rooms of Pool.Reserve that have not ended", float64(e.Rooms)/mib)
	}
	stuck := ""
	if e.Stuck > 0 {
		stuck = fmt.Sprintf("; %d releases are queued, and none ends: does the caller hold a lock that the release function takes?", e.Stuck)
	}
	if e.ToDrain > 0 {
		stuck += fmt.Sprintf("; %d releases wait until the program calls Pool.Drain", e.ToDrain)
	}
	return fmt.Sprintf("cheap: pace: %d bytes exceed %s: the Go runtime has %.1f MiB, %.1f MiB are held outside, %.1f MiB of them by owners%s%s",
		e.Wanted, whole, float64(e.Go)/mib, float64(e.Held)/mib, float64(e.Auto)/mib, rooms, stuck)
}

// Is reports whether target is [cheap.ErrLimit].
func (e *LimitError) Is(target error) bool { return target == cheap.ErrLimit }

// refusal returns the error for a request of n bytes, while stuck releases are queued
// and none ends, and counts it.
func (p *pacer) refusal(n, stuck int64) error {
	p.stats.refusals.Add(1)
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.reader.read()
	auto, _ := account.Auto()
	limit := p.limit.Load()
	if n <= account.Room() {
		limit = 0 // the request fits: the limit of one heap or account was met
	}
	return &LimitError{Wanted: n, Limit: limit, Go: r.total, Held: account.Held(), Auto: auto, Rooms: account.Rooms(), Stuck: stuck, ToDrain: account.ToDrain()}
}

// needs returns the least number of bytes that the Go runtime must have: its
// reachable objects, its memory that is not heap, and room to allocate, without
// which it would collect all the time.
func (r *reading) needs() int64 {
	const least = 4 << 20
	other := max(r.total-r.heap-r.reserve, 0) // stacks, the runtime's records
	return r.live + other + max(least, r.live/8)
}

// keep sets the runtime's memory limit to the rest of the program's limit. It
// returns how many bytes may be held in accounts, and at how many it must be
// called again. The caller holds p.mu.
func (p *pacer) keep(r reading) (heldAt, ceiling int64) {
	limit := p.limit.Load()
	if limit == 0 {
		p.restore()
		return noBound, noBound
	}
	held := account.Held()
	needs := r.needs()
	goLimit := max(limit-held-account.Idle(), needs)
	if was := p.goLimit.Load(); !p.changed && (was == 0 || abs(goLimit-was) > limit/256) {
		p.set(goLimit)
	}
	return held + limit/64, max(limit-needs, 0)
}

// set sets the runtime's memory limit, unless the program has done so itself.
func (p *pacer) set(bytes int64) {
	is, was := debug.SetMemoryLimit(-1), p.goLimit.Load()
	if was != 0 && is != was {
		p.changed, p.before = true, is
		p.goLimit.Store(0)
		return
	}
	if was == 0 {
		p.before = is
	}
	debug.SetMemoryLimit(bytes)
	p.goLimit.Store(bytes)
}

// restore restores the runtime's memory limit from before Start, unless the
// program has changed it.
func (p *pacer) restore() {
	if was := p.goLimit.Load(); was != 0 {
		if debug.SetMemoryLimit(-1) == was {
			debug.SetMemoryLimit(p.before)
		}
		p.goLimit.Store(0)
	}
}

func abs(n int64) int64 { return max(n, -n) }

// environmentLimit returns the limit from the environment, see
// Options.LimitFromEnvironment, or 0.
func environmentLimit() int64 {
	limit := debug.SetMemoryLimit(-1)
	if most := cgroupLimit("/"); most > 0 {
		limit = min(limit, most-most/10) // a tenth for memory that is not counted
	}
	if limit == math.MaxInt64 {
		return 0
	}
	return limit
}
