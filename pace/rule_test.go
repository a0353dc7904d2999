package pace

import (
	"math"
	"testing"
	"time"
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

// TestAim looks at what moves an aim: the first collection under a limit begins early, and without room nothing is
// left that may come.
func TestAim(t *testing.T) {
	v := view{reading: reading{gogc: 100}, reclaimable: mib, held: mib}
	later := collector{backoff: 1, cycles: 1}
	first := collector{backoff: 1}
	s := space{metered: true, ceiling: 1 << 30, left: 1 << 30, least: 5 * mib}
	if a, b := first.aim(v, s), later.aim(v, s); a.at >= b.at || a.bound != b.bound {
		t.Errorf("the first collection is due at %d, later ones at %d", a.at, b.at)
	}
	s.ceiling, s.left = v.held, 0
	if a := later.aim(v, s); a.bound != s.least || a.why != whyLimit {
		t.Errorf("with little room the bound is %d: %s", a.bound, a.why)
	}
	s.scarce = true
	if a := later.aim(v, s); a.bound != v.reclaimable || a.why != whyScarce {
		t.Errorf("without room the bound is %d: %s", a.bound, a.why)
	}
	if a := later.aim(view{reading: reading{gogc: -1}, reclaimable: mib}, space{ceiling: noBound}); a.at != noBound || a.yieldAt != noBound || a.why != whyOff {
		t.Errorf("with the collector off and no limit one is due at %d, and goroutines yield at %d: %s", a.at, a.yieldAt, a.why)
	}
	p, begin := new(pacer), time.Now().Add(-time.Hour)
	if p.takeBaseline(reading{}, 0, 0, begin); p.collector.based != begin {
		t.Error("the time since the baseline does not begin with the collection")
	}
}

// TestSpace uses more and more of a limit.
func TestSpace(t *testing.T) {
	for _, row := range []struct {
		used          int64
		roomy, plenty bool
	}{{40 * mib, true, true}, {560 * mib, true, false}, {900 * mib, false, false}} {
		var u fakeUsage
		g, r := newGauge(&u, 5*mib, 3*mib)
		u.used, g.last.used, g.at.used = row.used, row.used, row.used
		v := see(r, &u)
		s := g.find(v)
		if s.roomy != row.roomy || s.plenty != row.plenty || s.takenAt-v.ever != 2*(s.heldAt-v.held) {
			t.Errorf("%d MiB are used: %+v", row.used/mib, s)
		}
	}
}
