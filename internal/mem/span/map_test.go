package span

import (
	"errors"
	"math/bits"
	"testing"
	"unsafe"

	"github.com/cheapgo/cheap/internal/mem/osmem"
	"github.com/cheapgo/cheap/internal/test/testcall"
)

// TestFindAnything asks about numbers of all kinds.
func TestFindAnything(t *testing.T) {
	testcall.Must(t, Init())
	for shift := range bits.UintSize {
		for d := range uintptr(3) {
			addr := uintptr(1)<<shift + d - 1
			if s := Lookup(addr); s != nil && s.Tag != 0 {
				t.Errorf("%#x has the tag %#x", addr, s.Tag)
			}
			if s := Lookup(-addr); s != nil && s.Tag != 0 {
				t.Errorf("%#x has the tag %#x", -addr, s.Tag)
			}
		}
	}
	var onStack [4]int
	for _, p := range []unsafe.Pointer{unsafe.Pointer(&onStack), unsafe.Pointer(new([64]int)), unsafe.Pointer(&regions)} {
		if s := Lookup(uintptr(p)); s != nil && s.Tag != 0 {
			t.Errorf("%p has the tag %#x", p, s.Tag)
		}
	}
}

// TestFindAllAddresses looks whether the map has a word for each region that an address
// can be in, and none for numbers beyond.
func TestFindAllAddresses(t *testing.T) {
	testcall.Must(t, Init())
	most := ^uintptr(0) >> (bits.UintSize - addressBits)
	for _, addr := range []uintptr{most, most - RegionSize, most / 2, most/2 + 1, RegionSize, 0} {
		base := addr &^ (RegionSize - 1)
		testcall.Must(t, ensure(base, RegionSize))
		first, last := Find(base), Find(base+RegionSize-1)
		if first == nil || last == nil || last.Addr()-first.Addr() != (regionUnits-1)*spanSize {
			t.Errorf("records of the region at %#x: %p to %p", base, first, last)
		}
		if first.Addr()%spanSize != 0 {
			t.Errorf("a record at %#x", first.Addr())
		}
	}
	if most+1 != 0 {
		for _, addr := range []uintptr{most + 1, most - UnitSize + 1, ^uintptr(0) &^ (UnitSize - 1)} {
			if err := ensure(addr, 2*UnitSize); err == nil {
				t.Errorf("records for %#x", addr)
			}
			if addr > most && Find(addr) != nil {
				t.Errorf("Find(%#x)", addr)
			}
		}
	}
}

// TestMapping makes mappings, of which the last byte is usable, and releases
// them.
func TestMapping(t *testing.T) {
	for _, align := range []uintptr{1, UnitSize, RegionSize, 2 * RegionSize} {
		for _, size := range []uintptr{OwnMapping, RegionSize, RegionSize + osmem.PageSize} {
			base, space, err := AllocMapping(size, align)
			testcall.Must(t, err)
			if base%max(align, RegionSize) != 0 || space < size || space%RegionSize != 0 {
				t.Errorf("%#x bytes at %#x, in %#x", size, base, space)
			}
			for a := base; a < base+space; a += UnitSize {
				if s := Find(a); s == nil || s.Tag != 0 {
					t.Fatalf("the unit at %#x has no record, or belongs to a heap", a)
				}
			}
			last := (*byte)(osmem.Pointer(base + size - 1))
			if *last != 0 {
				t.Error("not zero")
			}
			*last = 1
			if grown := GrowMapping(base, size, space, space); !grown {
				t.Errorf("%#x bytes in %#x cannot grow", size, space)
			}
			if GrowMapping(base, space, space+osmem.PageSize, space) {
				t.Error("grown beyond its space")
			}
			*(*byte)(osmem.Pointer(base + space - 1)) = 1
			ShrinkMapping(base, space, osmem.PageSize)
			if !osmem.DecommitRevokes && *last != 0 {
				t.Error("the contents are there after shrinking")
			}
			FreeMapping(base, space)
		}
	}
	for _, size := range []uintptr{^uintptr(0), ^uintptr(0) - RegionSize} {
		if base, _, err := AllocMapping(size, 1); err == nil {
			t.Errorf("%#x bytes at %#x", size, base)
		}
	}
}

// TestMostMappings has as many mappings as are allowed. One more is refused, and one that
// is freed makes room.
func TestMostMappings(t *testing.T) {
	if most := mostMappings(); most < 1000 {
		t.Errorf("%d mappings are allowed", most)
	}
	before := mostMappings
	defer func() { mostMappings = before }()
	most := mappings.n + 3
	mostMappings = func() int { return most }
	refused := errors.New("refused")
	var op osmem.Op
	f := func(o osmem.Op, _ uintptr) error {
		if o == op {
			return refused
		}
		return nil
	}
	osmem.Fault.Store(&f)
	defer osmem.Fault.Store(nil)
	type mapping struct{ base, space uintptr }
	var all []mapping
	alloc := func() error {
		base, space, err := AllocMapping(OwnMapping, 1)
		if err == nil {
			all = append(all, mapping{base, space})
		}
		return err
	}
	for round := range 3 {
		for len(all) < 3 {
			for _, op = range []osmem.Op{osmem.OpReserve, osmem.OpCommit} { // what fails does not count
				if err := alloc(); err != refused {
					t.Fatal(err)
				}
			}
			op = ""
			testcall.Must(t, alloc())
		}
		if err := alloc(); err != errMappings {
			t.Fatalf("one more than allowed: %v", err)
		}
		for range round + 1 {
			FreeMapping(all[0].base, all[0].space)
			all = all[1:]
		}
	}
	if n := mappings.n + 3 - len(all); n != most {
		t.Errorf("%d mappings are counted, want %d", mappings.n, most-3)
	}
}

// TestMeta allocates records, which are zero, do not overlap, and are used
// again.
func TestMeta(t *testing.T) {
	seen := map[uintptr]bool{}
	for _, size := range []uintptr{1, 128, 129, 1000, 5000, 1 << 16, 1 << 18} {
		var got []uintptr
		for range 10 {
			addr, err := AllocMeta(size)
			testcall.Must(t, err)
			if addr%128 != 0 || seen[addr] {
				t.Errorf("%d bytes at %#x; again: %v", size, addr, seen[addr])
			}
			record := unsafe.Slice((*byte)(osmem.Pointer(addr)), size)
			for i, b := range record {
				if b != 0 {
					t.Fatalf("byte %d of a new record is %#x", i, b)
				}
				record[i] = 0xFF
			}
			seen[addr] = true
			got = append(got, addr)
		}
		for _, addr := range got {
			for i, b := range unsafe.Slice((*byte)(osmem.Pointer(addr)), size) {
				if b != 0xFF {
					t.Fatalf("byte %d was overwritten", i)
				}
			}
			FreeMeta(addr, size)
			delete(seen, addr)
		}
		again, err := AllocMeta(size)
		testcall.Must(t, err)
		if again != got[len(got)-1] {
			t.Errorf("%d bytes: the record that came back is not used again", size)
		}
		for i, b := range unsafe.Slice((*byte)(osmem.Pointer(again)), size) {
			if b != 0 {
				t.Fatalf("byte %d of a record that is used again is %#x", i, b)
			}
		}
		FreeMeta(again, size)
	}
}

// TestChunk enters chunks within each other.
func TestChunk(t *testing.T) {
	r := allocRun(t, nil, 4, 1)
	defer Free(r.base, r.units)
	outer, err := AllocMeta(EntrySize)
	testcall.Must(t, err)
	inner, err := AllocMeta(EntrySize)
	testcall.Must(t, err)
	at := func(want ...uintptr) {
		t.Helper()
		for i, want := range want {
			for _, off := range []uintptr{0, 1, UnitSize - 1} {
				if got := FindChunk(r.base + uintptr(i)*UnitSize + off); got != want {
					t.Errorf("unit %d, byte %d: chunk %#x, want %#x", i, off, got, want)
				}
			}
		}
	}
	at(0, 0, 0, 0)
	testcall.Must(t, EnterChunk(r.base, 3*UnitSize, outer))
	at(outer, outer, outer, 0)
	testcall.Must(t, EnterChunk(r.base+UnitSize, UnitSize, inner))
	at(outer, inner, outer, 0)
	if OuterChunk(inner) != outer || OuterChunk(outer) != 0 {
		t.Errorf("outer of inner %#x, of outer %#x", OuterChunk(inner), OuterChunk(outer))
	}
	LeaveChunk(r.base+UnitSize, UnitSize, inner)
	at(outer, outer, outer, 0)
	LeaveChunk(r.base, 3*UnitSize, outer)
	at(0, 0, 0, 0)
	if err := EnterChunk(^uintptr(0)&^(UnitSize-1), UnitSize, outer); err == nil && bits.UintSize == 64 {
		t.Error("a chunk beyond all addresses")
	}
	if FindChunk(^uintptr(0)) != 0 && bits.UintSize == 64 {
		t.Error("a chunk at the last address")
	}
	FreeMeta(outer, EntrySize)
	FreeMeta(inner, EntrySize)
}
