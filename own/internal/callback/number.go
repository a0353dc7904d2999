package callback

import (
	"errors"
	"sync"
	"unsafe"

	"github.com/cheapgo/cheap/internal/mem/osmem"
)

// A number is passed through C as a void *, so Go has it in unsafe.Pointers. It must not be an
// address of Go memory: the collector would look there. Nor may it be small, because the
// runtime takes a small pointer for a mistake.
//
// With 64 bits the highest bit is set, as in no address of a program:
//
//	1 | generation, 31 bits | slot, 32 bits
//
// No number is given out twice. With 32 bits each address may be one of Go. So numbers are
// addresses of a region that is reserved and never used:
//
//	region + generation, 6 bits | slot, 20 bits
//
// There a number repeats after fewFree slots have had all their generations, at the earliest.
const (
	wide    = unsafe.Sizeof(uintptr(0)) == 8
	repeats = !wide

	wideBit  = uint32(unsafe.Sizeof(uintptr(0)) / 8)
	slotBits = 20 + 12*wideBit
	genBits  = 6 + 25*wideBit
	maxGen   = 1 << genBits

	maxSlots = 1<<slotBits - 1
	fewFree  = 4096 * (1 - wideBit) // free slots that wait behind others

	regionSize = 1 << 26
)

var errTooMany = errors.New("cheap: own: there are too many callbacks; call Callback.Clear for those that C does not need")

// region returns the address of the region.
var region = sync.OnceValue(func() uintptr {
	r, err := osmem.Reserve(regionSize, 1<<slotBits)
	if err != nil {
		panic(err)
	}
	return r
})

// numberOf returns the number of a generation of a slot.
func numberOf(i, gen uint32) uintptr {
	n := uintptr(gen)<<slotBits | uintptr(i)
	if wide {
		return n | ^(^uintptr(0) >> 1)
	}
	return region() + n
}

// indexOf returns the slot of a number, and whether it can be a number.
func indexOf(number uintptr) (uint32, bool) {
	if wide {
		return uint32(number), number > ^uintptr(0)>>1
	}
	n := number - region()
	return uint32(n & (1<<slotBits - 1)), n < regionSize
}
