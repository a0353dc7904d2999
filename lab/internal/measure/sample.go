package measure

import (
	"context"
	"runtime"
)

// A sample is one round of a row.
type sample struct {
	N             int
	Wall, CPU     float64 // nanoseconds of all operations together; CPU is 0 if it is unknown
	Allocs, Bytes uint64  // in the Go heap
	Collections   uint32  // that the growth of the Go heap has started

	Figures
}

func (s sample) perOp(total float64) float64 { return total / float64(s.N) }

// take runs a round of n operations in this process, and checks that it did its
// work. Before the clock starts, it removes what earlier rounds have left.
func (u *unit) take(ctx context.Context, n int) (sample, error) {
	setProcs(u.procs)
	if err := quiet(ctx); err != nil {
		return sample{}, err
	}
	if !u.row.Keeps {
		trimMalloc()
	}
	if u.warm > 0 {
		if _, err := u.takeNow(u.warm); err != nil {
			return sample{}, err
		}
	}
	return u.takeNow(n)
}

// takeNow is take without removing what earlier rounds have left.
func (u *unit) takeNow(n int) (sample, error) {
	s := sample{N: n}
	if err := u.timed(&s); err != nil {
		return sample{}, err
	}
	if u.work.Check != nil {
		return s, u.work.Check(n)
	}
	return s, nil
}

// timed does the operations of s, and sets its times and allocations.
func (u *unit) timed(s *sample) (err error) {
	if u.work.Time != nil {
		s.Wall, s.CPU, err = u.work.Time(s.N)
		if u.work.Heap != nil {
			s.Allocs, s.Bytes = u.work.Heap()
		}
		u.setFigures(s)
		return err
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	cpu, start := cpuTime(), u.clock.now()
	u.work.Run(s.N)
	if u.work.Settle != nil {
		err = u.work.Settle()
	}
	s.Wall = float64(u.clock.since(start).Nanoseconds())
	s.CPU = float64((cpuTime() - cpu).Nanoseconds())
	runtime.ReadMemStats(&after)
	s.Allocs, s.Bytes = after.Mallocs-before.Mallocs, after.TotalAlloc-before.TotalAlloc
	// Those of Settle are forced.
	s.Collections = after.NumGC - before.NumGC - (after.NumForcedGC - before.NumForcedGC)
	u.setFigures(s)
	return err
}

// setFigures sets what the work knows besides times.
func (u *unit) setFigures(s *sample) {
	if u.work.Figures != nil {
		s.Figures = u.work.Figures()
	}
}

// setProcs sets GOMAXPROCS, which stops the world, where it is another.
func setProcs(n int) {
	if runtime.GOMAXPROCS(0) != n {
		runtime.GOMAXPROCS(n)
	}
}

// open sets the work up. A row without a collector is set up in its process.
func (u *unit) open() error {
	if u.row.NoGC {
		return nil
	}
	setProcs(u.procs)
	var err error
	u.work, err = u.row.Open(u.procs)
	return err
}

func (u *unit) close() {
	if u.work.Close != nil {
		u.work.Close()
	}
	u.work = Work{}
}
