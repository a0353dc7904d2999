//go:build !cgo || !unix

package tables

import (
	"github.com/cheapgo/cheap/internal/page/result"
	"github.com/cheapgo/cheap/lab/internal/measure"
)

const cgoHere = false

// HasC says that this build has the rows that call C.
const HasC = cgoHere

func (allocation) cgoRows() []measure.Row { return nil }
func cgoBlocks(*measure.Table) []blockWay { return nil }
func (blockWay) check() error             { return nil }
func cgoCalls() []call                    { return nil }
func releaseRows() []measure.Row          { return nil }
func cgoPairs() []measure.Row             { return nil }
func stringRows() []measure.Row           { return nil }
func cgoBatches() []measure.Row           { return nil }
func nativePairs(string) []measure.Row    { return nil }

// needsC is a table that has no rows here.
func needsC(name string) func() measure.Table {
	return func() measure.Table {
		return measure.Table{Table: result.Table{Name: name, Title: "needs a C compiler"}}
	}
}

var (
	Lists     = needsC("lists")
	Live      = needsC("live")
	Patterns  = needsC("patterns")
	Resident  = needsC("resident")
	Server    = needsC("server")
	Survivors = needsC("survivors")
	Tail      = needsC("tail")
)
