package replay

import (
	"context"
	"errors"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/cheapgo/cheap/internal/replay/peers"
	"github.com/cheapgo/cheap/internal/replay/trace"
)

// Time replays a trace for some rounds, at least one. It returns the
// nanoseconds per operation of each round, for each of infos.
func Time(ctx context.Context, tr *trace.Trace, infos []peers.Info, rounds int) (perOp [][]float64, err error) {
	s, err := NewSession(tr, infos)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()

	perOp = make([][]float64, len(infos))
	for round := range rounds {
		took, err := s.Round(ctx, round)
		if err != nil {
			return nil, err
		}
		for i, d := range took {
			perOp[i] = append(perOp[i], float64(d.Nanoseconds())/float64(len(tr.Ops)))
		}
	}
	return perOp, nil
}

// A Session is a trace and the allocators that take turns with it. It is for one
// goroutine at a time.
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

// Round gives each allocator a turn, and returns how long each took. The number of
// the round decides which allocator is first, so that none always follows the same
// neighbour. Blocks that the trace leaves are freed off the clock. An allocator
// keeps freed memory from round to round, as in a program that runs on.
//
// Round checks ctx between turns, and returns early with its error.
func (s *Session) Round(ctx context.Context, round int) ([]time.Duration, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer debug.SetGCPercent(debug.SetGCPercent(-1))

	took := make([]time.Duration, len(s.peers))
	for turn := range took {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		i := (turn + round) % len(took)
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
