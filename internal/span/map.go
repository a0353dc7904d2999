package span

import (
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/cheapgo/cheap/internal/osmem"
)

// regions has a word for each region of the address space: the address of the
// region's table, or 0. It is nil until Init.
var regions *[1 << (addressBits - regionShift)]uintptr

var initMap struct {
	mu   sync.Mutex
	done atomic.Bool
}

// Init makes the map. Everything else here but Lookup needs it.
func Init() error {
	if initMap.done.Load() {
		return nil
	}
	initMap.mu.Lock()
	defer initMap.mu.Unlock()
	if initMap.done.Load() {
		return nil
	}
	p, err := osmem.Map(unsafe.Sizeof(*regions))
	if err != nil {
		return err
	}
	regions = (*[1 << (addressBits - regionShift)]uintptr)(osmem.Pointer(p))
	initMap.done.Store(true)
	return nil
}

// Find returns the record of the unit that addr lies in, or nil if there is no
// record. It may be called while pinned.
//
//go:norace
func Find(addr uintptr) *Span {
	i := addr >> regionShift
	if i >= uintptr(len(regions)) {
		return nil
	}
	table := atomic.LoadUintptr(&regions[i])
	if table == 0 {
		return nil
	}
	return At(table + addr>>UnitShift%regionUnits*spanSize)
}

// Lookup is Find that may be called before Init.
func Lookup(addr uintptr) *Span {
	if !initMap.done.Load() {
		return nil
	}
	return Find(addr)
}

var makeTable sync.Mutex

// ensure makes sure that the units of size bytes at addr have records.
func ensure(addr, size uintptr) error {
	if addr+size-1 < addr || (addr+size-1)>>(addressBits-1)>>1 != 0 {
		return errAddress
	}
	for i := addr >> regionShift; i <= (addr+size-1)>>regionShift; i++ {
		if atomic.LoadUintptr(&regions[i]) != 0 {
			continue
		}
		makeTable.Lock()
		if atomic.LoadUintptr(&regions[i]) == 0 {
			table, err := osmem.Map(regionUnits * spanSize)
			if err != nil {
				makeTable.Unlock()
				return err
			}
			atomic.StoreUintptr(&regions[i], table)
		}
		makeTable.Unlock()
	}
	return nil
}
