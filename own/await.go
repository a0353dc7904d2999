package own

import (
	"context"
	"runtime"
	"time"

	"github.com/cheapgo/cheap/internal/watch/gcwatch"
	"github.com/cheapgo/cheap/own/internal/worker"
)

// await waits until done reports true or ctx is done. It returns nil in the first case, and
// the error of ctx in the second. listen returns a channel that is closed when the result
// of done may have changed since the call of listen.
func await(ctx context.Context, listen func() <-chan struct{}, done func() bool) error {
	if gcwatch.InBubble() {
		return awaitInBubble(ctx, done)
	}
	for {
		changed, begin := listen(), time.Now()
		if done() {
			return nil
		}
		// Changes may come one after the other. Calls of done take half of the time at
		// most.
		pause := time.Since(begin)
		if err := ctx.Err(); err != nil {
			return err
		}
		select {
		case <-changed:
		case <-ctx.Done():
		}
		if pause > time.Microsecond {
			time.Sleep(pause)
		}
	}
}

// awaitInBubble is await in a bubble of testing/synctest. The change may happen on a goroutine
// outside, such as a worker, which must not close a channel of the bubble. Or it may happen in
// the bubble, after some time of the bubble. This time stands still while a goroutine of the
// bubble waits for a channel from outside. So there await calls done again and again, by the
// clock of the bubble: it is late by 1/500 of the wait, and by a second at most.
func awaitInBubble(ctx context.Context, done func() bool) error {
	const (
		part           = 500
		least, longest = 20 * time.Microsecond, time.Second

		// A sleep in a bubble takes no real time. A deadline would pass before a worker, which is
		// in no bubble, can run. With Inline one begins some milliseconds later.
		fewYields, manyYields = 10, 20_000
	)
	yields := 1_000_000 // a release may take longer than the test wants to wait
	for begin := time.Now(); ; {
		if done() {
			return nil
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		for i := 0; i < fewYields || i < manyYields && yields > 0 && worker.Waiting(); i++ {
			runtime.Gosched()
			yields--
		}
		pause := min(max(time.Since(begin)/part, least), longest)
		if at, ok := ctx.Deadline(); ok {
			pause = min(pause, max(time.Until(at), least))
		}
		time.Sleep(pause)
	}
}
