package batch

import "github.com/cheapgo/cheap/internal/mem/span"

// takeUnit returns a unit, which giveUnit gives back.
func takeUnit() (base uintptr, err error) {
	base, _, err = span.Alloc(1, 1, span.UnitSize)
	return base, err
}

func giveUnit(base uintptr) { span.Free(base, 1) }

// takeUnits returns units in a row, or 0.
func takeUnits(n int) uintptr {
	base, _, err := span.Alloc(n, 1, uintptr(n)*span.UnitSize)
	if err != nil {
		return 0
	}
	return base
}

// giveUnits gives back what takeUnits returned. No lock is held.
func giveUnits(base uintptr, n int) {
	span.Free(base, n)
	span.Decay()
}
