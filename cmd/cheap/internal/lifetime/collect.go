package lifetime

import (
	"fmt"
	"runtime"
	"time"
)

// Collect collects until left returns 0: until everything that nobody can reach
// has been released. It gives up after a minute.
func Collect(left func() int) error {
	const step = time.Millisecond // without progress for so long, collect again
	for begin := time.Now(); ; {
		runtime.GC()
		start := time.Now()
		for last, progress := -1, start; time.Since(progress) < step; {
			now := left()
			// Twice, for a batch that is sealed between two counts of a pool's
			// is in neither, or in both.
			if now == 0 && left() == 0 {
				return nil
			}
			if now != last {
				last, progress = now, time.Now()
			}
			// A look costs others time, and a late one makes the round
			// longer, both by little.
			time.Sleep(min(max(time.Since(start)/16, 20*time.Microsecond), step/2))
		}
		if time.Since(begin) > time.Minute {
			return fmt.Errorf("after %v of collections, of what nobody can reach any more there is left: %d", time.Since(begin).Round(time.Second), left())
		}
	}
}
