package measure

import (
	"context"
	"fmt"
	"runtime"
	"runtime/metrics"
	"time"

	"github.com/cheapgo/cheap/own"
)

// patience is how long a queued release may take.
const patience = 20 * time.Second

// quiet removes what the previous row has left: it collects, and waits until no
// finalizer, cleanup or release is queued.
func quiet(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	runtime.GC()
	if err := flush(ctx); err != nil {
		return err
	}
	runtime.GC() // frees what had a finalizer, and ends the sweep of the first
	return nil
}

// trimMalloc has C's malloc release memory that it does not use. It is a variable for
// tests.
var trimMalloc = trim

// flush waits until the last collection's finalizers, cleanups and releases have
// run.
func flush(ctx context.Context) error {
	for pause := 20 * time.Microsecond; queued() > 0; pause = min(2*pause, time.Millisecond) {
		if ctx.Err() != nil {
			return stuck(ctx, "finalizers and cleanups")
		}
		time.Sleep(pause)
	}
	if err := own.Flush(ctx); err != nil {
		return stuck(ctx, "releases of own")
	}
	return nil
}

// stuck says what is still queued when ctx is done.
func stuck(ctx context.Context, what string) error {
	if err := context.Cause(ctx); err != context.DeadlineExceeded {
		return err
	}
	return fmt.Errorf("%s are still queued after %v", what, patience)
}

// queued returns how many finalizers and cleanups wait to be run.
func queued() uint64 {
	s := []metrics.Sample{
		{Name: "/gc/finalizers/queued:finalizers"},
		{Name: "/gc/finalizers/executed:finalizers"},
		{Name: "/gc/cleanups/queued:cleanups"},
		{Name: "/gc/cleanups/executed:cleanups"},
	}
	metrics.Read(s)
	return s[0].Value.Uint64() - s[1].Value.Uint64() + s[2].Value.Uint64() - s[3].Value.Uint64()
}
