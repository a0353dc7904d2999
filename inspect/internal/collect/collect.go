// Package collect collects garbage until package own has released what is unreachable.
package collect

import (
	"context"
	"runtime"
	"time"

	"github.com/cheapgo/cheap/own"
)

const (
	// most is the largest number of collections. An owner that was dropped needs three at
	// most. Those to which only other owners refer, by objects with finalizers, need more.
	most = 30

	// still is the number of collections in a row that change nothing before All returns.
	still = 3
)

// All collects until some collections in a row have released nothing. It waits for
// releases that are queued, but for those that need a call of Pool.Drain. If ctx is done
// before, it returns its error.
func All(ctx context.Context) error {
	last := read()
	for i, same := 0, 0; i < most && same < still; i++ {
		runtime.GC()
		time.Sleep(time.Millisecond) // cleanups run on goroutines of the runtime
		flush, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
		idle := own.Flush(flush) == nil
		cancel()
		if err := ctx.Err(); err != nil {
			return err
		}
		now := read()
		if now != last {
			last, same = now, 0
		} else if idle || now.queued > 0 {
			same++
		} // else a release takes long
	}
	return nil
}

// A state has the numbers that change when something is released.
type state struct{ live, made, collected, queued int64 }

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
