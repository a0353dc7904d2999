//go:build !cheap_portable && !race

package cheap

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/cheapgo/cheap/internal/test/testwait"
)

// TestArenaPoolLoweredProcs fills the boxes of Ps that then stop running.
func TestArenaPoolLoweredProcs(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(8))
	before := Default().Stats().Bytes
	var wg sync.WaitGroup
	var mu sync.Mutex
	var arenas []*Arena
	for range 64 {
		wg.Go(func() {
			for range 500 {
				a, b := GetArena(), GetArena()
				a.Malloc(100)
				b.Malloc(100)
				runtime.Gosched()
				a.Put()
				b.Put()
				mu.Lock()
				arenas = append(arenas, a, b)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	runtime.GOMAXPROCS(1)
	dropStranded()
	for _, a := range arenas {
		if a.home != nil && !slices.Contains([]*arenaBox{&boxesOf[0].box[0], &boxesOf[0].box[1], &boxesOf[0].box[2]}, a.home) {
			t.Fatal("an arena goes back to the box of a P that does not run")
		}
	}
	arenas = nil
	for id := range boxesOf[1:] {
		for i := range boxesOf[1+id].box {
			if boxesOf[1+id].box[i].owned.Load() {
				t.Fatalf("no arena can have box %d of P %d", i, 1+id)
			}
		}
	}
	const boxes = int64(len(arenaBoxes{}.box)) * pooledChunks * pooledChunk
	testwait.Until(t, fmt.Sprintf("pooled arenas keep the %d bytes that one P may keep", boxes), func() bool {
		Trim()
		runtime.GC()
		return Default().Stats().Bytes <= before+boxes
	})
}
