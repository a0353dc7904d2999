package own

import (
	"context"
	"runtime"
	"time"

	"github.com/cheapgo/cheap/internal/aftergc"
	"github.com/cheapgo/cheap/internal/goroutine"
	"github.com/cheapgo/cheap/own/internal/worker"
)

// ReleaseStats describes the workers, the goroutines of this package that release
// what the collector found unreachable. A goroutine that does so in Own or Make, with
// Options.Inline, counts as a worker meanwhile.
type ReleaseStats struct {
	Workers int // running workers
	Batches int // batches that wait for a worker

	Oldest     time.Duration // how long the oldest running release has taken; 0 if none runs
	OldestPool string        // Options.Name of its pool
}

// Releases returns the state of the workers. A release function that does not
// return shows as a growing Oldest.
func Releases() ReleaseStats {
	return ReleaseStats(worker.Look())
}

// Flush waits until no release is queued and none is running on a goroutine of
// this package, or with Options.Inline in Own or Make. If ctx is done before, Flush
// returns its error. Releases that wait for [Pool.Drain] count as queued: another
// goroutine must call Drain meanwhile.
//
// Flush does not run the garbage collector. After its owner is dropped, a
// resource may need up to three collections to be queued, because the owners of
// an open batch are not registered yet.
//
// When main returns, and at os.Exit, queued releases are dropped. A program that
// needs them to run calls Flush before.
//
// In a release function, in Options.OnCollect and in Options.OnReleaseError Flush would
// wait for itself. It
// returns [ErrInRelease] there. It does not notice that a release function waits
// for another goroutine, which calls Flush.
func Flush(ctx context.Context) error {
	if goroutine.Entered() {
		return ErrInRelease
	}
	for wait := pause(0); !worker.Idle(); wait = pause(wait) {
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// pause sleeps, longer from call to call. It does not wait on a channel or a
// condition, because in a bubble of testing/synctest these would belong to the
// bubble, and the workers are in none.
func pause(last time.Duration) time.Duration {
	const shortest = 20 * time.Microsecond
	longest := time.Millisecond
	if last == 0 {
		runtime.Gosched()
		return shortest
	}
	if aftergc.InBubble() {
		// In a bubble a sleep takes no real time. A deadline would pass before a
		// worker, which is in no bubble, can run. With Options.Inline one begins some
		// milliseconds later.
		for i := 0; i < 1000 || i < 20_000 && worker.Waiting(); i++ {
			runtime.Gosched()
		}
		longest = 50 * time.Millisecond
	}
	time.Sleep(last)
	return min(2*last, longest)
}
