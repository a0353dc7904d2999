package pace

import (
	"math"

	"github.com/cheapgo/cheap/internal/mem/giveback"
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
// Where less than Options.LeastRoom is free, caches give way (caches.go). When there is little room, these steps
// follow each other:
//
//  1. The releases that wait run.
//  2. Free memory returns to the system: malloc's (malloc.go); that of heaps, after
//     each collection; Go's, because the runtime's memory limit follows room.
//  3. Collections begin, in up to 25 % of processor time.
//  4. Goroutines that make owners wait for releases, a second at most.
//  5. Requests that have waited for a second are refused.

// A gauge is what is known of the resident memory.
type gauge struct {
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

// moment returns what the gauge compares with a later moment. used is not set.
func (v *view) moment() moment {
	return moment{anonymous: v.anonymous, files: v.files, goBytes: v.total, heaps: v.held - v.declared + v.idle, declared: v.declared}
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

// read notes what the usages have read: it sets used, limit, room, excess, slack and unused.
func (g *gauge) read(v view) {
	g.room = noBound
	was := g.by
	for _, u := range v.uses {
		if u.limit <= 0 {
			continue
		}
		if room := u.limit - u.limit/20 - u.used - min(g.real(v.largest), u.limit/8); room < g.room {
			g.used, g.limit, g.room, g.by = u.used, u.limit, room, u.by
		}
	}
	if g.room == noBound {
		return
	}
	now := v.moment()
	now.by, now.used = g.by, g.used
	if g.by == was {
		d := now.since(g.last)
		grown := g.grown(d) - d.goBytes - d.heaps - max(0, g.real(d.declared))
		g.excess = max(g.excess, min(grown, g.limit/4))
		g.noteStuck(g.grown(d)-d.goBytes-d.heaps, g.real(d.declared))
	}
	g.excess = max(g.excess, g.limit/32)
	g.last = now
	reserved := g.real(v.reserved)
	g.slack = max(g.excess, min(v.goroutines*min(g.real(v.mean), g.limit)-reserved, g.limit/4))
	d := now.since(g.at)
	declared := g.real(d.declared)
	committed := g.base + v.needs() + now.heaps + g.inUse + declared
	used := d.used
	if g.by.shared() {
		used = g.grown(d)
	}
	free := g.free + used - d.goBytes - d.heaps - declared
	g.unused = max(0, min(free, g.free+max(0, -declared)))
	g.stuck = min(g.stuck, g.unused)
	g.room = min(g.room+(g.unused-g.stuck)/4*3-reserved, g.limit-g.limit/20-committed) - g.slack
}

// A space is what a limit leaves.
type space struct {
	metered bool  // the limit is about what the kernel counts
	scarce  bool  // metered, and there is no room
	ceiling int64 // the most bytes that accounts may hold; noBound without a limit
	heldAt  int64 // number of held bytes at which to look again
	goLimit int64 // the runtime's memory limit, or 0 for that from before Start

	// Numbers of reclaimable bytes ever taken: at which to look again, and at which goroutines wait for a
	// look that is under way, because no more was left. noBound if not metered.
	takenAt, takenMost int64

	left  int64 // declared bytes that may come if malloc uses nothing again
	least int64 // declared bytes that may come before a collection at least
	roomy bool  // so much room that nobody waits before half of it is taken

	plenty bool // half of the limit is free

	room  int64 // bytes that may come; noBound without a limit
	inUse int64 // bytes that count against the limit, without what is free in malloc

	malloc mallocSpace
}

// find reads the usages, and returns the space.
func (g *gauge) find(v view) space {
	s := space{ceiling: noBound, heldAt: noBound, takenAt: noBound, takenMost: noBound, room: noBound, metered: len(v.uses) > 0}
	if s.metered {
		g.read(v)
	}
	needs := v.needs()
	switch {
	case v.limit == 0:
		if v.held < giveback.Least {
			s.heldAt = giveback.Least // then that is to begin
		}
	case !s.metered:
		s.goLimit = max(v.limit-v.held-v.idle, needs)
		s.heldAt, s.ceiling = v.held+v.limit/64, max(v.limit-needs, 0)
		s.room, s.inUse = s.ceiling-v.held, v.held+needs
	default:
		free := min(g.room, noBound/4)
		step := g.declared(max(min(v.limit/64, free/4), leastStep))
		if !g.known {
			step = step / unknownScale
		}
		s.scarce = g.room <= 0
		s.room, s.inUse = g.room, g.used-g.unused
		s.goLimit = max(v.total+free, needs)
		s.heldAt, s.ceiling = v.held+step, max(v.held+g.declared(free), 0)
		s.left, s.least = g.declared(g.left()), g.declared(v.limit/64)
		s.takenAt, s.takenMost = v.ever+2*step, v.ever+s.left
		s.roomy = g.roomy()
		s.plenty = s.roomy && g.room > g.limit/2
		s.malloc = g.mallocSpace(v)
	}
	return s
}

// leastStep is the least number of bytes after which the limit is looked at again.
const leastStep = 64 << 10

// roomy reports whether so much is free that goroutines need not wait at the collector's bound: an eighth of the
// limit, and slack once more, a quarter at most. They wait at half of what may be held then, or when all is taken
// that is left if malloc uses nothing again. In a container that is much larger than what the program needs,
// waits for collections cost a program with many small resources a fifth of its requests. With an eighth alone,
// 64 goroutines that make images were killed in one of 48 runs.
func (g *gauge) roomy() bool { return g.room > g.limit/8+min(g.slack, g.limit/8) }

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

// batchScale is what the scale of batches is, see account.Ledger.SetScale.
func (g *gauge) batchScale() int64 {
	switch {
	case g.limit == 0:
		return 1
	case !g.known:
		return max(1, min(unknownScale, unknownMost/g.limit))
	}
	return int64(g.scale)
}

// fade lowers excess a little, after a collection.
func (g *gauge) fade() { g.excess -= g.excess / 64 }

// real returns how many bytes are used for that many declared bytes.
func (g *gauge) real(declared int64) int64 {
	return int64(min(float64(declared)*g.scale, math.MaxInt64/4))
}

// declared is the inverse of real.
func (g *gauge) declared(real int64) int64 {
	return int64(min(float64(real)/g.scale, math.MaxInt64/4))
}
