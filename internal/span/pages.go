package span

import (
	"sync"

	"math/bits"
	"unsafe"

	"github.com/cheapgo/cheap/internal/osmem"
)

// region is 64 MiB (4 MiB on 32-bit systems) of address space that spans are
// taken from. It is never given up.
type region struct {
	base      uintptr
	index     int // in pages.regions
	committed int // units from the start that have been committed at least once

	used unitSet // handed out
	warm unitSet // not handed out, but may have memory behind it and contents
	cool unitSet // the part of warm that was warm at the last Age already

	// spotty is the part of warm where memory may lie anywhere, because a
	// large block was there. In other units it begins at the start, and what
	// is carved from them next lies on it.
	spotty unitSet

	free  int // units not in used
	nwarm int // units in warm
}

// unitSet is a set of units of a region.
type unitSet [(regionUnits + 63) / 64]uint64

//go:norace
func (s *unitSet) has(i int) bool { return s[i/64]>>(i%64)&1 != 0 }

//go:norace
func (s *unitSet) add(i int) { s[i/64] |= 1 << (i % 64) }

//go:norace
func (s *unitSet) remove(i int) { s[i/64] &^= 1 << (i % 64) }

// next returns the first unit from i on that is in s, or, with in false, that
// is not; regionUnits where there is none.
//
//go:norace
func (s *unitSet) next(i int, in bool) int {
	for i < regionUnits {
		w := s[i/64]
		if !in {
			w = ^w
		}
		if w >>= i % 64; w != 0 {
			return min(i+bits.TrailingZeros64(w), regionUnits)
		}
		i = (i/64 + 1) * 64
	}
	return regionUnits
}

// run returns the first start of n units in a row whose membership in s is in,
// at a multiple of align units, or -1.
//
//go:norace
func (s *unitSet) run(n, align int, in bool) int {
	for i := s.next(0, in); i < regionUnits; {
		start := (i + align - 1) / align * align
		end := s.next(start, !in)
		if end-start >= n {
			return start
		}
		i = s.next(max(end, start+1), in)
	}
	return -1
}

// commitStep is how many units are committed at once, because each step is a
// system call. Committed units cost no memory before they are touched.
const commitStep = 1 << 20 / UnitSize

// warmFloor and warmShare bound the idle memory that is kept for reuse: up to
// the floor, in units, and beyond it up to 1/warmShare of what is handed out.
const (
	warmFloor = 1024
	warmShare = 4
)

// pages is the state of the package. All of it is under mu.
var pages struct {
	mu      sync.Mutex
	regions []*region
	first   int // no region before this one has a free unit
	used    int // units handed out
	most    int // the most that used ever was
	warm    int // units in the warm sets
}

// Alloc returns units in a row, at a multiple of align units, a power of two,
// of which the first size bytes are committed. It reports whether they are
// known to read as zero.
func Alloc(units, align int, size uintptr) (base uintptr, fresh bool, err error) {
	return alloc(units, align, size, false)
}

// AllocCarved is Alloc of one unit that will be used from its start on. While
// the program grows beyond what it ever used, it has no memory in other places.
func AllocCarved(size uintptr) (base uintptr, fresh bool, err error) {
	return alloc(1, 1, size, true)
}

//go:norace
func alloc(units, align int, size uintptr, carved bool) (base uintptr, fresh bool, err error) {
	if err := Init(); err != nil {
		return 0, false, err
	}
	pages.mu.Lock()
	defer pages.mu.Unlock()
	if pages.warm >= units {
		for _, r := range pages.regions[pages.first:] {
			if r.nwarm >= units {
				if i := r.warm.run(units, align, true); i >= 0 {
					if carved && pages.used >= pages.most && r.spotty.has(i) {
						r.drop(i, i+1)
					}
					return r.take(i, units, size)
				}
			}
		}
	}
	for _, r := range pages.regions[pages.first:] {
		if r.free >= units {
			if i := r.used.run(units, align, false); i >= 0 {
				return r.take(i, units, size)
			}
		}
	}
	r, err := newRegion()
	if err != nil {
		return 0, false, err
	}
	return r.take(0, units, size)
}

//go:norace
func newRegion() (*region, error) {
	base, err := osmem.Reserve(RegionSize, RegionSize)
	if err != nil {
		return nil, err
	}
	if err := ensure(base, RegionSize); err != nil {
		osmem.Release(base, RegionSize)
		return nil, err
	}
	if len(pages.regions) == 0 && !osmem.GoBacked {
		// Where the system backs everything with huge pages, a small heap
		// that touches a little of each of its spans would take 2 MiB for
		// every one. A heap that has filled a region is not small.
		osmem.SmallPages(base, RegionSize)
	}
	r := &region{base: base, index: len(pages.regions), free: regionUnits}
	pages.regions = append(pages.regions, r)
	Find(base).Region = uint32(r.index)
	return r, nil
}

// take hands out units from i on.
//
//go:norace
func (r *region) take(i, units int, size uintptr) (uintptr, bool, error) {
	base := r.base + uintptr(i)*UnitSize
	if err := r.commit(i, units, size); err != nil {
		return 0, false, err
	}
	fresh := true
	for u := i; u < i+units; u++ {
		r.used.add(u)
		if r.warm.has(u) {
			fresh = false
			r.chill(u)
		}
	}
	r.free -= units
	pages.used += units
	pages.most = max(pages.most, pages.used)
	for pages.first < len(pages.regions) && pages.regions[pages.first].free == 0 {
		pages.first++
	}
	return base, fresh, nil
}

// commit makes the first size bytes of some units usable.
//
//go:norace
func (r *region) commit(i, units int, size uintptr) error {
	if osmem.DecommitRevokes {
		return osmem.Commit(r.base+uintptr(i)*UnitSize, osmem.RoundPage(size))
	}
	end := i + units
	if end <= r.committed {
		return nil
	}
	step := min((end+commitStep-1)/commitStep*commitStep, regionUnits)
	if osmem.Commit(r.base+uintptr(r.committed)*UnitSize, uintptr(step-r.committed)*UnitSize) == nil {
		r.committed = step
		return nil
	}
	if err := osmem.Commit(r.base+uintptr(r.committed)*UnitSize, uintptr(end-r.committed)*UnitSize); err != nil {
		return err
	}
	r.committed = end
	return nil
}

// chill takes u out of the warm set.
//
//go:norace
func (r *region) chill(u int) {
	r.warm.remove(u)
	r.cool.remove(u)
	r.spotty.remove(u)
	r.nwarm--
	pages.warm--
}

// Extend hands out more units behind the units at base, if they are free, and
// makes the first size bytes, counted from base, usable. It reports whether it
// could.
//
//go:norace
func Extend(base uintptr, units, more int, size uintptr) bool {
	pages.mu.Lock()
	defer pages.mu.Unlock()
	r := find(base)
	i := int((base-r.base)/UnitSize) + units
	if i+more > regionUnits || r.used.next(i, true) < i+more {
		return false
	}
	_, _, err := r.take(i, more, size-uintptr(units)*UnitSize)
	return err == nil
}

// Commit makes the first size bytes at base usable. They lie in units that were
// handed out.
//
//go:norace
func Commit(base, size uintptr) error {
	if !osmem.DecommitRevokes {
		return nil // whole units are usable
	}
	return osmem.Commit(base, osmem.RoundPage(size))
}

// FreeCarved takes a unit back that AllocCarved returned. Decay has to be called
// some time later.
func FreeCarved(base uintptr) { free(base, 1, false) }

// Free takes units back that Alloc or Extend returned. Decay has to be called
// some time later.
func Free(base uintptr, units int) { free(base, units, true) }

//go:norace
func free(base uintptr, units int, spotty bool) {
	pages.mu.Lock()
	defer pages.mu.Unlock()
	r := find(base)
	first := int((base - r.base) / UnitSize)
	for u := first; u < first+units; u++ {
		r.used.remove(u)
		r.warm.add(u)
		if spotty {
			r.spotty.add(u)
		}
	}
	r.nwarm += units
	r.free += units
	pages.warm += units
	pages.used -= units
	pages.first = min(pages.first, r.index)
	if most := max(warmFloor, pages.used/warmShare); pages.warm > most {
		dropWarm(pages.warm - most)
	}
}

// Hollow gives the memory of the whole pages among size bytes at addr back, if
// the system can do so without making them fault, and clears the rest. It
// reports whether it did.
//
//go:norace
func Hollow(addr, size uintptr) bool {
	start, end := osmem.RoundPage(addr), (addr+size)&^(osmem.PageSize-1)
	if osmem.DecommitRevokes || start >= end {
		return false
	}
	clear(unsafe.Slice((*byte)(osmem.Pointer(addr)), start-addr))
	clear(unsafe.Slice((*byte)(osmem.Pointer(end)), addr+size-end))
	osmem.Decommit(start, end-start)
	return true
}

// Abandon gives the memory of the first size bytes of a unit back and hands the
// unit out to nobody any more. The addresses read as zero from then on. Where
// memory cannot be given back without making them fault, it stays.
//
//go:norace
func Abandon(base, size uintptr) {
	if osmem.DecommitRevokes {
		clear(unsafe.Slice((*byte)(osmem.Pointer(base)), size))
		return
	}
	osmem.Decommit(base, osmem.RoundPage(size))
}

// find returns the region that addr lies in.
//
//go:norace
func find(addr uintptr) *region { return pages.regions[Find(addr&^(RegionSize-1)).Region] }

// dropWarm gives the memory behind n idle units back, or somewhat more, those
// at the highest addresses first, because the lowest are handed out first.
//
//go:norace
func dropWarm(n int) {
	for i := len(pages.regions) - 1; i >= 0 && n > 0; i-- {
		r := pages.regions[i]
		for u := regionUnits - 1; u >= 0 && n > 0 && r.nwarm > 0; u-- {
			if !r.warm.has(u) {
				continue
			}
			end := u + 1
			for u > 0 && r.warm.has(u-1) && end-u < n {
				u--
			}
			r.drop(u, end)
			n -= end - u
		}
	}
}

// drop gives the memory behind the units from start to end back.
//
//go:norace
func (r *region) drop(start, end int) {
	for u := start; u < end; u++ {
		r.chill(u)
	}
	osmem.Decommit(r.base+uintptr(start)*UnitSize, uintptr(end-start)*UnitSize)
}

// Age gives back the memory of units that have been idle since the Age before,
// and returns how many idle units still have some.
//
//go:norace
func Age() (warm int) {
	pages.mu.Lock()
	defer pages.mu.Unlock()
	for _, r := range pages.regions {
		r.dropAll(&r.cool)
		r.cool = r.warm
	}
	return pages.warm
}

// TrimTo gives back the memory of idle units, but for so many bytes of them.
//
//go:norace
func TrimTo(keep uintptr) {
	pages.mu.Lock()
	defer pages.mu.Unlock()
	if most := int(keep / UnitSize); pages.warm > most {
		dropWarm(pages.warm - most)
	}
}

// TrimAll gives back the memory of all idle units.
//
//go:norace
func TrimAll() {
	pages.mu.Lock()
	defer pages.mu.Unlock()
	for _, r := range pages.regions {
		r.dropAll(&r.warm)
	}
}

//go:norace
func (r *region) dropAll(set *unitSet) {
	for start := set.next(0, true); start < regionUnits; {
		end := set.next(start, false)
		r.drop(start, end)
		start = set.next(end, true)
	}
}

// Warm returns how many units that nobody holds may still have memory behind
// them.
//
//go:norace
func Warm() int {
	pages.mu.Lock()
	defer pages.mu.Unlock()
	return pages.warm
}

// Idle returns how many bytes those are.
func Idle() uintptr { return uintptr(Warm()) * UnitSize }

// Each calls f for the first record of each span whose tag belongs to heap,
// outside of any lock. Spans that appear or go meanwhile may be missed.
//
//go:norace
func Each(heap uintptr, f func(*Span)) {
	pages.mu.Lock()
	var bases []uintptr
	for _, r := range pages.regions {
		bases = append(bases, r.base)
	}
	pages.mu.Unlock()
	own.mu.Lock()
	for a := own.first; a != 0; a = At(a).Next {
		bases = append(bases, At(a).Base)
	}
	own.mu.Unlock()
	for _, base := range bases {
		s := Find(base)
		for i := range uintptr(regionUnits) {
			s := At(s.Addr() + i*spanSize)
			if tag := s.LoadTag(); tag>>KindBits == heap && tag&KindMask != KindBody {
				f(s)
			}
		}
	}
}
