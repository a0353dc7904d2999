//go:build goexperiment.arenas

package tables

import (
	"arena"

	"github.com/cheapgo/cheap/lab/internal/measure"
)

func init() {
	experiment = []measure.Row{{Name: "experiment", Group: "arenas", N: 100 * arenaBlocks, Versus: "cheap", Open: func(int) (measure.Work, error) {
		return measure.Work{Run: func(n int) {
			for range n / arenaBlocks {
				a := arena.NewArena()
				for range arenaBlocks {
					block := arena.New[arenaBlock](a)
					block[0] = 1
					arenaSink = block
				}
				arenaSink = nil
				a.Free()
			}
		}}, nil
	}}}
}
