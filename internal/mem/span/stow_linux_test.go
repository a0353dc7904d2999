//go:build !cheap_gomem

package span

import (
	"errors"
	"runtime/debug"
	"slices"
	"syscall"
	"testing"

	"github.com/cheapgo/cheap/internal/mem/osmem"
	"github.com/cheapgo/cheap/internal/test/testcall"
)

// moves reports whether pages move. If not, it looks whether a mapping that is freed is
// released. Nothing is idle, and stays so for as long as the test likes.
func moves(t *testing.T) bool {
	t.Helper()
	old := SetDecay(-1)
	t.Cleanup(func() {
		checkPages(t)
		SetDecay(old)
	})
	TrimAll()
	if Moves() {
		return true
	}
	base, space, fresh := warmMapping(t, OwnMapping)
	write(base, OwnMapping)
	FreeWarmMapping(base, OwnMapping, space)
	if !fresh || Idle() != 0 {
		t.Errorf("fresh: %v, %d bytes are idle", fresh, Idle())
	}
	return false
}

// write writes a word to each page of a mapping, and check says whether the first n bytes
// have them.
func write(base, size uintptr) {
	for at := uintptr(0); at < size; at += osmem.PageSize {
		*(*uintptr)(osmem.Pointer(base + at)) = at + 1
	}
}

func check(t *testing.T, base, n uintptr) {
	t.Helper()
	for at := uintptr(0); at < n; at += osmem.PageSize {
		if got := *(*uintptr)(osmem.Pointer(base + at)); got != at+1 {
			t.Fatalf("at %#x is %#x", at, got)
		}
	}
}

// faults reports whether a read of the byte at addr faults.
func faults(addr uintptr) (is bool) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() { is = recover() != nil }()
	sink = *(*byte)(osmem.Pointer(addr))
	return false
}

var sink byte // or the compiler might leave the read out

// warmMapping is AllocWarmMapping that succeeds.
func warmMapping(t *testing.T, size uintptr) (base, space uintptr, fresh bool) {
	t.Helper()
	base, space, fresh, err := AllocWarmMapping(size, 1)
	testcall.Must(t, err)
	return base, space, fresh
}

// TestStow frees mappings, whose pages become warm units, and makes mappings of them. The
// addresses that were freed fault.
func TestStow(t *testing.T) {
	if !moves(t) {
		return
	}
	const size = OwnMapping + 3*chunkSize + 100*UnitSize/64
	for range 3 {
		base, space, fresh := warmMapping(t, size)
		if !fresh || *(*byte)(osmem.Pointer(base)) != 0 {
			t.Error("not fresh")
		}
		write(base, size)
		FreeWarmMapping(base, size, space)
		const moved = size / chunkSize * chunkSize
		if Idle() != moved {
			t.Fatalf("%d bytes are idle, not %d", Idle(), moved)
		}
		for at := uintptr(0); at < size; at += chunkSize {
			if !faults(base + at) {
				t.Errorf("at %#x the mapping does not fault", at)
			}
		}
		// Units have the pages.
		units, fresh, err := Alloc(chunkUnits, 1, chunkSize)
		if err != nil || fresh || *(*uintptr)(osmem.Pointer(units)) == 0 || Idle() != moved-chunkSize {
			t.Errorf("%v; fresh: %v, %d bytes are idle", err, fresh, Idle())
		}
		Free(units, chunkUnits)
		// So has the next mapping: other contents at the start, zero behind.
		base, space, fresh = warmMapping(t, 2*size)
		if fresh || Idle() != 0 {
			t.Errorf("fresh: %v, %d bytes are idle", fresh, Idle())
		}
		for at := uintptr(0); at < 2*size; at += osmem.PageSize {
			if got := *(*uintptr)(osmem.Pointer(base + at)); (got != 0) != (at < moved) {
				t.Fatalf("at %#x is %#x", at, got)
			}
		}
		if got, want := Find(base).Pieces, uint32(moved/chunkSize); got != want {
			t.Errorf("%d pieces, not %d", got, want)
		}
		pieces := pages.pieces
		FreeMapping(base, space)
		if n := pieces - pages.pieces; n != moved/chunkSize || pages.pieces < moved/chunkSize {
			t.Errorf("%d pieces less, %d are left", n, pages.pieces)
		}
	}
	if Idle() != 0 {
		t.Errorf("%d bytes are idle", Idle())
	}
}

// TestStowBetween has units in use in some chunks, and warm ones beside them. They keep
// what is theirs.
func TestStowBetween(t *testing.T) {
	if !moves(t) {
		return
	}
	const size = OwnMapping
	var used []uintptr
	for range 5 {
		units, _, err := Alloc(chunkUnits, chunkUnits, chunkSize)
		testcall.Must(t, err)
		write(units, chunkSize)
		used = append(used, units)
	}
	// The first keeps a unit, the second all but a warm one, the third is warm, the fourth
	// cold, the last in use.
	Free(used[3], chunkUnits)
	TrimAll()
	Free(used[0]+UnitSize, chunkUnits-1)
	Free(used[1], 1)
	Free(used[2], chunkUnits)
	for range 3 {
		base, space, _ := warmMapping(t, size)
		write(base, size)
		check(t, used[4], chunkSize)
		check(t, used[0], UnitSize)
		FreeWarmMapping(base, size, space)
		check(t, used[4], chunkSize)
		check(t, used[0], UnitSize)
		if got := *(*uintptr)(osmem.Pointer(used[1] + UnitSize)); got != UnitSize+1 {
			t.Errorf("in a unit that is in use is %#x", got)
		}
		if got := *(*uintptr)(osmem.Pointer(used[0] + 2*UnitSize)); got != 2*UnitSize+1 {
			t.Errorf("in a unit that is warm is %#x", got)
		}
	}
	Free(used[0], 1)
	Free(used[4], chunkUnits)
	Free(used[1]+UnitSize, chunkUnits-1)
	TrimAll()
}

// TestStowBounds frees more than may be warm, and with no piece left.
func TestStowBounds(t *testing.T) {
	if !moves(t) {
		return
	}
	const size = RegionSize - UnitSize
	var all [3]uintptr
	for i := range all {
		all[i], _, _ = warmMapping(t, size)
		for at := uintptr(0); at < size; at += osmem.PageSize {
			if at%chunkSize < 2*movedLeast { // what has less is not moved
				*(*byte)(osmem.Pointer(all[i] + at)) = 1
			}
		}
	}
	for _, base := range all {
		FreeWarmMapping(base, size, RegionSize)
		if most := uintptr(mostWarm()) * UnitSize; Idle() > most || Idle() < most-2*chunkSize {
			t.Errorf("%d bytes are idle, of %d", Idle(), most)
		}
	}
	before, used := mostPieces, pages.pieces
	defer func() { mostPieces = before }()
	mostPieces = func() int { return used }
	base, space, fresh := warmMapping(t, size)
	if !fresh || pages.pieces != used {
		t.Errorf("fresh: %v, %d pieces, of %d", fresh, pages.pieces, used)
	}
	FreeWarmMapping(base, size, space)
	TrimAll()
	if Idle() != 0 {
		t.Errorf("%d bytes are idle", Idle())
	}
}

// TestStowUntouched frees a mapping of which hardly a page was touched. It leaves nothing warm, and one
// that has pages in its last chunk alone leaves that.
func TestStowUntouched(t *testing.T) {
	if !moves(t) {
		return
	}
	for _, touched := range []uintptr{1, chunkSize, chunkSize + 4*UnitSize} { // the last ends with a part of a chunk
		base, space, _ := warmMapping(t, OwnMapping+touched%chunkSize)
		write(base+OwnMapping-chunkSize, touched)
		FreeWarmMapping(base, OwnMapping+touched%chunkSize, space)
		if want := touched / chunkSize * chunkSize; Idle() != want {
			t.Errorf("%d bytes were touched, and %d are idle", touched, Idle())
		}
		pages.most = pages.used // as in TestSpotty
		unit, fresh, _, err := AllocCarved(UnitSize)
		if err != nil || !fresh {
			t.Errorf("%d bytes were touched, and a unit that is to be carved has memory: %v", touched, err)
		}
		Free(unit, 1)
		TrimAll()
	}
}

// TestMovePieces moves a mapping that was made of warm units to another, and has the system
// refuse that at each step.
func TestMovePieces(t *testing.T) {
	if !moves(t) {
		return
	}
	const size = OwnMapping + 5*UnitSize
	base, space, _ := warmMapping(t, size)
	write(base, size)
	FreeWarmMapping(base, size, space)
	base, space, fresh := warmMapping(t, size)
	if fresh {
		t.Fatal("it is fresh")
	}
	write(base, size)
	to, toSpace, err := AllocMapping(2*size, 1)
	testcall.Must(t, err)
	left, refused := 0, errors.New("refused")
	f := func(op osmem.Op, _ uintptr) error {
		if op != osmem.OpRemap {
			return nil
		}
		if left--; left < 0 {
			return refused
		}
		return nil
	}
	osmem.Fault.Store(&f)
	defer osmem.Fault.Store(nil)
	lost, lostSpace, err := AllocMapping(2*size, 1)
	testcall.Must(t, err)
	left, refused = 2, osmem.ErrLost
	if MoveMapping(base, lost, size) || Find(lost).Lost != 3*chunkSize {
		t.Errorf("%d bytes are lost", Find(lost).Lost)
	}
	check(t, base, size)
	FreeMapping(lost, lostSpace)
	if !faults(lost) || faults(lost+2*chunkSize) || !faults(lost+3*chunkSize) { // nothing was really lost: it is mapped
		t.Error("what was moved is not released, or what was lost is")
	}
	osmem.Release(lost+2*chunkSize, chunkSize)
	refused = errors.New("refused")
	for n := 0; ; n++ {
		left = n
		if MoveMapping(base, to, size) {
			break
		}
		check(t, base, size)
		if n > size/chunkSize+1 {
			t.Fatal("it is refused for ever")
		}
	}
	osmem.Fault.Store(nil)
	check(t, to, size)
	if got := Find(to).Pieces; got != size/chunkSize {
		t.Errorf("%d pieces", got)
	}
	FreeMapping(base, space)
	FreeMapping(to, toSpace)
}

// TestMoveUnits moves the pages of units to a mapping. The units are free then, have no memory, and
// are zero. The system may refuse, or lose the addresses: these are not released.
func TestMoveUnits(t *testing.T) {
	if !moves(t) {
		return
	}
	const units = 40
	const size = units*UnitSize - 3*4096
	for i, want := range []error{nil, nil, errors.New("refused"), osmem.ErrLost} {
		pages.unmoved = i == 0 // as after addresses were lost
		from, _, err := Alloc(units, 1, size)
		testcall.Must(t, err)
		write(from, units*UnitSize) // the end of the last unit may have contents of another block
		to, space, err := AllocMapping(OwnMapping, 1)
		testcall.Must(t, err)
		inUse, mapped := InUse()
		pieces := pages.pieces
		f := func(op osmem.Op, _ uintptr) error {
			if op == osmem.OpRemap {
				return want
			}
			return nil
		}
		osmem.Fault.Store(&f)
		moved := MoveUnits(from, to, size)
		osmem.Fault.Store(nil)
		if moved != (want == nil && !pages.unmoved) {
			t.Fatalf("%v, no more is moved: %v; moved: %v", want, pages.unmoved, moved)
		}
		if moved {
			check(t, to, size)
			if n := osmem.Resident(from, units*UnitSize); n != 0 {
				t.Errorf("%d pages of the units are resident", n)
			}
			FreeEmpty(from, units)
			again, fresh, err := Alloc(units, 1, size)
			if err != nil || !fresh || again != from || *(*uintptr)(osmem.Pointer(from)) != 0 {
				t.Errorf("the next units are at %#x, fresh: %v, %v; they were at %#x", again, fresh, err, from)
			}
		} else {
			check(t, from, size)
		}
		Free(from, units)
		if n, m := InUse(); n != inUse-units || m != mapped {
			t.Errorf("%v: %d units and %d mappings in use, %d and %d before", want, n, m, inUse, mapped)
		}
		lost := uintptr(0)
		if want == osmem.ErrLost {
			lost = units * UnitSize
		}
		if got := Find(to).Lost; got != lost {
			t.Errorf("%v: %d bytes are lost, want %d", want, got, lost)
		}
		FreeMapping(to, space)
		if got := Find(to).Lost; got != 0 {
			t.Errorf("%v: %d bytes of the next mapping there are lost", want, got)
		}
		if !faults(to+units*UnitSize) || faults(to) != (lost == 0) { // nothing was really lost: it is mapped
			t.Errorf("%v: released: %v, and behind %v", want, faults(to), faults(to+size))
		}
		if lost != 0 {
			osmem.Release(to, lost)
		}
		if pages.pieces != pieces {
			t.Errorf("%v: %d pieces, %d before", want, pages.pieces, pieces)
		}
		TrimAll()
	}
}

// TestMoveStart moves units to a mapping, and that mapping to another one. For the system it is two mappings,
// and a Linux before 6.17 moves one at a time. When the last is freed, its chunks are warm, except the one in
// which the units have ended.
func TestMoveStart(t *testing.T) {
	if !moves(t) {
		return
	}
	for units, cut := range map[int]uintptr{40: 1, 2 * chunkUnits: 0} {
		pieces := pages.pieces
		from, _, err1 := Alloc(units, 1, uintptr(units)*UnitSize)
		to, space, err2 := AllocMapping(OwnMapping, 1)
		far, farSpace, err3 := AllocMapping(2*OwnMapping, 1)
		testcall.Must(t, errors.Join(err1, err2, err3))
		if !MoveUnits(from, to, uintptr(units)*UnitSize) {
			t.Fatal("the system does not move units")
		}
		FreeEmpty(from, units)
		write(to, OwnMapping)
		var sizes []uintptr
		note := func(_ osmem.Op, size uintptr) error { sizes = append(sizes, size); return nil }
		osmem.Fault.Store(&note)
		moved := MoveMapping(to, far, OwnMapping)
		osmem.Fault.Store(nil)
		if start := uintptr(units) * UnitSize; !moved || !slices.Equal(sizes, []uintptr{start, OwnMapping - start}) {
			t.Fatalf("%d units: moved: %v, %v bytes at a time", units, moved, sizes)
		}
		FreeMapping(to, space)
		check(t, far, OwnMapping)
		FreeWarmMapping(far, OwnMapping, farSpace)
		if want := OwnMapping - cut*chunkSize; Idle() != want {
			t.Errorf("%d units: %d bytes are idle, want %d", units, Idle(), want)
		}
		TrimAll()
		if n := pages.pieces - pieces - int(OwnMapping/chunkSize-cut); n > 0 {
			t.Errorf("%d units: %d pieces more than the chunks", units, n)
		}
	}
}

// TestHugeTables asks for huge pages where small ones were, with one unit in use and with others.
func TestHugeTables(t *testing.T) {
	if !moves(t) {
		return
	}
	for _, row := range []struct {
		name            string
		used            int // units of the chunk from its start on
		at, from, units int // of the call
		touch, warm     bool
		dropped         int
	}{
		{"new units", 3, 0, 0, 3, false, false, 1},
		{"the second is new", 2, 0, 1, 2, false, false, 0},
		{"one before", 2, 1, 0, 1, false, false, 0},
		{"one behind", 2, 0, 0, 1, false, false, 0},
		{"with memory", 1, 0, 0, 1, true, false, 0},
		{"warm before, with memory that may be swapped out", 1, 0, 0, 1, false, true, 0},
	} {
		base, _, err := Alloc(chunkUnits, chunkUnits, chunkSize)
		testcall.Must(t, err)
		write(base, chunkSize)
		Free(base, chunkUnits)
		TrimAll()
		if again, fresh, err := Alloc(chunkUnits, chunkUnits, chunkSize); again != base || !fresh || err != nil {
			t.Fatalf("%#x, fresh: %v, %v; it was at %#x", again, fresh, err, base)
		}
		FreeEmpty(base+uintptr(row.used)*UnitSize, chunkUnits-row.used)
		if row.touch {
			write(base, UnitSize)
		}
		if row.warm {
			Free(base, 1)
			if again, _, err := Alloc(1, 1, UnitSize); again != base || err != nil {
				t.Fatalf("%#x, %v; the warm unit is at %#x", again, err, base)
			}
		}
		dropped := 0
		note := func(op osmem.Op, size uintptr) error {
			if op == osmem.OpRemap {
				dropped++
			}
			return nil
		}
		osmem.Fault.Store(&note)
		Huge(base+uintptr(row.at)*UnitSize, row.from, row.units)
		osmem.Fault.Store(nil)
		if dropped != row.dropped {
			t.Errorf("%s: dropped %d times", row.name, dropped)
		}
		if row.touch {
			check(t, base, UnitSize)
		}
		Free(base, row.used)
		TrimAll()
	}
}

// findLost returns a function that frees the units that are in use and were not before.
func findLost() func() {
	before := map[*region]unitSet{}
	for _, r := range pages.regions {
		before[r] = r.used
	}
	return func() {
		for _, r := range pages.regions {
			was := before[r]
			for u := range regionUnits {
				if r.used.has(u) && !was.has(u) {
					r.used.remove(u)
					r.free++
					pages.used--
				}
			}
		}
		pages.first = 0
	}
}

// TestStowRefused has the system refuse to move pages, or lose addresses, or refuse the memory behind pages
// that have moved.
func TestStowRefused(t *testing.T) {
	if !moves(t) {
		return
	}
	const size = OwnMapping
	defer findLost()()
	refused := errors.New("refused")
	for _, want := range []error{refused, osmem.ErrLost} {
		for n := range 4 {
			left := n
			f := func(op osmem.Op, _ uintptr) error {
				if op == osmem.OpRemap {
					if left--; left < 0 {
						return want
					}
				}
				return nil
			}
			base, space, _ := warmMapping(t, size)
			write(base, size)
			units, mapped := InUse()
			osmem.Fault.Store(&f)
			FreeWarmMapping(base, size, space)
			osmem.Fault.Store(nil)
			lost := 0
			if want == osmem.ErrLost {
				lost = chunkUnits
			}
			if u, m := InUse(); Idle() != uintptr(n)*chunkSize || u != units+lost || m != mapped-1 {
				t.Errorf("%v after %d: %d bytes are idle, %d units in use, and %d before", want, n, Idle(), u, units)
			}
			if pages.unmoved != (want == osmem.ErrLost) {
				t.Errorf("%v: no more is moved: %v", want, pages.unmoved)
			}
			pages.unmoved = false
			left = n - 1
			reserved := osmem.ReadCounts().Reserved
			osmem.Fault.Store(&f)
			base, space, fresh := warmMapping(t, size)
			osmem.Fault.Store(nil)
			if more, is := osmem.ReadCounts().Reserved-reserved, pages.unmoved; more != int64(space) && !is || more != int64(space+chunkSize) && is {
				t.Errorf("%v after %d: %d bytes are reserved for a mapping of %d; addresses are lost: %v", want, left, more, space, is)
			}
			if fresh != (n <= 1 || want == osmem.ErrLost) {
				t.Errorf("%v after %d: fresh: %v", want, left, fresh)
			}
			write(base, size)
			check(t, base, size)
			if want == osmem.ErrLost && n > 0 {
				FreeWarmMapping(base, size, space)
				if !pages.unmoved || Idle() > uintptr(n)*chunkSize {
					t.Errorf("%d bytes are idle, although none is to be moved", Idle())
				}
			} else {
				FreeMapping(base, space)
			}
			pages.unmoved = false
			TrimAll()
		}
	}
	base, space, _ := warmMapping(t, size)
	write(base, size)
	FreeWarmMapping(base, size, space)
	f := func(op osmem.Op, _ uintptr) error {
		if op == osmem.OpCommit {
			return refused
		}
		return nil
	}
	osmem.Fault.Store(&f)
	_, _, _, err := AllocWarmMapping(size, 1)
	osmem.Fault.Store(nil)
	if err != refused || Idle() != 0 {
		t.Errorf("%v of a mapping that has pages, and no memory behind them; %d bytes are idle", err, Idle())
	}
}

// TestStowSplit frees a mapping of which the program has locked a page and changed the access
// of others.
func TestStowSplit(t *testing.T) {
	if !moves(t) {
		return
	}
	const size = OwnMapping
	base, space, _ := warmMapping(t, size)
	write(base, size)
	page := func(at uintptr) []byte { return bytesAt(base+at, osmem.PageSize) }
	if err := errors.Join(
		syscall.Mprotect(page(3*osmem.PageSize), syscall.PROT_READ),
		syscall.Mprotect(page(chunkSize), syscall.PROT_NONE),
		syscall.Mlock(page(3*chunkSize+UnitSize)),
	); err != nil {
		t.Fatal(err)
	}
	FreeWarmMapping(base, size, space)
	if Idle() < 2*chunkSize {
		t.Errorf("%d bytes are idle", Idle())
	}
	// Each unit can be used.
	for Idle() > 0 {
		unit, _, err := Alloc(1, 1, UnitSize)
		testcall.Must(t, err)
		defer Free(unit, 1)
		write(unit, UnitSize)
		check(t, unit, UnitSize)
	}
}
