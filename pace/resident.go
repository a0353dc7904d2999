package pace

import (
	"math"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/cheapgo/cheap/internal/account"
	"github.com/cheapgo/cheap/internal/span"
)

// A limit is about used, the bytes that the kernel counts, because by these the kernel kills. Accounts
// have other numbers, but say who takes memory, and when. The sizes that a program declares are
// estimates, and memory that is free in malloc is resident, and in no account. So while there is a limit
// the goroutine guard reads both, and translates one into the other:
//
//	room      = 0.95 * limit - used - the largest object - slack + 3/4 * usable in malloc - Rooms
//	room     <= 0.95 * limit - base - what Go needs - what heaps hold - what malloc has handed out - slack
//	scale     = used bytes for each declared byte
//	ceiling   = held + room/scale
//
// room is how many more bytes the process may use, and ceiling how many accounts may hold. slack is one mean
// object for each goroutine, which may have allocated it and not declared it yet. Usable is what is
// free in malloc, less what malloc has taken from the system lately although so much was free: that is in
// pieces that are too small, or in the arena of other threads. The second line counts pages that are handed
// out and not yet resident: they become resident when they are written.
//
// When there is little room, these steps follow each other:
//
//  1. The releases that wait run.
//  2. Free memory returns to the system: malloc's (malloc.go); that of heaps, after
//     each collection; Go's, because the runtime's memory limit follows room.
//  3. Collections begin, in up to 25 % of processor time.
//  4. Goroutines that make owners wait for releases, a second at most.
//  5. Requests that have waited for a second are refused.

// A usage reads what the kernel counts.
type usage interface {
	// read returns how many bytes are used, and how many may be; 0 if there is no limit.
	read() (used, limit int64)

	// shared reports whether the bytes of other processes may be in used.
	shared() bool
}

// Tests replace these, because the memory of a test is not resident.
var openProcess, openCgroup = openProcessUsage, func(least *atomic.Int64) usage { return openCgroupUsage("/", least) }

// A gauge is what is known of the resident memory. All is under pacer.mu.
type gauge struct {
	usages []usage // empty: a limit is about what is counted

	used, limit, room int64  // by the usage that leaves least room, when read was called last
	by                usage  // that usage
	last              moment // of that call

	// How much used grew at most, lately, from one read to the next, in bytes that no account had
	// counted. Goroutines allocate before they declare; on a busy machine more of them are between
	// the two steps.
	excess int64

	// How many bytes may come before all goroutines wait. A goroutine may have allocated a resource of mean
	// size that it has not declared; what is reserved is declared. For all goroutines that is a quarter of the
	// limit at most, because most of them may own nothing. slack is excess if that is more.
	slack int64

	unused int64 // resident bytes that are free in malloc, as read estimates
	stuck  int64 // the part of unused that malloc does not use again, as far as is known

	// As the last sample found them, at the moment at.
	inUse int64   // bytes in use in malloc, resident or not
	free  int64   // resident bytes that are free in malloc
	scale float64 // used bytes for each that is declared
	known bool    // scale has been measured
	at    moment

	sampled, trimmed backoff
	early            time.Time // where the limit is near, from when on a sample may be taken before sampled.next

	// As they were when there was a limit for the first time.
	base          int64 // the part of used that neither Go, heaps nor malloc have: code, stacks, other libraries
	otherResident int64 // the part of the anonymous resident bytes that none of these has
	undeclared    int64 // inUse less the declared bytes
}

// A moment is what room compares with a later one.
type moment struct {
	by        usage // nil if used is not set
	used      int64 // by that usage
	anonymous int64 // resident bytes of the process that are not of files
	files     int64 // those that are
	goBytes   int64 // bytes of the Go runtime
	heaps     int64 // bytes of heaps
	declared  int64 // bytes that are declared
}

const (
	// A scale beyond these bounds is not believed.
	leastScale, mostScale = 1.0 / 8, 1 << 12

	// unknownScale stands for the scale until that has been measured, which needs enough bytes to be
	// declared or in use: it says how often the limit is checked, and how small batches are. A program that
	// declares no sizes would otherwise fill a container before the first check: 20 images of a megabyte are
	// 80 KiB in accounts.
	unknownScale = 64

	// Above a limit of a GiB the scale of batches is unknownMost/limit: the error of a batch matters
	// less there, and small batches cost time.
	unknownMost = unknownScale << 30

	// hardShare is the share of processor time for collections when there is no room.
	hardShare = 0.25
)

// enough returns how many bytes must be declared or in use for the scale to be measured.
func (g *gauge) enough() int64 { return min(g.limit/32, 8<<20) }

// now returns a moment. The caller holds p.mu.
func (g *gauge) now(r reading) moment {
	m := momentOf(r)
	m.by, m.used = g.by, g.used
	return m
}

// momentOf returns a moment without used.
func momentOf(r reading) moment {
	held, declared := account.Process.Held(), account.Process.HeldDeclared()
	return moment{anonymous: anonymousBytes(), files: fileBytes(), goBytes: r.total, heaps: held - declared + int64(span.Idle()), declared: declared}
}

// since returns the difference of two moments. If they are by two usages, which count from different numbers
// on, used is by how much the process has grown.
func (m moment) since(was moment) moment {
	d := moment{m.by, m.used - was.used, m.anonymous - was.anonymous, m.files - was.files, m.goBytes - was.goBytes, m.heaps - was.heaps, m.declared - was.declared}
	if m.by != was.by {
		d.used = d.anonymous + d.files
	}
	return d
}

// grown returns by how many bytes the process has grown, where d is the difference of two moments. If the
// usage is shared, that is the growth of the anonymous resident bytes, and else that of used: memory that
// another process takes is in used, and says nothing of this process and its malloc.
func (g *gauge) grown(d moment) int64 {
	if g.by.shared() {
		return d.anonymous
	}
	return d.used - max(0, d.files) // code that is read from a file for the first time is no allocation
}

// read reads the usages, and sets used, limit, room, excess, slack and unused. The caller holds p.mu.
func (g *gauge) read(r reading) {
	g.room = noBound
	was := g.by
	for _, u := range g.usages {
		used, limit := u.read()
		if limit <= 0 {
			continue
		}
		if room := limit - limit/20 - used - min(g.real(account.Process.LargestCharge()), limit/8); room < g.room {
			g.used, g.limit, g.room, g.by = used, limit, room, u
		}
	}
	if g.room == noBound {
		return
	}
	now := g.now(r)
	if g.by == was {
		d := now.since(g.last)
		grown := g.grown(d) - d.goBytes - d.heaps - max(0, g.real(d.declared))
		g.excess = max(g.excess, min(grown, g.limit/4))
		g.noteStuck(g.grown(d)-d.goBytes-d.heaps, g.real(d.declared))
	}
	g.excess = max(g.excess, g.limit/32)
	g.last = now
	reserved := g.real(account.Process.Reserved())
	g.slack = max(g.excess, min(int64(runtime.NumGoroutine())*g.real(account.Process.MeanCharge())-reserved, g.limit/4))
	d := now.since(g.at)
	declared := g.real(d.declared)
	committed := g.base + r.needs() + now.heaps + g.inUse + declared
	used := d.used
	if g.by.shared() {
		used = g.grown(d)
	}
	free := g.free + used - d.goBytes - d.heaps - declared
	g.unused = max(0, min(free, g.free+max(0, -declared)))
	g.stuck = min(g.stuck, g.unused)
	g.room = min(g.room+(g.unused-g.stuck)/4*3-reserved, g.limit-g.limit/20-committed) - g.slack
}

// noteStuck notes that malloc has grown by grown bytes, while the program has taken taken bytes from it. What
// it has taken beyond the growth was free before.
func (g *gauge) noteStuck(grown, taken int64) {
	if grown < 0 {
		taken = 0 // malloc has given memory back, perhaps what was stuck
	}
	g.stuck = max(0, g.stuck+grown-max(0, taken-max(0, grown)))
}

// left returns how many bytes are left if malloc uses nothing again of what it has free. Goroutines that own
// wait when they have taken that many since the last read: that may take 10 ms near the limit of a cgroup.
func (g *gauge) left() int64 { return max(0, g.limit-g.used-g.slack) }

// fade lowers excess a little, after a collection.
func (g *gauge) fade() { g.excess -= g.excess / 64 }

// real returns how many bytes are used for that many declared bytes.
func (g *gauge) real(declared int64) int64 { return int64(float64(declared) * g.scale) }

// declared is the inverse of real.
func (g *gauge) declared(real int64) int64 {
	return int64(min(float64(real)/g.scale, math.MaxInt64/4))
}

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
		p.setBounds(p.reader.read())
		p.launch(false)
		p.unlock()
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
	return max(guardLeast, min(time.Duration(at), guardMost))
}
