//go:build cheap_check

package batch

import (
	"github.com/cheapgo/cheap/internal/osmem"
	"github.com/cheapgo/cheap/internal/span"
)

// With cheap_check a heap expects its pattern in a unit that was in use before, and the
// links of the store are in the way. So a unit is mapped, and goes back at once.
func takeUnit() (base uintptr, err error) {
	if base, err = osmem.Reserve(span.UnitSize, span.UnitSize); err != nil {
		return 0, err
	}
	if err = osmem.Commit(base, span.UnitSize); err != nil {
		osmem.Release(base, span.UnitSize)
	}
	return base, err
}

func giveUnit(base uintptr) {
	osmem.Must(base%span.UnitSize == 0, "batch.giveUnit", "base", base)
	osmem.Release(base, span.UnitSize)
}

const takesUnits = false

// takeUnits returns 0: large bundles have Go memory.
func takeUnits(n int) uintptr { return 0 }

func giveUnits(base uintptr, n int) {}
