package pace

import (
	"math"
	"testing"
	"time"

	"github.com/cheapgo/cheap/internal/mem/account"
	"github.com/cheapgo/cheap/internal/mem/giveback"
	"github.com/cheapgo/cheap/internal/watch/procfs"
)

func TestBound(t *testing.T) {
	for _, row := range []struct {
		name    string
		mark    baseline
		heap    int64
		gogc    int
		backoff int64
		bound   int64
	}{
		{"nothing", baseline{}, 0, 100, 1, 2 * floor},
		{"the collector is off", baseline{heap: 1 << 30}, 0, -1, 1, noBound},
		{"GOGC=0", baseline{heap: 3 * mib}, 3 * mib, 0, 1, 2 * floor},
		{"as Go itself, of both", baseline{heap: 20 * mib, reclaimable: 20 * mib}, 30 * mib, 100, 1, 50*mib + 2*floor},
		{"the heap alone has grown", baseline{heap: 20 * mib, reclaimable: 20 * mib}, 300 * mib, 100, 1, 20*mib + 2*floor},
		{"two thirds of the heap", baseline{heap: 300 * mib}, 600 * mib, 100, 1, 200 * mib},
		{"a small GOGC", baseline{heap: 300 * mib}, 300 * mib, 10, 1, 50 * mib},
		{"a small GOGC, the heap has grown", baseline{heap: 300 * mib}, 330 * mib, 10, 1, 20 * mib},
		{"a large GOGC, the heap has grown", baseline{heap: 300 * mib}, 1 << 40, 400, 1, 200 * mib},
		{"the heap has shrunk", baseline{heap: 20 * mib, reclaimable: 100 * mib}, 10 * mib, 100, 1, 230*mib + 2*floor},
		{"backoff", baseline{}, 0, 100, 8, 16 * floor},
		{"a huge everything", baseline{heap: math.MaxInt64 / 8, reclaimable: math.MaxInt64 / 8}, 0, 1<<31 - 1, 1, 1<<61 + math.MaxInt64/8/300*100*2},
		{"no limit", baseline{pays: unlimited}, 0, 100, 1, 2 * unlimited},
		{"no limit, backoff", baseline{pays: unlimited}, 0, 100, mostBackoff, 4 * unlimited},
	} {
		if row.mark.pays == 0 {
			row.mark.pays = floor
		}
		if bound := row.mark.bound(row.heap, row.gogc, row.backoff); bound != row.bound {
			t.Errorf("%s: %d, want %d; least %d, goal %d", row.name, bound, row.bound, row.mark.least(row.gogc, row.backoff), row.mark.goal(row.gogc))
		}
	}
}

func TestDue(t *testing.T) {
	for _, row := range []struct {
		name  string
		auto  int64 // at the mark
		bound int64
		lead  int64
		due   int64
	}{
		{"nothing is known", 0, 80 * mib, 0, 70 * mib},
		{"little comes during a collection", 0, 80 * mib, 1, 70 * mib},
		{"some", 0, 80 * mib, 20 * mib, 60 * mib},
		{"more than half", 0, 80 * mib, 60 * mib, 40 * mib},
		{"live bytes do not count", 100 * mib, 180 * mib, 100 * mib, 140 * mib},
		{"no bound", 100 * mib, noBound, 100 * mib, noBound},
		{"nothing may come", 100 * mib, 100 * mib, mib, 100 * mib},
		{"less", 100 * mib, 90 * mib, mib, 90 * mib},
	} {
		if due := (baseline{reclaimable: row.auto}).due(row.bound, row.lead); due != row.due {
			t.Errorf("%s: due at %d, want %d", row.name, due, row.due)
		}
	}
}

func TestGoal(t *testing.T) {
	for _, row := range []struct {
		mark baseline
		gogc int
		goal int64
	}{
		{baseline{}, 100, 0},
		{baseline{heap: 10, reclaimable: 20}, 100, 60},
		{baseline{heap: 10, reclaimable: 20}, 0, 30},
		{baseline{heap: 10, reclaimable: 20}, 50, 45},
		{baseline{heap: 1 << 62, reclaimable: 1}, 1<<31 - 1, 1 << 61}, // a quarter of all there is
	} {
		if goal := row.mark.goal(row.gogc); goal != row.goal {
			t.Errorf("%+v.goal(%d) = %d, want %d", row.mark, row.gogc, goal, row.goal)
		}
	}
}

// TestNext looks again and again, as long as nothing is due, while bytes come
// one by one: each look is later than the one before, there are few, and the
// last is hardly later than when a collection was due.
func TestNext(t *testing.T) {
	sizes := []int64{0, 1, floor, 100 * mib, 10 << 30}
	for _, heap := range sizes {
		for _, live := range sizes {
			for _, garbage := range []int64{0, heap / 2, heap} {
				for _, gogc := range []int{0, 25, 100, 800} {
					for _, backoff := range []int64{1, mostBackoff} {
						m := baseline{heap: heap, reclaimable: live, pays: floor}
						first := m.due(m.bound(heap+garbage, gogc, backoff), 0)
						at, looks := live, 0
						for ; at < first; looks++ {
							later := next(at, first)
							if later <= at {
								t.Fatalf("due at %d: after %d look at %d", first, at, later)
							}
							at = later
						}
						if at < first || at > first+floor/8 {
							t.Errorf("%+v, heap %d, GOGC %d, backoff %d: due at %d, seen at %d", m, heap+garbage, gogc, backoff, first, at)
						}
						if looks > 64 {
							t.Errorf("%+v, heap %d, GOGC %d, backoff %d: %d looks", m, heap+garbage, gogc, backoff, looks)
						}
					}
				}
			}
		}
	}
	if at := next(100, (baseline{pays: floor}).bound(0, -1, 1)); at != 100+floor {
		t.Errorf("with the collector off, look at %d", at)
	}
}

func TestNextBackoff(t *testing.T) {
	for _, row := range []struct{ backoff, freed, came, next int64 }{
		{1, 0, 800, 2},
		{2, 99, 800, 4},
		{4, 0, 800, 8},
		{8, 0, 800, mostBackoff},
		{8, 100, 800, 8}, // neither little nor much
		{8, 200, 800, 8},
		{8, 201, 800, 4},
		{2, 800, 800, 1},
		{1, 800, 800, 1},
		{1, 900, 800, 1}, // what was there before as well
		{4, 0, 0, 4},     // nothing came, nothing is known
	} {
		if next := nextBackoff(row.backoff, row.freed, row.came); next != row.next {
			t.Errorf("nextBackoff(%d, %d, %d) = %d, want %d", row.backoff, row.freed, row.came, next, row.next)
		}
	}
}

// TestAim has one number after the other move an aim.
func TestAim(t *testing.T) {
	now := time.Unix(1<<40, 0)
	hour := [4]time.Duration{time.Hour, time.Hour, time.Hour, time.Hour}
	for _, row := range []struct {
		name   string
		change func(c *collector, v *view, s *space)
		want   func(a *aim)
	}{
		{"a limit of which more than half is used", nil, nil},
		{"the first collection", func(c *collector, v *view, s *space) { c.cycles = 0 }, func(a *aim) { a.at, a.reclaimableAt = 12*mib, 11*mib }},
		{"much comes meanwhile", func(c *collector, v *view, s *space) { c.leads[2] = 5 * mib }, func(a *aim) { a.at, a.reclaimableAt = 17*mib, 13*mib+mib/2 }},
		{"a collection is due", func(c *collector, v *view, s *space) { v.reclaimable = 20 * mib }, func(a *aim) { a.event, a.reclaimableAt = reached, 21*mib }},
		{"half was closed by hand", func(c *collector, v *view, s *space) { v.reclaimable = mib }, func(a *aim) {
			a.baseline.reclaimable, a.at, a.bound, a.reclaimableAt = mib, 17*mib+5*mib/8, 20*mib, 9*mib+5*mib/16
		}},
		{"much is reachable", func(c *collector, v *view, s *space) {
			c.baseline.reclaimable, v.reclaimable, s.left, s.ceiling = 20*mib, 20*mib, noBound/4, noBound/4
		}, func(a *aim) {
			a.baseline.reclaimable, a.bound, a.at, a.reclaimableAt, a.below = 20*mib, 58*mib, 53*mib+mib/4, 36*mib+mib/2+mib/8, 10*mib
		}},
		{"the kernel leaves less than the ceiling", func(c *collector, v *view, s *space) { s.left = 6 * mib }, func(a *aim) { a.bound, a.at, a.reclaimableAt = 16*mib, 14*mib+mib/4, 12*mib+mib/8 }},
		{"it leaves nothing", func(c *collector, v *view, s *space) { s.left, v.reclaimable = 0, 2*mib }, func(a *aim) {
			a.bound, a.at, a.reclaimableAt = 7*mib, 6*mib+3*mib/8, 2*mib+(4*mib+3*mib/8)/2
		}},
		{"what is counted leaves nothing", func(c *collector, v *view, s *space) {
			s.metered, s.ceiling, v.reclaimable, c.cycles = false, v.held, 2*mib, 0
		}, func(a *aim) {
			a.bound, a.at, a.reclaimableAt = 6*mib, 5*mib+mib/2, 3*mib+3*mib/4
		}},
		{"no room", func(c *collector, v *view, s *space) { s.scarce, s.left = true, 0 }, func(a *aim) {
			a.bound, a.at, a.reclaimableAt, a.why, a.event = 10*mib, 9*mib, 11*mib, whyScarce, reached
		}},
		{"no room, and nothing to release", func(c *collector, v *view, s *space) { s.scarce, s.left, v.reclaimable = true, 0, 0 }, func(a *aim) {
			a.bound, a.at, a.reclaimableAt, a.why, a.baseline.reclaimable = 0, 0, mib, whyScarce, 0
		}},
		{"room", func(c *collector, v *view, s *space) { s.roomy = true }, func(a *aim) { a.bound = 60 * mib }},
		{"room, and little is left", func(c *collector, v *view, s *space) { s.roomy, s.left = true, 30*mib }, func(a *aim) { a.bound = 40 * mib }},
		{"plenty, and a collection costs little", func(c *collector, v *view, s *space) { s.roomy, s.plenty = true, true }, func(a *aim) {
			a.bound, a.why, a.roomy, a.yieldAt, a.at, a.reclaimableAt = 60*mib, whyPlenty, true, 2*(19*mib+mib/2)-2*mib, 19*mib+mib/2, 14*mib+3*mib/4
		}},
		{"plenty, and a collection costs much", func(c *collector, v *view, s *space) { s.roomy, s.plenty, c.costs = true, true, hour }, func(a *aim) {
			a.bound, a.why, a.roomy, a.yieldAt, a.at, a.reclaimableAt = 60*mib, whyPlenty, true, 60*mib-25*mib/2, 35*mib, 10*mib+25*mib/2
		}},
		{"no limit", func(c *collector, v *view, s *space) { *s = space{ceiling: noBound, left: 0} }, func(a *aim) {
			a.baseline.pays, a.bound, a.at, a.roomy, a.why = unlimited, 70*mib, 61*mib+mib/2, true, whyGOGC
			a.yieldAt, a.reclaimableAt = 70*mib-(8*mib+mib/2)/2, 10*mib+(51*mib+mib/2)/2
		}},
		{"GOGC=0", func(c *collector, v *view, s *space) { *s, v.gogc = space{ceiling: noBound}, 0 }, func(a *aim) {
			a.baseline.pays, a.bound, a.at, a.roomy, a.why = unlimited, 66*mib, 58*mib, true, whyGOGC
			a.yieldAt, a.reclaimableAt = 62*mib, 34*mib
		}},
		{"GOGC=off", func(c *collector, v *view, s *space) { *s, v.gogc = space{ceiling: noBound}, -1 }, func(a *aim) {
			a.baseline.pays, a.bound, a.at, a.yieldAt, a.roomy, a.why, a.reclaimableAt = unlimited, noBound, noBound, noBound, true, whyOff, 18*mib
		}},
		{"nothing has come since vain collections", func(c *collector, v *view, s *space) { c.futileEver = v.ever }, func(a *aim) { a.event = none }},
		{"nothing has come for long", func(c *collector, v *view, s *space) { c.futileEver, c.futileUntil = v.ever, v.at.Add(-1) }, nil},
		{"something has come", func(c *collector, v *view, s *space) { c.futileUntil = v.at.Add(time.Hour) }, nil},
	} {
		c := collector{baseline: baseline{heap: mib, reclaimable: 2 * mib}, based: now.Add(-time.Second), backoff: 1, cycles: 1, futileEver: -1, futileUntil: now}
		v := view{reading: reading{gogc: 100, heap: 4 * mib, live: 3 * mib}, at: now, reclaimable: 10 * mib, held: 30 * mib, ever: 7}
		s := space{metered: true, ceiling: 130 * mib, left: 60 * mib, least: 5 * mib}
		want := aim{baseline: baseline{heap: 3 * mib, reclaimable: 2 * mib, pays: floor}, event: resumed, at: 19*mib + mib/2, why: whyLimit, bound: 22 * mib, reclaimableAt: 14*mib + 3*mib/4}
		if row.change != nil {
			row.change(&c, &v, &s)
		}
		if row.want != nil {
			row.want(&want)
		}
		if got := c.aim(v, s); got != want {
			t.Errorf("%s:\n%+v, want\n%+v", row.name, got, want)
		}
	}
	p, begin := new(pacer), now.Add(-time.Hour)
	if p.takeBaseline(reading{}, 0, 0, begin); p.collector.based != begin {
		t.Error("the time since the baseline does not begin with the collection")
	}
}

// TestWorth compares the bytes that are worth a collection with √(2 × rate × cost × room) × √roomPrice.
func TestWorth(t *testing.T) {
	now := time.Unix(1<<40, 0)
	for _, row := range []struct {
		name   string
		change func(c *collector, v *view)
		room   int64 // MiB
		want   float64
	}{
		{"8 MiB have come in a second, and a collection costs 1 ms", nil, 250, 2},
		{"it costs 4 ms at least", func(c *collector, v *view) { c.costs = [4]time.Duration{9e6, 8e6, 3e6, 7e6} }, 250, 4},
		{"the first one has cost 3 ms", func(c *collector, v *view) { c.note(3e6, 0, 0, 0) }, 250, 4},
		{"next to nothing has come", func(c *collector, v *view) { v.reclaimable = 2 * mib }, 125, 0.5},
		{"more room than has a price", nil, 1000, 2 * math.Sqrt(float64(roomMost)/mib/250)},
		{"no room", nil, -5, 0},
		{"no time has passed", func(c *collector, v *view) { c.based = now }, 250, 2000},
		{"the time is earlier", func(c *collector, v *view) { c.based = now.Add(time.Hour) }, 250, 2000},
	} {
		c := collector{baseline: baseline{reclaimable: 2 * mib}, based: now.Add(-time.Second)}
		v := view{at: now, reclaimable: 10 * mib}
		if row.change != nil {
			row.change(&c, &v)
		}
		if got := float64(c.worth(v, row.room*mib)) / mib / math.Sqrt(roomPrice); math.Abs(got-row.want) > row.want/1000 {
			t.Errorf("%s: %.3f MiB, want %.3f", row.name, got, row.want)
		}
	}
}

// TestNote has more collections noted than are remembered.
func TestNote(t *testing.T) {
	c := collector{backoff: 1}
	for i, step := range []struct {
		cost, lead, wantCost, wantLead int64
	}{{5, 9, 5, 9}, {7, 3, 5, 9}, {8, 2, 5, 9}, {9, 2, 5, 9}, {6, 1, 6, 3}, {9, 1, 6, 2}} {
		if c.note(time.Duration(step.cost), step.lead, 0, 100); int64(c.cost()) != step.wantCost || c.lead(true) != step.wantLead || c.backoff != min(int64(2)<<i, int64(mostBackoff)) {
			t.Errorf("step %d: %+v", i, c)
		}
	}
}

// TestSpace has one number after the other move the space that a limit of 640 MiB leaves. A declared byte takes two.
func TestSpace(t *testing.T) {
	u, shared := new(fakeUsage), &cgroupUsage{}
	for _, row := range []struct {
		name   string
		change func(g *gauge, v *view)
		room   int64
		want   func(s *space)
	}{
		// room = 640 - 32 - 200 used - 16 of the largest + 3/4 of 4 that are free and not stuck - 8 reserved - 20 of slack
		{"a third is used", nil, 367 * mib, nil},
		// Nothing is free but stuck, and the excess of a quarter is the slack.
		{"all is used", func(g *gauge, v *view) { v.uses[0].used = 620 * mib }, -196 * mib, func(s *space) {
			s.scarce, s.roomy, s.plenty, s.ceiling, s.goLimit, s.left, s.inUse = true, false, false, 0, 22*mib, 0, 610*mib
			s.heldAt, s.takenAt, s.takenMost = 60*mib+leastStep/2, 1000*mib+leastStep, 1000*mib
			s.malloc = mallocSpace{limited: true, near: true, little: true, learn: true, stale: true}
		}},
		{"the scale is not known", func(g *gauge, v *view) { g.known = false }, 367 * mib, func(s *space) {
			s.heldAt, s.takenAt = 60*mib+5*mib/unknownScale, 1000*mib+10*mib/unknownScale
		}},
		{"malloc has handed out much", func(g *gauge, v *view) { g.inUse = 300 * mib }, 234 * mib, func(s *space) {
			s.ceiling, s.goLimit, s.plenty = 177*mib, 254*mib, false
		}},
		{"what was free is in use again", func(g *gauge, v *view) { g.at.declared = 30 * mib }, 364 * mib, func(s *space) {
			s.ceiling, s.goLimit, s.inUse, s.malloc.stale = 242*mib, 384*mib, 200*mib, true
		}},
		{"something was released", func(g *gauge, v *view) { g.at.declared = 60 * mib }, 382 * mib, func(s *space) {
			s.ceiling, s.goLimit, s.inUse, s.malloc.stale, s.malloc.loose = 251*mib, 402*mib, 170*mib, true, true
		}},
		{"code was read", func(g *gauge, v *view) { g.last.files = 15 * mib }, 371*mib + mib/2, func(s *space) {
			s.ceiling, s.goLimit = 245*mib+3*mib/4, 391*mib+mib/2
		}},
		{"the last sample was by another usage", func(g *gauge, v *view) { g.at.by, g.at.files, g.at.declared = &fakeUsage{}, 10*mib, 40*mib }, 367 * mib, func(s *space) {
			s.malloc.stale = true
		}},
		{"a neighbour has taken 200 MiB", func(g *gauge, v *view) {
			g.by, g.at.by, g.last.by, v.uses[0] = shared, shared, shared, use{shared, 400 * mib, 640 * mib}
		}, 167 * mib, func(s *space) {
			s.ceiling, s.goLimit, s.left, s.takenMost, s.inUse, s.plenty = 143*mib+mib/2, 187*mib, 110*mib, 1110*mib, 390*mib, false
		}},
		{"no limit", func(g *gauge, v *view) { v.limit, v.uses = 0, nil }, 0, func(s *space) {
			*s = space{ceiling: noBound, heldAt: noBound, takenAt: noBound, takenMost: noBound, room: noBound}
		}},
		{"no limit, and little is held", func(g *gauge, v *view) { v.limit, v.uses, v.held = 0, nil, 4*mib }, 0, func(s *space) {
			*s = space{ceiling: noBound, heldAt: giveback.Least, takenAt: noBound, takenMost: noBound, room: noBound}
		}},
		{"a limit of what is counted", func(g *gauge, v *view) { v.limit, v.uses = 128*mib, nil }, 0, func(s *space) {
			*s = space{ceiling: 106 * mib, heldAt: 62 * mib, goLimit: 66 * mib, takenAt: noBound, takenMost: noBound, room: 46 * mib, inUse: 82 * mib}
		}},
		{"the limit of the cgroup is gone", func(g *gauge, v *view) { v.uses[0].limit = 0 }, noBound, func(s *space) {
			s.ceiling, s.goLimit, s.left, s.takenMost, s.inUse = 60*mib+1<<60, 20*mib+noBound/4, 0, 1000*mib, 0
			s.malloc = mallocSpace{learn: true, stale: true}
		}},
	} {
		g := &gauge{
			by: u, scale: 2, known: true, free: 10 * mib, stuck: mib, inUse: 5 * mib, base: 10 * mib,
			at:   moment{by: u, used: 190 * mib, anonymous: 170 * mib, files: 20 * mib, goBytes: 20 * mib, heaps: 12 * mib, declared: 45 * mib},
			last: moment{by: u, used: 195 * mib, anonymous: 175 * mib, files: 20 * mib, goBytes: 20 * mib, heaps: 12 * mib, declared: 48 * mib},
		}
		v := view{
			reading: reading{total: 20 * mib, heap: 8 * mib, live: 8 * mib, reserve: 2 * mib}, limit: 640 * mib, uses: []use{{u, 200 * mib, 640 * mib}},
			held: 60 * mib, declared: 50 * mib, idle: 2 * mib, reserved: 4 * mib, mean: mib, largest: 8 * mib, goroutines: 10,
			anonymous: 180 * mib, files: 20 * mib, ever: 1000 * mib,
		}
		want := space{
			metered: true, ceiling: 243*mib + mib/2, heldAt: 65 * mib, goLimit: 387 * mib, takenAt: 1010 * mib, takenMost: 1210 * mib,
			left: 210 * mib, least: 5 * mib, roomy: true, plenty: true, room: row.room, inUse: 190 * mib, malloc: mallocSpace{limited: true, learn: true},
		}
		if row.change != nil {
			row.change(g, &v)
		}
		if row.want != nil {
			row.want(&want)
		}
		if got := g.find(v); got != want || g.room != row.room {
			t.Errorf("%s: room %.3f, want %.3f\n%+v, want\n%+v", row.name, float64(g.room)/mib, float64(row.room)/mib, got, want)
		}
	}
}

// TestFirst has a limit for the first time, beside 20 MiB of a neighbour, and then other samples.
func TestFirst(t *testing.T) {
	u := new(fakeUsage)
	v := view{limit: 640 * mib, uses: []use{{u, 200 * mib, 640 * mib}}}
	at := moment{anonymous: 150 * mib, files: 30 * mib, goBytes: 20 * mib, heaps: 12 * mib, declared: 25 * mib}
	g := new(gauge)
	g.first(sample{resident: 150 * mib, all: 180 * mib, used: 40 * mib, free: 30 * mib, ok: true, at: at}, v)
	if g.base != 78*mib || g.otherResident != 48*mib || g.undeclared != 15*mib || g.excess != 40*mib || g.scale != 1 || g.known || g.last.used != 200*mib {
		t.Errorf("first: %+v", g)
	}
	at.declared = 125 * mib
	g.set(sample{resident: 260 * mib, used: 140 * mib, free: 60 * mib, ok: true, at: at, most: 150 * mib}, v)
	if at.by, at.used = u, 200*mib; g.free != 40*mib || g.scale != 1 || !g.known || g.inUse != 140*mib || g.at != at {
		t.Errorf("set: %+v", g)
	}
	g.set(sample{resident: 260 * mib, at: at, most: 150 * mib}, v) // where malloc says nothing, 180 MiB are not known to be others'
	if g.free != 40*mib || g.scale != 1.2 || g.inUse != 150*mib {
		t.Errorf("set without a malloc: %+v", g)
	}
	at.declared = 50 * mib
	if g.first(sample{at: at}, v); g.undeclared != 0 || g.base != 0 || g.otherResident != 0 {
		t.Errorf("first without a malloc: %+v", g)
	}
}

// TestBatchScale has batches be small where the scale is not known, unless the limit is large.
func TestBatchScale(t *testing.T) {
	for _, row := range []struct {
		g    gauge
		want int64
	}{
		{gauge{scale: 5, known: true}, 1}, {gauge{limit: 1 << 30, scale: 1}, unknownScale}, {gauge{limit: 4 << 30, scale: 1}, unknownScale / 4},
		{gauge{limit: 1 << 50, scale: 1}, 1}, {gauge{limit: 1 << 30, scale: 2.5, known: true}, 2},
	} {
		if got := row.g.batchScale(); got != row.want {
			t.Errorf("%+v: %d, want %d", row.g, got, row.want)
		}
	}
}

// A pressCounter counts how often goroutines reach a bound.
type pressCounter struct {
	account.Pacer
	n int
}

func (c *pressCounter) Pressure() { c.n++ }

// A keepingMalloc notes what it is to keep.
type keepingMalloc struct {
	fakeMalloc
	kept int64
}

func (m *keepingMalloc) Keep(bytes int64) { m.kept = bytes }

// TestApply looks whether each number of a plan gets to where it belongs.
func TestApply(t *testing.T) {
	var counter pressCounter
	m := &keepingMalloc{fakeMalloc: fakeMalloc{func(string) {}}}
	withMalloc(t, m, nil)
	account.Process.SetPacer(&counter)
	defer account.Process.SetPacer(nil)
	a := newAccount(t, AccountOptions{})
	p := new(pacer)
	p.giving = giveback.Begin(0, false)
	defer p.giving.End()
	n := plan{
		gauge: gauge{limit: 1 << 30, scale: 3, known: true},
		space: space{scarce: true, roomy: true, heldAt: noBound - 1, takenAt: 11, takenMost: 12, ceiling: account.Process.Held() + 100},
		aim:   aim{event: none, bound: 13, yieldAt: 14, roomy: true, reclaimableAt: noBound},
		task:  readTask,
	}
	apply := func(limit int64) (kept int64) {
		p.apply(view{limit: limit, held: giveback.Least}, n)
		giveback.Tell()
		if procfs.Anonymous() == 0 {
			return limit / 8 &^ (32*mib - 1) // the goroutine does not run there
		}
		return m.kept
	}
	if kept := apply(1 << 30); kept != 128*mib || p.takenAt.Load() != 11 || p.takenMost.Load() != 12 || p.bound.Load() != 13 || p.yieldAt.Load() != 14 {
		t.Errorf("malloc keeps %d; %d, %d, %d, %d", kept, p.takenAt.Load(), p.takenMost.Load(), p.bound.Load(), p.yieldAt.Load())
	}
	l := &account.Process
	if l.Scale() != 3 || !l.Roomy() || l.Headroom() != 100 || !p.scarce.Load() || mallocTask(p.todo.Load()) != readTask || p.heldAt.Load() != noBound-1 {
		t.Errorf("%d, %v, %d, %v, %d, %d", l.Scale(), l.Roomy(), l.Headroom(), p.scarce.Load(), p.todo.Load(), p.heldAt.Load())
	}
	for i := range 2 { // while nothing is due, and then
		if err := a.Add(1); err != nil || counter.n != i || p.busy() != (i == 1) {
			t.Errorf("%v, %d calls, busy %v", err, counter.n, p.busy())
		}
		n.aim.event = reached
		if kept := apply(200 * mib); kept != 0 {
			t.Errorf("with a small limit malloc keeps %d", kept)
		}
	}
	if v, anonymous := viewOf(reading{}), procfs.Anonymous(); abs(v.anonymous-anonymous) > 4*mib {
		t.Errorf("%d bytes are anonymous, or %d", v.anonymous, anonymous)
	}
}
