package pace

import (
	"fmt"
	"math"
	"testing"
	"time"
)

// A trace is a program, as the pacer sees it: it takes memory, and forgets all but some of it.
type trace struct {
	name string
	rate func(at time.Duration) float64 // bytes a second
	live int64                          // bytes that are in use at any time
}

// A simulation is a process in which a trace runs, without a process. Collections take a time each, and the
// process does nothing else than the pacer lets it do.
type simulation struct {
	trace
	control
	limit      int64 // MiB, or 0
	cost, took time.Duration

	at                  time.Duration
	held, ever, garbage int64         // garbage is the part of held that nobody can reach
	free                int64         // in malloc
	ends, from          time.Duration // of the collection that is under way, or 0; when the next one may begin
	begun               view          // when the collection that is under way began
	dies                int64         // the garbage then

	caches []*consumer
	calls  time.Duration // when the call that runs ends, or 0

	most, stalled, collections, shortages int64
}

// A consumer is a cache that a simulation fills at a rate, until it is full.
type consumer struct {
	stake
	rate, full float64       // bytes a second; bytes
	slow       time.Duration // how long a call takes
	rest       time.Duration // how long it rests after that, because a collection follows
	until      time.Duration // when it has rested
	asked      int64         // by the call that runs
	least      int64         // the fewest bytes that it had after a call
}

var simulated = &fakeUsage{}

// look returns what a look would read.
func (s *simulation) look() view {
	const goBytes, other = 8 * mib, 6 * mib
	used := goBytes + other + s.held + s.cached() + s.free
	s.most = max(s.most, used)
	v := view{
		reading: reading{heap: 2 * mib, live: mib, total: goBytes, reserve: 4 * mib, gogc: 100},
		at:      time.Unix(1<<40, 0).Add(s.at), held: s.held, declared: s.held, reclaimable: s.held, ever: s.ever,
		mean: mib, largest: 4 * mib, goroutines: 12, anonymous: used,
	}
	if s.limit != 0 {
		v.limit = s.limit * mib
		v.uses = []use{{simulated, used, v.limit}}
	}
	return v
}

// cached returns what all caches hold.
func (s *simulation) cached() (sum int64) {
	for _, c := range s.caches {
		sum += c.held
	}
	return sum
}

// step has caches grow, and asks one as pressOnce does.
func (s *simulation) step(step time.Duration, h shortage) {
	if h.short && !s.shortage.short {
		s.shortages++
	}
	s.shortage = h
	for _, c := range s.caches {
		bytes := int64(min(c.rate*step.Seconds(), c.full-float64(c.held)))
		s.free = max(0, s.free-bytes)
		c.held += bytes
	}
	if s.calls != 0 && s.at >= s.calls {
		s.calls = 0
		s.shortage.called()
		for _, c := range s.caches {
			c.held, s.free = c.held-c.asked, s.free+c.asked
			if c.asked > 0 {
				c.least, c.until = min(c.least, c.held), s.at+c.rest
			}
			c.asked = 0
		}
		s.tend(readTask, s.look())
		s.gauge.fade()
	}
	var stakes []stake
	for _, c := range s.caches {
		rests := s.at < c.until && h.urgent > 0
		c.ready, c.soon = s.calls == 0 && !rests, rests
		stakes = append(stakes, c.stake)
	}
	if i, want := pick(h.need, h.urgent, stakes); i >= 0 && s.at >= s.caches[i].until {
		s.caches[i].asked = want
		s.calls = s.at + s.caches[i].slow
	}
}

// run runs for some seconds, in steps of 100 µs.
func (s *simulation) run(d time.Duration) {
	s.collector = collector{backoff: 1, futileEver: -1}
	if s.limit != 0 {
		v := s.look()
		first := sample{at: v.moment(), resident: v.anonymous, all: v.anonymous, ok: true}
		s.gauge.first(first, v)
		s.gauge.set(first, v)
	}
	for step := 100 * time.Microsecond; s.at < d; s.at += step {
		v := s.look()
		n := s.decide(v)
		s.gauge, s.collector.baseline = n.gauge, n.aim.baseline
		s.step(step, n.short)
		if n.task != noTask {
			s.tend(n.task, v)
		}
		switch {
		case s.ends != 0 && s.at >= s.ends:
			s.end()
		case s.ends == 0 && n.aim.event == reached && s.at >= s.from:
			const processors = 2
			s.from = s.at + time.Duration(float64(s.cost)/processors/defaultMaxGCShare)
			s.ends, s.begun, s.dies = s.at+s.took, v, s.garbage
			s.collections++
		}
		if v.reclaimable >= n.aim.bound {
			s.stalled++
			continue
		}
		bytes := int64(s.rate(s.at) * step.Seconds())
		s.free = max(0, s.free-bytes)
		s.held += bytes
		s.ever += bytes
		s.garbage = max(s.garbage, s.held-s.live)
	}
}

// end ends a collection: what was dead when it began is free in malloc.
func (s *simulation) end() {
	s.ends = 0
	s.held -= s.dies
	s.garbage -= s.dies
	s.free += s.dies
	v := s.look()
	came := v.ever - s.begun.ever
	was := s.collector.baseline.reclaimable
	s.collector.baseline = baseline{heap: v.live, reclaimable: max(0, v.reclaimable-came)}
	s.collector.based = s.begun.at
	s.collector.note(s.cost, came, s.dies, s.begun.reclaimable-was)
	s.gauge.fade()
}

func (s *simulation) tend(task mallocTask, v view) {
	if task == trimTask {
		s.free = 0
		s.returner.trimmed.next = v.at.Add(backoffLeast)
	}
	now := s.look()
	read := sample{at: now.moment(), most: now.declared, resident: now.anonymous, all: now.anonymous, used: s.held + s.cached(), free: s.free, ok: true, took: 100 * time.Microsecond}
	s.gauge.set(read, now)
	s.returner.note(read, now.at)
}

// TestSimulation runs traces under limits, with collections that are cheap and quick or dear and slow. No limit is
// exceeded. Where a limit is ten times what the program needs, nobody waits, and there are as many collections as the
// rule says. Without a limit a program has at most what GOGC allows, and 64 MiB.
func TestSimulation(t *testing.T) {
	const mega, giga = 1e6, 1e9
	steady := func(rate float64) func(time.Duration) float64 {
		return func(time.Duration) float64 { return rate }
	}
	bursts := func(at time.Duration) float64 {
		if at%time.Second < time.Second/10 {
			return 8 * giga
		}
		return 400 * mega
	}
	for _, tr := range []trace{
		{"slow", steady(20 * mega), 4 * mib},
		{"one goroutine", steady(300 * mega), 4 * mib},
		{"eight", steady(2.2 * giga), 16 * mib},
		{"many", steady(12 * giga), 60 * mib},
		{"bursts", bursts, 30 * mib},
	} {
		for _, limit := range []int64{0, 150, 300, 1000, 4000} {
			for _, took := range []time.Duration{time.Millisecond, 10 * time.Millisecond} {
				t.Run(fmt.Sprintf("%s/%d/%v", tr.name, limit, took), func(t *testing.T) {
					s := simulation{trace: tr, limit: limit, cost: took / 4, took: took}
					const seconds = 4
					s.run(seconds * time.Second)
					came := tr.rate(0) * took.Seconds()
					t.Logf("most %d MiB, %d collections a second, stalled %.1f %% of the time", s.most/mib, s.collections/seconds, float64(s.stalled)/(seconds*100))
					if limit != 0 && s.most > limit*mib {
						t.Errorf("%d MiB are used, of %d", s.most/mib, limit)
					}
					if limit == 0 && float64(s.most) > float64(2*tr.live+2*unlimited+30*mib)+3*came {
						t.Errorf("%d MiB are used without a limit", s.most/mib)
					}
					room := min(float64(limit*mib-s.most), roomMost)
					most := math.Sqrt(tr.rate(0) / (2 * (s.cost + costBeside).Seconds() * room * roomPrice))
					if limit*mib > 10*(2*tr.live+int64(2*came)) && (s.stalled > 0 || float64(s.collections) > seconds*max(1.2*most, 2)) {
						t.Errorf("with %d MiB %d collections a second, want %.1f, stalled in %d steps", limit, s.collections/seconds, most, s.stalled)
					}
				})
			}
		}
	}
}

// TestSimulatedCaches fills three caches at other rates. The limit holds, each has its share, or all that it wants
// where that is less, and they are not emptied and filled in turns: between two shortages comes what is between the
// two bounds.
func TestSimulatedCaches(t *testing.T) {
	const limit, seconds = 512, 10
	for _, row := range []struct {
		name   string
		caches []*consumer
		want   [3]float64 // parts of what all have
	}{
		{"equal weights", []*consumer{{rate: 300e6, full: 1e9}, {rate: 30e6, full: 1e9}, {rate: 3e6, full: 1e9}}, [3]float64{0.33, 0.33, 0}},
		{"weights", []*consumer{{stake: stake{weight: 1}, rate: 200e6, full: 1e9}, {stake: stake{weight: 3}, rate: 200e6, full: 1e9}, {rate: 100e6, full: 20e6}}, [3]float64{0.2, 0.65, 0}},
		{"slow ones", []*consumer{{rate: 150e6, full: 1e9, slow: 100 * time.Millisecond}, {rate: 50e6, full: 1e9, slow: 20 * time.Millisecond}, {rate: 50e6, full: 1e9}}, [3]float64{0.25, 0.25, 0.25}},
		{"a floor", []*consumer{{stake: stake{floor: 300 * mib}, rate: 100e6, full: 320 * mib}, {rate: 100e6, full: 1e9}, {rate: 100e6, full: 1e9}}, [3]float64{0.7, 0, 0}},
		{"a fast one that rests", []*consumer{{rate: 400e6, full: 1e9, rest: 200 * time.Millisecond}, {rate: 40e6, full: 1e9}, {rate: 10e6, full: 1e9}}, [3]float64{0.25, 0.25, 0.15}},
		{"a fast and slow one", []*consumer{{rate: 400e6, full: 1e9, slow: 120 * time.Millisecond}, {rate: 40e6, full: 1e9}, {rate: 10e6, full: 1e9}}, [3]float64{0.25, 0.25, 0.15}},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := simulation{trace: trace{rate: func(time.Duration) float64 { return 0 }}, limit: limit, cost: time.Millisecond, took: time.Millisecond, caches: row.caches}
			s.leastRoom = defaultLeastRoom
			grown := 0.0
			for _, c := range s.caches {
				c.weight, c.slow, c.least = max(c.weight, 1), max(c.slow, time.Millisecond), noBound
				grown += c.rate * seconds
			}
			s.run(seconds * time.Second)
			all := s.cached()
			t.Logf("most %d MiB, %d shortages; caches have %d of %d MiB", s.most/mib, s.shortages, all/mib, limit)
			if s.most > limit*mib || all < limit*mib/2 {
				t.Errorf("%d MiB are used, of %d; caches have %d", s.most/mib, limit, all/mib)
			}
			if between := limit * mib * defaultLeastRoom / 2; float64(s.shortages) > grown/between+1 {
				t.Errorf("%d shortages, want %.0f", s.shortages, grown/between)
			}
			for i, c := range s.caches {
				is := float64(c.held) / float64(all)
				t.Logf("cache %d has %d MiB, %.2f of all, and had %d at least", i, c.held/mib, is, c.least/mib)
				if is < row.want[i] || float64(c.least) < row.want[i]*float64(all)*0.7 || c.held < c.floor || c.least == 0 {
					t.Errorf("cache %d has %.2f of all, want %.2f; it had %d MiB at least", i, is, row.want[i], c.least/mib)
				}
			}
		})
	}
}
