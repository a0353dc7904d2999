package cleanup

import (
	"bytes"
	"runtime/debug"
	"sync/atomic"
	"testing"
	"time"
)

// TestLongWalk has a walk whose functions take long. It does not keep the goroutine of the
// runtime, on which other cleanups wait.
func TestLongWalk(t *testing.T) {
	collectorOff(t)
	const n = 4 * slots
	var there, elsewhere atomic.Int64
	aside(func() {
		for range n {
			Add(new(object), func(*int) {
				if bytes.Contains(debug.Stack(), []byte("runtime.runCleanups")) {
					there.Add(1)
				} else {
					elsewhere.Add(1)
				}
				time.Sleep(mostInline / 10)
			}, new(int))
		}
	})
	collections(t, "all are called", 3, func() bool { return there.Load()+elsewhere.Load() == n })
	if k := there.Load(); k > n/2 {
		t.Errorf("%d of %d functions were called on a goroutine of the runtime", k, n)
	}
}
