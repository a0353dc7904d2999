package span

import (
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/cheapgo/cheap/internal/mem/osmem"
)

// regions has a word for each region of the address space: the address of the
// region's table, or 0. It is nil until Init.
var regions *[1 << (addressBits - regionShift)]uintptr

var initMap struct {
	mu   sync.Mutex
	done atomic.Bool
}

// Init makes the map. Until it has been called once without an error, no function that
// needs the map may be called, except Lookup.
func Init() error {
	if initMap.done.Load() {
		return nil
	}
	initMap.mu.Lock()
	defer initMap.mu.Unlock()
	if initMap.done.Load() {
		return nil
	}
	p, err := osmem.MapSparse(osmem.RoundPage(unsafe.Sizeof(*regions)))
	if err != nil {
		return err
	}
	regions = (*[1 << (addressBits - regionShift)]uintptr)(osmem.Pointer(p))
	initMap.done.Store(true)
	return nil
}

// Find returns the record of the unit that addr is in, or nil if there is none. It may
// be called while pinned.
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

// Ready reports whether TableOf may be called, which is after Init. A heap whose P has a
// cache need not ask.
//
//go:norace
func Ready() bool { return regions != nil }

// A Table is the address of the records of a region, or 0.
type Table uintptr

// TableOf is the first half of Find, for code that is called for every block. It is 0
// if addr has no record. It must not be called before Init.
//
//go:norace
func TableOf(addr uintptr) Table {
	i := addr >> regionShift
	if i >= uintptr(len(regions)) {
		return 0
	}
	// i is in range. A plain load without a bounds check is one instruction; an atomic
	// load takes two, and the check of the pointer one more. The word changes once, from
	// 0 to the address of a table, which the system has filled with zeros. A goroutine
	// that has a block got it after that.
	return *(*Table)(unsafe.Add(unsafe.Pointer(regions), i*ptrSize))
}

// Record is the second half of Find: the record of the unit that addr is in. t is
// TableOf(addr), and is not 0.
//
//go:norace
func (t Table) Record(addr uintptr) *Span {
	return At(uintptr(t) + addr>>UnitShift%regionUnits*spanSize)
}

// EachRecord calls f for all records that there are, of units in use and of others. It
// reads the whole map, which takes some milliseconds, so it is for tests.
func EachRecord(f func(*Span)) {
	if !initMap.done.Load() {
		return
	}
	for i := range regions {
		if table := atomic.LoadUintptr(&regions[i]); table != 0 {
			for u := range uintptr(regionUnits) {
				f(At(table + u*spanSize))
			}
		}
	}
}

// Lookup is Find, and may be called before Init.
func Lookup(addr uintptr) *Span {
	if !initMap.done.Load() {
		return nil
	}
	return Find(addr)
}

var makeTable sync.Mutex

// ensure makes records of the units of size bytes at addr, where there are none.
func ensure(addr, size uintptr) error {
	if addr+size-1 < addr || (addr+size-1)>>(addressBits-1)>>1 != 0 {
		return errAddress
	}
	for i := addr >> regionShift; i <= (addr+size-1)>>regionShift; i++ {
		if atomic.LoadUintptr(&regions[i]) != 0 {
			continue
		}
		makeTable.Lock()
		err := ensureTable(i)
		makeTable.Unlock()
		if err != nil {
			return err
		}
	}
	return nil
}

// ensureTable makes the table of region i, if there is none. The caller holds makeTable.
func ensureTable(i uintptr) error {
	if atomic.LoadUintptr(&regions[i]) != 0 {
		return nil
	}
	page := uintptr(unsafe.Pointer(&regions[i])) &^ (osmem.PageSize - 1)
	if err := osmem.Writable(page, osmem.PageSize); err != nil {
		return err
	}
	table, err := osmem.Map(osmem.RoundPage(regionUnits * spanSize)) // with 32 bits a page may be larger
	if err != nil {
		return err
	}
	atomic.StoreUintptr(&regions[i], table)
	return nil
}
