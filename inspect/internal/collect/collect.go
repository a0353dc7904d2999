// Package collect collects garbage until package own has released what is unreachable.
package collect

import (
	"context"
	"runtime"
	"runtime/metrics"
	"time"

	"github.com/cheapgo/cheap/own"
)

const (
	// most is the largest number of collections. An owner that was dropped needs three at
	// most. Those to which only other owners refer, by objects with finalizers, need more.
	most = 30

	// still is the number of collections in a row that change nothing before All returns.
	still = 3

	// moment is how long All waits after a collection for the functions that the runtime calls then,
	// and how long for releases. Some of them may never return.
	moment = 50 * time.Millisecond
)

// All collects until some collections in a row have released nothing. It waits for
// releases that are queued, but for those that need a call of Queue.Drain. If ctx is done
// before, it returns its error.
func All(ctx context.Context) error {
	last := read()
	for i, same := 0, 0; i < most && same < still; i++ {
		runtime.GC()
		toCall := called(ctx)
		idle := flushed(ctx)
		if err := ctx.Err(); err != nil {
			return err
		}
		now := read()
		now.toCall = toCall
		if now != last {
			last, same = now, 0
		} else if idle || now.queued > 0 {
			same++
		} // else a release takes long
	}
	return nil
}

// called waits for the functions that the runtime has queued in a collection: cleanups and
// finalizers. It returns how many of them have not returned after a moment.
func called(ctx context.Context) (left uint64) {
	m := []metrics.Sample{
		{Name: "/gc/cleanups/executed:cleanups"}, {Name: "/gc/cleanups/queued:cleanups"},
		{Name: "/gc/finalizers/executed:finalizers"}, {Name: "/gc/finalizers/queued:finalizers"},
	}
	for end := time.Now().Add(moment); ; time.Sleep(50 * time.Microsecond) {
		metrics.Read(m)
		left = m[1].Value.Uint64() - m[0].Value.Uint64() + m[3].Value.Uint64() - m[2].Value.Uint64()
		if left == 0 || time.Now().After(end) || ctx.Err() != nil {
			return left
		}
	}
}

// flushed waits a moment for releases, and reports whether all have ended.
func flushed(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, moment)
	defer cancel()
	return own.Flush(ctx) == nil
}

// A state has the numbers that change when something is released.
type state struct {
	live, made, collected, queued int64
	toCall                        uint64 // functions that the runtime has queued; one that blocks keeps the others waiting
}

func read() (s state) {
	for _, p := range own.Pools() {
		st := p.Stats()
		s.live += st.Live
		s.made += st.Made
		s.collected += st.Collected
		s.queued += st.Queued
	}
	return s
}
