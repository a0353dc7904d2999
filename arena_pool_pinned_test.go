//go:build !cheap_portable && !race

package cheap

import (
	"fmt"
	"runtime"
	"sync"
	"testing"

	"github.com/cheapgo/cheap/internal/testwait"
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
	testwait.Until(t, fmt.Sprintf("pooled arenas keep the %d bytes that one P may keep", boxes), func() bool {
		Trim()
		runtime.GC()
		return Default().Stats().Bytes <= before+boxes
	})
}
