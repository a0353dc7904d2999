package lifetime

import (
	"fmt"
	"runtime"
	"time"
)

// Collect runs collections until left returns 0, that is, until all unreachable
// objects are released. It gives up after a minute.
func Collect(left func() int) error {
	const step = time.Millisecond // after so long without progress, collect again
	for begin := time.Now(); ; {
		runtime.GC()
		start := time.Now()
		for last, progress := -1, start; time.Since(progress) < step; {
			now := left()
			// Twice: a batch that is sealed between two counts of a pool is in
			// neither, or in both.
			if now == 0 && left() == 0 {
				return nil
			}
			if now != last {
				last, progress = now, time.Now()
			}
			// Each call of left takes time from the releases, and a late call makes
			// the round longer. Both are little.
			time.Sleep(min(max(time.Since(start)/16, 20*time.Microsecond), step/2))
		}
		if time.Since(begin) > time.Minute {
			return fmt.Errorf("gave up after %v of collections: %d unreachable objects were not released", time.Since(begin).Round(time.Second), left())
		}
	}
}
