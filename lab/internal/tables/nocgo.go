//go:build !cgo || !unix

package tables

import "github.com/cheapgo/cheap/lab/internal/measure"

const cgoHere = false

// HasC says that this build has the rows that call C.
const HasC = cgoHere

func (allocation) cgoRows() []measure.Row { return nil }
func cgoBlocks(*measure.Table) []blockWay { return nil }
func (blockWay) check() error             { return nil }
func cgoCalls() []call                    { return nil }
func listRows() []measure.Row             { return nil }
func liveRows() []measure.Row             { return nil }
func releaseRows() []measure.Row          { return nil }
func residentRows() []measure.Row         { return nil }
func cgoPairs() []measure.Row             { return nil }
func serverRows() []measure.Row           { return nil }
func stringRows() []measure.Row           { return nil }
func cgoBatches() []measure.Row           { return nil }
func survivorRows() []measure.Row         { return nil }
func patternRows() []measure.Row          { return nil }
func nativePairs(string) []measure.Row    { return nil }
func dropinBatches() []measure.Row        { return nil }
func tailRows() []measure.Row             { return nil }
