package pace

import (
	"fmt"
	"math"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/internal/mem/account"
	"github.com/cheapgo/cheap/internal/watch/resident"
)

// A LimitError describes a request that failed at a limit. [errors.Is] reports
// true for it and [cheap.ErrLimit].
type LimitError struct {
	Wanted      int64 // bytes requested
	Limit       int64 // limit of the program; 0 if the limit of one heap or account was met
	Used        int64 // bytes that count against Limit, as far as the kernel says; else 0
	Go          int64 // bytes that the Go runtime has from the system
	Held        int64 // bytes in all accounts
	Reclaimable int64 // the part of Held that collections release, once unreachable
	Rooms       int64 // the part of Held that is reserved by Rooms of package own

	// Stuck is the number of releases that are queued while none ends. A release
	// function may be waiting for a lock that the caller holds.
	Stuck int64

	// ToDrain is the number of releases that wait for the program to call Drain of a
	// Queue of package own.
	ToDrain int64

	// Arenas is Stats.Arenas.
	Arenas int64

	// Verdict says what holds the memory of the process, and what to do, as package inspect says it. It is
	// "" if the limit of one heap or account was met, and where that is not known.
	Verdict string
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
		stuck += fmt.Sprintf("; %d releases wait until the program calls Queue.Drain", e.ToDrain)
	}
	if e.Arenas > int64(mostArenas()) {
		stuck += fmt.Sprintf("; malloc has %d arenas, what is free in one is of no use to the others: import github.com/cheapgo/cheap/libc/arenas", e.Arenas)
	}
	if e.Verdict != "" {
		stuck += "; " + e.Verdict
	}
	used := ""
	if e.Used > 0 {
		used = fmt.Sprintf("%.1f MiB are resident, ", float64(e.Used)/mib)
	}
	return fmt.Sprintf("cheap: pace: %d bytes exceed %s: %sthe Go runtime has %.1f MiB, %.1f MiB are held outside, %.1f MiB of them by owners%s%s",
		e.Wanted, whole, used, float64(e.Go)/mib, float64(e.Held)/mib, float64(e.Reclaimable)/mib, rooms, stuck)
}

// mostArenas returns up to how many arenas of malloc an error does not name them.
func mostArenas() int { return max(2, runtime.GOMAXPROCS(0)) }

// Is reports whether target is [cheap.ErrLimit].
func (e *LimitError) Is(target error) bool { return target == cheap.ErrLimit }

// refusal counts a refusal, and returns the error for a request of n bytes. stuck is the number of
// releases that are queued while none ends. program says that it was the program's limit that was met.
func (p *pacer) refusal(n, stuck int64, program bool) error {
	p.stats.refusals.Add(1)
	verdict := p.verdict()
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.reader.read()
	reclaimable, _ := account.Process.Reclaimable()
	limit, used := p.most(), int64(0)
	if p.metered.Load() {
		used = p.gauge.used
	}
	if !program && n <= account.Process.Headroom() { // it may fit by now at the program's limit as well
		limit, used, verdict = 0, 0, "" // the limit of one heap or account was met
	}
	return &LimitError{
		Wanted: n, Limit: limit, Used: used, Arenas: int64(p.arenas.Load()), Go: r.total, Held: account.Process.Held(), Reclaimable: reclaimable,
		Rooms: account.Process.Reserved(), Stuck: stuck, ToDrain: account.Process.ToDrain.Load(), Verdict: verdict,
	}
}

// A judged is a verdict of a moment ago.
type judged struct {
	at   time.Time
	text string
}

// freshVerdict is how long a verdict serves for further refusals: they may come by the thousand, and it
// takes some 50 µs.
const freshVerdict = 100 * time.Millisecond

// verdict says what holds the memory. It does not wait for a lock, and looks at nothing that takes long.
func (p *pacer) verdict() string {
	if v := p.judged.Load(); v != nil && time.Since(v.at) < freshVerdict {
		return v.text
	}
	r, v := resident.Process.TryJudge(resident.Options{})
	if r == nil || v.About == resident.AboutUnknown {
		return ""
	}
	text := v.Sentence
	if v.Do != "" {
		text += "; to do: " + v.Do
	}
	p.judged.Store(&judged{time.Now(), text})
	return text
}

// needs returns the least number of bytes that the Go runtime must have: its
// reachable objects, its memory that is not heap, and room to allocate, without
// which it would collect all the time.
func (r *reading) needs() int64 {
	const least = 4 << 20
	other := max(r.total-r.heap-r.reserve, 0) // stacks, the runtime's records
	return r.live + other + max(least, r.live/8)
}

// setGoLimit sets the runtime's memory limit, if that changes by more than most, or restores it if bytes is 0.
// The caller holds p.mu.
func (p *pacer) setGoLimit(bytes, most int64) {
	if bytes == 0 {
		p.restore()
		return
	}
	bytes = min(bytes, p.before)
	if was := p.goLimit.Load(); !p.changed && (was == 0 || abs(bytes-was) > most) {
		p.set(bytes)
	}
}

// set sets the runtime's memory limit, unless the program has changed that since set was called last. The
// first call does not raise the limit that the program has.
func (p *pacer) set(bytes int64) {
	is, was := debug.SetMemoryLimit(-1), p.goLimit.Load()
	if was != 0 && is != was {
		p.changed, p.before = true, is
		p.goLimit.Store(0)
		return
	}
	if was == 0 {
		p.before = is
		bytes = min(bytes, is)
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

// most returns the limit, 0 if there is none.
func (p *pacer) most() int64 {
	limit, cgroups := p.limit.Load(), p.cgroups.Load()
	if limit == 0 || cgroups != 0 && cgroups < limit {
		return cgroups
	}
	return limit
}

// setLimit sets the limit and its usages in Start.
func (p *pacer) setLimit(o Options) {
	p.limit.Store(o.Limit)
	var group usage
	if o.Limit == 0 && o.LimitFromEnvironment {
		if limit := debug.SetMemoryLimit(-1); limit != math.MaxInt64 {
			p.limit.Store(limit)
		}
		group, p.unread = openCgroup(&p.cgroups)
	}
	p.setUsages(group)
}

// setUsages sets the usages: that of the process if p.limit is set, and cgroup if it is not nil.
func (p *pacer) setUsages(cgroup usage) {
	p.usages = nil
	if cgroup == nil {
		p.cgroups.Store(0)
	}
	if p.limit.Load() != 0 {
		if m := openProcess(&p.limit); m != nil {
			p.usages = append(p.usages, m)
		}
	}
	if cgroup != nil {
		p.usages = append(p.usages, cgroup)
	}
	p.metered.Store(len(p.usages) > 0)
	if !p.metered.Load() {
		p.gauge = gauge{}
	}
}

// A usage reads what the kernel counts.
type usage interface {
	// read returns how many bytes are used, and how many may be; 0 if there is no limit.
	read() (used, limit int64)

	// shared reports whether the bytes of other processes may be in used.
	shared() bool
}

// Tests replace these, because the memory of a test is not resident.
var openProcess, openCgroup = openProcessUsage, func(least *atomic.Int64) (usage, error) { return openCgroupUsage("/", least) }

// guard reads the resident memory from time to time, as long as there is a limit, because
// accounts may not show what is used.
func (p *pacer) guard(over <-chan struct{}) {
	defer p.tasks.Done()
	var (
		timer = time.NewTimer(guardFirst)
		pause = guardFirst
		last  int64
	)
	defer timer.Stop()
	for {
		select {
		case <-over:
			return
		case <-timer.C:
		}
		p.mu.Lock()
		if !p.metered.Load() {
			p.guarding = false
			p.mu.Unlock()
			return
		}
		p.adjust()
		p.launch(false)
		p.mu.Unlock()
		p.tend()
		p.mu.Lock()
		used, limit, room := p.gauge.used, p.gauge.limit, p.gauge.room
		p.mu.Unlock()
		account.Process.Wake()
		pause = nextPause(pause, used-last, room, limit)
		last = used
		timer.Reset(pause)
	}
}

const (
	guardFirst = 10 * time.Millisecond
	guardLeast = time.Millisecond
	guardMost  = 100 * time.Millisecond

	// A sample takes one percent of a processor at most, and ten near the limit where much has changed since the last. To
	// read malloc takes its locks, and tens of milliseconds where a million blocks are free.
	sampleShare, earlyShare = 100, 10
)

// nextPause returns how long guard waits. If used grew by grown in the last pause, that is an eighth of
// the time in which the room would be gone at this rate; and twice the last pause if it hardly grew.
func nextPause(pause time.Duration, grown, room, limit int64) time.Duration {
	if grown <= limit/1024 {
		return min(2*pause, guardMost)
	}
	const part = 8
	at := float64(pause) * float64(max(room, 0)) / float64(part*grown)
	return max(guardLeast, time.Duration(min(at, float64(guardMost))))
}
