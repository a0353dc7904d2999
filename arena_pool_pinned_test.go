//go:build !cheap_portable && !race

package cheap

import (
	"runtime"
	"sync"
	"testing"
	"time"
)

// TestArenaPoolLoweredProcs fills the boxes of Ps that then stop running.
func TestArenaPoolLoweredProcs(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(8))
	before := Default().Stats().Bytes
	var wg sync.WaitGroup
	for range 64 {
		wg.Go(func() {
			for range 500 {
				a, b := GetArena(), GetArena()
				a.Malloc(100)
				b.Malloc(100)
				runtime.Gosched()
				a.Put()
				b.Put()
			}
		})
	}
	wg.Wait()
	runtime.GOMAXPROCS(1)
	const boxes = int64(len(arenaBoxes{}.box)) * pooledChunks * pooledChunk
	deadline := time.Now().Add(10 * time.Second)
	for {
		Trim()
		runtime.GC()
		if now := Default().Stats().Bytes; now <= before+boxes {
			return
		} else if time.Now().After(deadline) {
			t.Fatalf("pooled arenas keep %d bytes, one P may keep %d", now-before, boxes)
		}
		time.Sleep(time.Millisecond)
	}
}
