package tables

import (
	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/internal/page/result"
	"github.com/cheapgo/cheap/lab/internal/measure"
)

// arenaBlocks is how many blocks an arena has before it ends.
const arenaBlocks = 1000

type arenaBlock [64]byte

//lint:ignore U1000 it is only assigned to, so that what is assigned escapes
var arenaSink *arenaBlock

// experiment has the row of the arenas of Go's experiment, where GOEXPERIMENT=arenas has built it.
var experiment []measure.Row

// Arenas is the table of blocks from an arena.
func Arenas() measure.Table {
	return measure.Table{
		Table: result.Table{
			Name:  "arenas",
			Title: "A thousand blocks from an arena",
			About: "Blocks of 64 bytes are allocated from an arena and written to, and the arena ends: a pooled Arena, and with GOEXPERIMENT=arenas one of package arena. No source has figures.",
			Unit:  "block",
			Chart: result.Bars,
		},
		Rows: append([]measure.Row{{Name: "cheap", Group: "arenas", N: 100 * arenaBlocks, Open: func(int) (measure.Work, error) {
			return measure.Work{Run: func(n int) {
				for range n / arenaBlocks {
					a := cheap.GetArena()
					for range arenaBlocks {
						block := (*arenaBlock)(needed(a.Malloc(len(arenaBlock{}))))
						block[0] = 1
						arenaSink = block
					}
					arenaSink = nil
					a.Put()
				}
			}}, nil
		}}}, experiment...),
		Named: true,
	}
}
