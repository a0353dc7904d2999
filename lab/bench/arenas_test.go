//go:build goexperiment.arenas

package bench

import (
	"arena"
	"testing"

	"github.com/cheapgo/cheap"
)

// arenaBlocks is how many blocks of 64 bytes an arena has before it ends.
const arenaBlocks = 1000

type arenaBlock [64]byte

//lint:ignore U1000 it is only assigned to, so that what is assigned escapes
var arenaSink *arenaBlock

// BenchmarkArenas allocates blocks from an arena, writes to each, and frees the arena: one
// of Go's experiment, and one of this module. It needs the experiment:
//
//	GOEXPERIMENT=arenas go test -run=- -bench=Arenas -cpu=1 -count=6 ./bench
func BenchmarkArenas(b *testing.B) {
	each := func(b *testing.B) {
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/arenaBlocks, "ns/block")
		b.ReportMetric(0, "ns/op")
	}
	b.Run("arena=experiment", func(b *testing.B) {
		for b.Loop() {
			a := arena.NewArena()
			for range arenaBlocks {
				block := arena.New[arenaBlock](a)
				block[0] = 1
				arenaSink = block
			}
			arenaSink = nil
			a.Free()
		}
		each(b)
	})
	b.Run("arena=cheap", func(b *testing.B) {
		for b.Loop() {
			a := cheap.GetArena()
			for range arenaBlocks {
				block := (*arenaBlock)(a.Malloc(len(arenaBlock{})))
				block[0] = 1
				arenaSink = block
			}
			arenaSink = nil
			a.Put()
		}
		each(b)
	})
}
