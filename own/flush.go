package own

import (
	"context"
	"time"

	"github.com/cheapgo/cheap/internal/watch/gcwatch"
	"github.com/cheapgo/cheap/own/internal/worker"
)

// ReleaseStats describes the workers, the goroutines of this package that release
// what the collector found unreachable. A goroutine that does so in Own or Make, with
// [Inline], counts as a worker meanwhile.
type ReleaseStats struct {
	Workers int64 // running workers
	Batches int64 // batches that wait for a worker

	Oldest     time.Duration // how long the oldest running release has taken; 0 if none runs
	OldestPool string        // Options.Name of its pool
}

// ReadReleases returns the state of the workers. A release function that does not
// return shows as a growing Oldest.
func ReadReleases() ReleaseStats {
	return ReleaseStats(worker.CurrentState())
}

// Flush waits until no release is queued, and none is running on a goroutine of
// this package, or with [Inline] in Own or Make. If ctx is done before that,
// Flush returns the error of ctx. Releases that wait for [Queue.Drain] count as
// queued: another goroutine must call Drain meanwhile.
//
// Flush does not run the garbage collector. After its owner is dropped, a
// resource may need up to three collections to be queued, because the owners of
// an open batch are not registered yet.
//
// When main returns, and at os.Exit, queued releases are dropped. A program that
// needs these releases calls Flush before.
//
// In a release function, in Options.OnCollect and in Options.OnReleaseError Flush would
// wait for itself. It returns [ErrInRelease] there. It does not detect a release
// function that waits for another goroutine, if that goroutine calls Flush.
func Flush(ctx context.Context) error {
	if gcwatch.InSection() {
		return ErrInRelease
	}
	if err := await(ctx, worker.BecameIdle, worker.Idle); err != nil {
		return err
	}
	return ctx.Err()
}
