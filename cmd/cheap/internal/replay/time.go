package replay

import (
	"context"
	"errors"
	"runtime"
	"runtime/debug"
	"slices"
	"time"

	"github.com/cheapgo/cheap/cmd/cheap/internal/peers"
	"github.com/cheapgo/cheap/cmd/cheap/internal/trace"
)

// Timing holds how long each round of a trace took on one allocator.
type Timing struct {
	Ops    int // operations in a round
	Rounds []time.Duration
}

// Best returns the nanoseconds per operation of the fastest round.
func (t Timing) Best() float64 { return t.perOp(slices.Min(t.Rounds)) }

// Median returns the nanoseconds per operation of the median round; of an even
// number of rounds, the slower one of the two in the middle.
func (t Timing) Median() float64 {
	sorted := slices.Sorted(slices.Values(t.Rounds))
	return t.perOp(sorted[len(sorted)/2])
}

// PerOp returns the nanoseconds per operation of each round.
func (t Timing) PerOp() []float64 {
	out := make([]float64, len(t.Rounds))
	for i, d := range t.Rounds {
		out[i] = t.perOp(d)
	}
	return out
}

func (t Timing) perOp(d time.Duration) float64 { return float64(d.Nanoseconds()) / float64(t.Ops) }

// Time replays a trace for so many rounds, at least one, and returns the timings
// in the order of infos. Before a round, progress is called with its number,
// from 0.
func Time(ctx context.Context, tr *trace.Trace, infos []peers.Info, rounds int, progress func(round int)) (times []Timing, err error) {
	s, err := NewSession(tr, infos)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()

	times = make([]Timing, len(infos))
	for round := range rounds {
		progress(round)
		took, err := s.Round(ctx, round)
		if err != nil {
			return nil, err
		}
		for i := range times {
			times[i].Ops = len(tr.Ops)
			times[i].Rounds = append(times[i].Rounds, took[i])
		}
	}
	return times, nil
}

// A Session is a trace and the allocators that take turns with it. One
// goroutine at a time uses it.
type Session struct {
	trace *trace.Trace
	infos []peers.Info
	peers []peers.Peer // of each info
	slots peers.Slots
}

// NewSession opens the allocators. The trace has operations.
func NewSession(tr *trace.Trace, infos []peers.Info) (*Session, error) {
	s := &Session{trace: tr, infos: infos, slots: newSlots(tr.Slots)}
	for _, info := range infos {
		p, err := info.Open(tr.Slots)
		if err != nil {
			return nil, errors.Join(err, s.Close())
		}
		s.peers = append(s.peers, p)
	}
	return s, nil
}

// Close closes the allocators.
func (s *Session) Close() error {
	var errs []error
	for _, p := range s.peers {
		errs = append(errs, p.Close())
	}
	s.peers = nil
	return errors.Join(errs...)
}

// Round gives each allocator a turn, and returns how long each took. Who begins
// depends on the number of the round, so that no one always follows the same
// neighbour. What the trace leaves is freed outside of the timing. An allocator
// keeps from round to round what it keeps of memory that was freed, as in a
// program that runs on.
//
// Round returns early with the error of ctx, which it looks at between turns.
func (s *Session) Round(ctx context.Context, round int) ([]time.Duration, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer debug.SetGCPercent(debug.SetGCPercent(-1))

	took := make([]time.Duration, len(s.peers))
	for turn := range s.peers {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		i := (turn + round) % len(s.peers)
		p, ops := s.peers[i], s.trace.Ops
		runtime.GC()
		start := time.Now()
		failed := p.Replay(ops, s.slots)
		took[i] = time.Since(start)
		if failed != nil {
			err := outOfMemory(s.infos[i].Name, ops, failed)
			free(p, ops[:err.Index], s.slots)
			return nil, err
		}
		free(p, ops, s.slots)
	}
	return took, nil
}
