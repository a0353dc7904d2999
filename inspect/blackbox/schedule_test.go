package blackbox

import (
	"testing"
	"time"
)

const mib = 1 << 20

// A life has the charge of a container over time, and counts what a schedule does.
type life struct {
	t                       *testing.T
	s                       schedule
	now                     time.Time
	cost                    time.Duration // of a record
	looks, records, notices int
	last                    int64 // the charge at the last record
}

func newLife(t *testing.T, every time.Duration, cost time.Duration) *life {
	return &life{t: t, s: newSchedule(every, defaultNear), now: time.Unix(1_790_000_000, 0), cost: cost}
}

// run looks as often as the schedule says, for a time or until the limit is reached.
func (l *life) run(d time.Duration, limit int64, charge func(after time.Duration) int64) {
	l.looks, l.records, l.notices = 0, 0, 0
	for begin := l.now; l.now.Sub(begin) < d; {
		used := charge(l.now.Sub(begin))
		if limit > 0 && used >= limit {
			return
		}
		record, notice := l.s.look(l.now, used, limit)
		l.looks++
		if record {
			l.records++
			l.last = used
			l.s.wrote(l.now, l.cost)
		}
		if notice {
			if l.notices++; !record {
				l.t.Error("a notice without a record")
			}
		}
		if l.s.pause < lookLeast || l.s.pause > l.s.every {
			l.t.Fatalf("a pause of %v", l.s.pause)
		}
		l.now = l.now.Add(l.s.pause)
	}
}

// TestQuiet has a charge that does not change: a record in each second where there is no charge, in each
// eighth second where there is one, and nothing more.
func TestQuiet(t *testing.T) {
	for _, limit := range []int64{0, 100 * mib} {
		for _, used := range []int64{0, 50 * mib, 89 * mib, 95 * mib} {
			l := newLife(t, time.Second, time.Millisecond)
			l.run(100*time.Second, limit, func(time.Duration) int64 { return used })
			looks, records := 4, 12
			if limit == 0 {
				looks, records = 1, 99
			}
			if l.records < records || l.records > records+3 || l.looks > 101*looks+10 {
				t.Errorf("%d of %d: %d records and %d looks in 100 s", used, limit, l.records, l.looks)
			}
			if want := limit > 0 && used == 95*mib; (l.notices > 0) != want || l.notices > 1 {
				t.Errorf("%d of %d: %d notices", used, limit, l.notices)
			}
		}
	}
}

// TestSlow has records that take long, as on a slow disk or with very many stacks.
func TestSlow(t *testing.T) {
	for _, cost := range []time.Duration{5 * time.Millisecond, 50 * time.Millisecond, time.Second} {
		l := newLife(t, time.Second, cost)
		l.run(10*time.Minute, 100*mib, func(time.Duration) int64 { return 50 * mib })
		if spent := time.Duration(l.records) * cost; spent > budgetMost+10*time.Minute/budgetShare+cost || l.records < 6 {
			t.Errorf("%d records take %v of 10 minutes", l.records, spent)
		}
	}
}

// TestFast has charges that reach the limit in some time. The last record is close to it.
func TestFast(t *testing.T) {
	const limit = 200 * mib
	for _, d := range []time.Duration{500 * time.Millisecond, time.Second, 10 * time.Second, time.Minute} {
		for _, cost := range []time.Duration{200 * time.Microsecond, 2 * time.Millisecond} {
			l := newLife(t, time.Second, cost)
			l.run(time.Minute, limit, func(time.Duration) int64 { return 20 * mib })
			l.run(time.Hour, limit, func(after time.Duration) int64 { return 20*mib + int64(180*mib*after.Seconds()/d.Seconds()) })
			if l.last < limit/100*97 {
				t.Errorf("200 MiB are reached in %v, and the last of %d records has %d MiB", d, l.records, l.last/mib)
			}
			if l.notices != 1 {
				t.Errorf("200 MiB are reached in %v: %d notices", d, l.notices)
			}
			if spent := time.Duration(l.records) * cost; spent > budgetMost+d/budgetShare+time.Duration(d.Seconds()+2)*cost {
				t.Errorf("200 MiB are reached in %v, and records take %v", d, spent)
			}
		}
	}
}

// TestWaves has a charge that goes up and down near the limit. Records take one percent of the time, and
// there is a notice in a minute at most.
func TestWaves(t *testing.T) {
	const limit = 200 * mib
	for _, wave := range []time.Duration{20 * time.Millisecond, time.Second, 20 * time.Second} {
		for _, depth := range []float64{0.02, 0.05, 0.5} {
			l := newLife(t, time.Second, time.Millisecond)
			l.run(10*time.Minute, limit, func(after time.Duration) int64 {
				part := 2 * float64(after%wave) / float64(wave)
				if part > 1 {
					part = 2 - part
				}
				return int64(limit * (0.96 - depth*part))
			})
			if spent := time.Duration(l.records) * l.cost; spent > budgetMost+10*time.Minute/budgetShare+l.cost*time.Duration(l.notices+1) {
				t.Errorf("waves of %v and %v: records take %v of 10 minutes", wave, depth, spent)
			}
			most := 1
			if depth == 0.5 {
				most = 10
			}
			if l.notices == 0 || l.notices > most {
				t.Errorf("waves of %v and %v: %d notices", wave, depth, l.notices)
			}
		}
	}
}
