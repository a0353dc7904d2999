package span

import (
	"errors"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
	"unsafe"

	"github.com/cheapgo/cheap/internal/mem/osmem"
	"github.com/cheapgo/cheap/internal/test/testcall"
)

// TestUnitSet compares sets of units with a slice of bools.
func TestUnitSet(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for density := range 5 {
		var s unitSet
		ref := make([]bool, regionUnits)
		for i := range ref {
			if r.IntN(4) < density {
				ref[i] = true
				s.add(i)
			}
		}
		for range regionUnits / 4 {
			i := r.IntN(regionUnits)
			ref[i] = false
			s.remove(i)
		}
		for i := range ref {
			if s.has(i) != ref[i] {
				t.Fatalf("has(%d) = %v", i, s.has(i))
			}
		}
		for _, in := range []bool{true, false} {
			for i := range regionUnits + 1 {
				want := regionUnits
				if j := slices.Index(ref[min(i, regionUnits):], in); j >= 0 {
					want = i + j
				}
				if got := s.next(i, in); got != want {
					t.Fatalf("next(%d, %v) = %d, want %d", i, in, got, want)
				}
			}
			for _, n := range []int{1, 2, 3, 7, regionUnits/2 + 1, regionUnits} {
				for _, align := range []int{1, 2, 16} {
					if got, want := s.run(n, align, in), runOf(ref, n, align, in); got != want {
						t.Fatalf("run(%d, %d, %v) = %d, want %d", n, align, in, got, want)
					}
				}
			}
		}
	}
}

// runOf is unitSet.run, done simply.
func runOf(ref []bool, n, align int, in bool) int {
	for start := 0; start+n <= len(ref); start += align {
		if !slices.Contains(ref[start:start+n], !in) {
			return start
		}
	}
	return -1
}

// A run is units that a test has from Alloc.
type run struct {
	base  uintptr
	units int
}

func (r run) end() uintptr { return r.base + uintptr(r.units)*UnitSize }

// dirty writes into the first and the last page of each unit.
func (r run) dirty() {
	for a := r.base; a < r.end(); a += UnitSize {
		*(*byte)(osmem.Pointer(a + 100)) = 1
		*(*byte)(osmem.Pointer(a + UnitSize - 1)) = 1
	}
}

// zero reports whether that, and what dirty does not write, is 0.
func (r run) zero() bool {
	for a := r.base; a < r.end(); a += UnitSize {
		if slices.Max(unsafe.Slice((*byte)(osmem.Pointer(a)), 200)) != 0 || *(*byte)(osmem.Pointer(a + UnitSize - 1)) != 0 {
			return false
		}
	}
	return true
}

// allocRun allocates a run and compares it with the others.
func allocRun(t *testing.T, live []run, units, align int) run {
	t.Helper()
	var base uintptr
	var fresh bool
	var err error
	if units == 1 && align == 1 {
		base, fresh, _, err = AllocCarved(UnitSize)
	} else {
		base, fresh, err = Alloc(units, align, uintptr(units)*UnitSize)
	}
	testcall.Must(t, err)
	r := run{base, units}
	if base%(uintptr(align)*UnitSize) != 0 || base>>regionShift != (r.end()-1)>>regionShift {
		t.Fatalf("%d units, aligned to %d, at %#x", units, align, base)
	}
	for _, other := range live {
		if r.base < other.end() && other.base < r.end() {
			t.Fatalf("%d units at %#x overlap %d at %#x", r.units, r.base, other.units, other.base)
		}
	}
	for a := base; a < r.end(); a += UnitSize {
		if Find(a) == nil || Find(a+UnitSize-1) != Find(a) || Find(a).Tag != 0 {
			t.Fatalf("the unit at %#x has no record, or belongs to a heap", a)
		}
	}
	if fresh && !r.zero() {
		t.Fatalf("%d units at %#x are said to be zero", units, base)
	}
	return r
}

// TestUnits allocates, extends and frees units at random, and trims and ages
// them.
func TestUnits(t *testing.T) {
	defer SetDecay(SetDecay(-1))
	rounds := 4000
	if testing.Short() {
		rounds = 400
	}
	r := rand.New(rand.NewPCG(2, 2))
	var live []run
	used := pages.used
	for i := range rounds {
		switch op := r.IntN(20); {
		case op < 10:
			n := 1 + r.IntN(1<<r.IntN(6))
			n = min(n, regionUnits/4)
			run := allocRun(t, live, n, 1<<r.IntN(4))
			run.dirty()
			live = append(live, run)
			used += n
		case op < 18 && len(live) > 0:
			j := r.IntN(len(live))
			run := live[j]
			live = slices.Delete(live, j, j+1)
			if part := r.IntN(run.units); part > 0 { // the end of it only
				Free(run.base+uintptr(part)*UnitSize, run.units-part)
				used -= run.units - part
				run.units = part
				live = append(live, run)
				break
			}
			if run.units == 1 && i%2 == 0 {
				FreeCarved(run.base)
			} else {
				Free(run.base, run.units)
			}
			used -= run.units
		case op == 18 && len(live) > 0:
			run := &live[r.IntN(len(live))]
			more := 1 + r.IntN(4)
			wider := *run
			wider.units += more
			free := wider.base>>regionShift == (wider.end()-1)>>regionShift
			for _, other := range live {
				free = free && (other == *run || other.base >= wider.end() || other.end() <= run.end())
			}
			if ok := Extend(run.base, run.units, more, uintptr(wider.units)*UnitSize); ok != free {
				t.Fatalf("Extend of %d units at %#x by %d: %v", run.units, run.base, more, ok)
			} else if ok {
				*run = wider
				run.dirty()
				used += more
			}
		case op == 19:
			switch i % 3 {
			case 0:
				TrimAll()
			case 1:
				Age()
			case 2:
				if Age(); Age() != 0 {
					t.Fatal("units are idle that have been through two ages")
				}
			}
			if i%3 != 1 && Idle() != 0 {
				t.Fatalf("%d bytes are idle", Idle())
			}
		}
		if pages.used != used {
			t.Fatalf("%d units are used, should be %d", pages.used, used)
		}
	}
	for _, run := range live {
		Free(run.base, run.units)
	}
	checkPages(t)
	TrimAll()
	checkPages(t)
	if Idle() != 0 {
		t.Errorf("%d bytes are idle after Trim", Idle())
	}
}

// TestTails takes warm units for less than they have, and frees, shrinks and extends these. The rest is idle.
func TestTails(t *testing.T) {
	const part = 48 << 10 // whole pages of all systems but those with pages of 64 KiB, which have no tails
	defer SetDecay(SetDecay(-1))
	TrimAll()
	tail := UnitSize - osmem.RoundPage(part)
	mustHave := func(after string, idle uintptr) {
		t.Helper()
		checkPages(t)
		if got := Idle(); got != idle {
			t.Fatalf("%s: %d bytes are idle, want %d", after, got, idle)
		}
	}
	take := func(units int, size uintptr) run {
		base, _, err := Alloc(units, 1, size)
		testcall.Must(t, err)
		return run{base, units}
	}
	warm := take(3, 3*UnitSize)
	warm.dirty()
	Free(warm.base, 3)
	TrimAll()
	r := take(3, 2*UnitSize+part)
	mustHave("cold units are taken", 0)
	r.dirty()
	Free(r.base, 3)
	r = take(2, UnitSize+part)
	mustHave("two units are taken", tail+UnitSize)
	Age()
	Free(r.base, 2)
	r = take(2, UnitSize+part)
	Age() // the tail is not the one of the last Age
	mustHave("an age", tail)
	Age()
	mustHave("two ages", 0)
	if r.zero() || tail > 0 && *(*byte)(osmem.Pointer(r.end() - 1)) != 0 {
		t.Error("the ages have released something else than the tail")
	}
	Shrink(r.base, 2, part)
	mustHave("the span is shrunk", tail+UnitSize)
	testcall.Must(t, Commit(r.base, UnitSize))
	mustHave("the span grows within its unit", UnitSize)
	Shrink(r.base, 1, part)
	if !Extend(r.base, 1, 1, UnitSize+part) {
		t.Fatal("cannot extend")
	}
	mustHave("the span is shrunk, and extended", 0) // the last unit has lost its tail
	Shrink(r.base, 2, part)
	refuse := func(op osmem.Op, _ uintptr) error {
		if op == osmem.OpCommit {
			return errors.New("refused")
		}
		return nil
	}
	reg := find(r.base)
	committed := reg.committed
	reg.committed = int((r.end()-reg.base)/UnitSize) - 1 // as if nobody had used the unit behind the span
	osmem.Fault.Store(&refuse)
	if Extend(r.base, 1, 1, 2*UnitSize) {
		t.Error("the span is extended without memory")
	}
	osmem.Fault.Store(nil)
	reg.committed = committed
	mustHave("there is no memory to extend it", tail+UnitSize)
	TrimTo(tail + UnitSize)
	mustHave("all may stay", tail+UnitSize)
	if tail > 0 {
		TrimTo(tail + UnitSize - 1)
		mustHave("less may stay", UnitSize)
	}
	if !Extend(r.base, 1, 1, 2*UnitSize) {
		t.Fatal("cannot extend")
	}
	r.dirty()
	Free(r.base, 2)
	owned := pages.owned
	r = take(1, part)
	mustHave("one of two is taken", tail+UnitSize)
	Abandon(r.base, part)
	mustHave("it is abandoned", UnitSize)
	if !osmem.DecommitRevokes && pages.owned != owned {
		t.Errorf("%d parts are counted, which have no memory", pages.owned-owned)
	}
	if !osmem.DecommitRevokes && !r.zero() {
		t.Error("it has contents")
	}
	r = take(1, part)
	mustHave("another is taken", tail)
	SetDecay(time.Millisecond)
	waitIdle(t)
	SetDecay(0)
	Free(r.base, 1)
	r = take(1, UnitSize)
	Free(r.base, 1)
	r = take(1, part)
	mustHave("the decay is 0", 0)
	Free(r.base, 1)
	SetDecay(-1)
	TrimAll()

	// A huge page is not broken for a tail.
	base, _, err := Alloc(chunkUnits, chunkUnits, chunkSize)
	testcall.Must(t, err)
	chunk := run{base, chunkUnits}
	chunk.dirty()
	Free(base, 1)
	take(1, part)
	mustHave("a unit of a chunk is taken", tail)
	if Huge(base, 0, 1); osmem.HasHugePages {
		mustHave("it gets huge pages", 0)
		Free(base, 1)
		take(1, part)
		mustHave("a unit of a huge page is taken", 0)
	}
	Free(base, 1)
	Free(base+UnitSize, chunkUnits-1)
	TrimAll()

	// Many tails are bounded.
	for _, size := range []uintptr{4 << 10, 32 << 10} {
		var all []run
		for range warmFloor {
			all = append(all, take(1, UnitSize))
			all[len(all)-1].dirty()
		}
		for _, r := range all {
			Free(r.base, 1)
		}
		for i := range all {
			all[i] = take(1, size)
		}
		bound := max(tailFloor, pages.owned*partSize/tailShare)
		if n := int(Idle()) - (warmFloor-len(all))*UnitSize; n > bound || n < bound-UnitSize && osmem.PageSize < UnitSize {
			t.Errorf("%d units with %d bytes: %d bytes are idle, want at most %d", len(all), size, n, bound)
		}
		for _, r := range all {
			Free(r.base, 1)
		}
		TrimAll()
		mustHave("all is free", 0)
	}
}

// checkPages compares the counts of units with the sets.
func checkPages(t *testing.T) {
	t.Helper()
	used, warm, owned, tails, pieces := 0, 0, 0, 0, 0
	for a := mappings.first; a != 0; a = At(a).Next {
		pieces += int(At(a).Pieces)
	}
	for i, r := range pages.regions {
		pieces += bits.OnesCount32(r.pieces)
		free, nwarm := 0, 0
		for u := range regionUnits {
			if !r.used.has(u) {
				free++
			}
			if r.warm.has(u) {
				nwarm++
			}
			if r.used.has(u) {
				owned += int(r.reach[u] - r.tail[u])
			}
			tails += int(r.tail[u])
			if r.used.has(u) && r.warm.has(u) || r.cool.has(u) && !r.warm.has(u) || r.spotty.has(u) && !r.warm.has(u) {
				t.Errorf("unit %d of region %d is in sets that exclude each other", u, i)
			}
		}
		if free != r.free || nwarm != r.nwarm || r.index != i || i < pages.first && free > 0 {
			t.Errorf("region %d: %+v has %d free units, %d warm", i, r, free, nwarm)
		}
		used += regionUnits - free
		warm += nwarm
	}
	if used != pages.used || warm != pages.warm || owned != pages.owned || tails != pages.tails || pieces != pages.pieces {
		t.Errorf("%d units are used and %d warm, with %d parts, %d in tails and %d pieces; counted are %d, %d, %d, %d, %d",
			used, warm, owned, tails, pieces, pages.used, pages.warm, pages.owned, pages.tails, pages.pieces)
	}
}

// TestFreedLast takes as many units as were freed last, if they lie between others. Else it takes the lowest ones.
func TestFreedLast(t *testing.T) {
	TrimAll()
	var all [6]run
	for i := range all {
		all[i] = allocRun(t, nil, 2, 1)
	}
	for _, c := range []struct {
		freed []run
		first run // taken
	}{{all[1:2], all[1]}, {[]run{all[3], all[1]}, all[1]}, {[]run{all[1], all[3]}, all[3]}, {all[1:3], all[1]}} {
		for _, r := range c.freed {
			Free(r.base, 2)
		}
		if got := allocRun(t, nil, 2, 1); got != c.first {
			t.Errorf("%x were freed, and %#x was taken, want %#x", c.freed, got.base, c.first.base)
		}
		for range c.freed[1:] {
			allocRun(t, nil, 2, 1)
		}
	}
	for _, r := range all {
		Free(r.base, 2)
	}
	TrimAll()
	checkPages(t)
}

// TestWarmIsBounded frees more than may stay warm.
func TestWarmIsBounded(t *testing.T) {
	defer SetDecay(SetDecay(-1))
	TrimAll()
	var live []run
	for range 2 * warmFloor / 16 {
		live = append(live, allocRun(t, nil, 16, 1))
	}
	for _, run := range live {
		Free(run.base, run.units)
		if most := uintptr(max(warmFloor, pages.used/warmShare)) * UnitSize; Idle() > most {
			t.Fatalf("%d bytes are idle, at most %d should be", Idle(), most)
		}
	}
	if Idle() == 0 {
		t.Error("nothing stays warm")
	}
	// A program that takes as much again, and frees it, misses nothing any more. The bound falls with the decay.
	for i := range live {
		live[i] = allocRun(t, nil, 16, 1)
	}
	for _, run := range live {
		Free(run.base, run.units)
	}
	if most := 2 * warmFloor * uintptr(UnitSize); Idle() != most {
		t.Errorf("%d bytes are idle, %d were needed again", Idle(), most)
	}
	for range 12 {
		Age()
	}
	if mostWarm() > warmFloor+1 || Idle() != 0 {
		t.Errorf("%d units may be idle after the decay, and %d bytes are", mostWarm(), Idle())
	}
	TrimAll()
	checkPages(t)
}

// TestTrimTo keeps some of what is idle.
func TestTrimTo(t *testing.T) {
	defer SetDecay(SetDecay(-1))
	TrimAll()
	var live []run
	for range 10 {
		live = append(live, allocRun(t, nil, 3, 1))
	}
	for _, run := range live {
		Free(run.base, run.units)
	}
	all := Idle()
	if all < 30*UnitSize {
		t.Fatalf("%d bytes are idle", all)
	}
	for _, keep := range []uintptr{all + 1, all, 20 * UnitSize, 7*UnitSize + 1, 0} {
		TrimTo(keep)
		// Whole runs are given back.
		if idle := Idle(); idle > keep || idle+3*UnitSize < min(keep, all) || keep >= all && idle != all {
			t.Errorf("%d bytes are idle after TrimTo(%d)", idle, keep)
		}
		checkPages(t)
	}
}

// TestReuse looks whether warm units are handed out before others.
func TestReuse(t *testing.T) {
	defer SetDecay(SetDecay(-1))
	first := allocRun(t, nil, 3, 1)
	Free(first.base, first.units)
	for range 100 {
		again := allocRun(t, nil, 3, 1)
		if again != first {
			t.Errorf("3 units at %#x, those at %#x are warm", again.base, first.base)
		}
		Free(again.base, again.units)
	}
	TrimAll()
}

// TestSpotty carves a unit again. It keeps its memory if it was carved, or if fewer units are in use than
// before: else what lies behind its start would have no use.
func TestSpotty(t *testing.T) {
	defer SetDecay(SetDecay(-1))
	TrimAll()
	pages.most = pages.used // as in a new process
	two := allocRun(t, nil, 2, 1)
	live := []run{{two.base + UnitSize, 1}}
	for i, row := range []struct {
		free  func(uintptr)
		grows bool // more units are in use than ever
		keeps bool
	}{
		{func(base uintptr) { Free(base, 1) }, false, true},
		{func(base uintptr) { Free(base, 1) }, true, false},
		{FreeCarved, true, true},
	} {
		row.free(two.base)
		if row.grows {
			live = append(live, allocRun(t, live, 3, 1))
		}
		base, fresh, _, err := AllocCarved(UnitSize)
		if err != nil || base != two.base || fresh == row.keeps {
			t.Errorf("row %d: the unit is at %#x, fresh: %v, %v; it was at %#x", i, base, fresh, err, two.base)
		}
	}
	for _, run := range append(live, run{two.base, 1}) {
		Free(run.base, run.units)
	}
	TrimAll()
}

// TestExtendPart extends a unit of which a part is usable, and writes all of it.
func TestExtendPart(t *testing.T) {
	size := min(UnitSize+3*osmem.PageSize, 2*UnitSize)
	for range 100 { // in units that have been used before, and others
		base, _, err := Alloc(1, 1, min(2*osmem.PageSize, UnitSize))
		testcall.Must(t, err)
		units := 1
		if Extend(base, 1, 1, size) {
			units = 2
			b := unsafe.Slice((*byte)(osmem.Pointer(base)), size)
			for i := uintptr(0); i < size; i += osmem.PageSize {
				b[i] = 1
			}
		}
		Free(base, units)
		TrimAll()
	}
}

// TestInUse takes units and a mapping, and finds them in the counts and in the map.
func TestInUse(t *testing.T) {
	const tag = 0x7E57 << KindBits
	tagged := func() (n int) {
		EachRecord(func(s *Span) {
			if s.LoadTag() == tag {
				n++
			}
		})
		return n
	}
	units, mapped := InUse()
	base, _, err := Alloc(3, 1, 3*UnitSize)
	testcall.Must(t, err)
	own, space, err := AllocMapping(OwnMapping, 1)
	testcall.Must(t, err)
	for _, addr := range []uintptr{base, base + 2*UnitSize, own} {
		Find(addr).StoreTag(tag)
	}
	if u, m := InUse(); u != units+3 || m != mapped+1 || tagged() != 3 {
		t.Errorf("%d units and %d mappings more, %d records with the tag", u-units, m-mapped, tagged())
	}
	for _, addr := range []uintptr{base, base + 2*UnitSize, own} {
		Find(addr).StoreTag(0)
	}
	Free(base, 3)
	FreeMapping(own, space)
	if u, m := InUse(); u != units || m != mapped || tagged() != 0 {
		t.Errorf("%d units and %d mappings more, %d records with the tag, and all is free", u-units, m-mapped, tagged())
	}
}
