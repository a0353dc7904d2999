package span

import (
	"strings"
	"testing"

	"github.com/cheapgo/cheap/internal/mem/osmem"
	"github.com/cheapgo/cheap/internal/test/testcall"
)

// TestPreconditions calls each function that wants a multiple of something, or a number in a range,
// with what is wrong, and wants a panic that names it.
func TestPreconditions(t *testing.T) {
	unit, _, err := Alloc(2, 1, 2*UnitSize)
	testcall.Must(t, err)
	defer Free(unit, 2)
	size := UnitSize + osmem.PageSize
	own, space, err := AllocMapping(size, 1)
	testcall.Must(t, err)
	defer FreeMapping(own, space)
	meta, err := AllocMeta(EntrySize)
	testcall.Must(t, err)
	defer FreeMeta(meta, EntrySize)
	long, err := AllocMeta(osmem.PageSize)
	testcall.Must(t, err)
	defer FreeMeta(long, osmem.PageSize)
	r := find(unit)

	type row struct {
		op, arg string
		call    func()
	}
	rows := []row{
		{"Alloc", "units", func() { use(Alloc(0, 1, 0)) }},
		{"Alloc", "units", func() { use(Alloc(-1, 1, 0)) }},
		{"Alloc", "units", func() { use(Alloc(regionUnits+1, 1, UnitSize)) }},
		{"Alloc", "align", func() { use(Alloc(1, 0, UnitSize)) }},
		{"Alloc", "align", func() { use(Alloc(1, 3, UnitSize)) }},
		{"Alloc", "align", func() { use(Alloc(1, -1, UnitSize)) }},
		{"Alloc", "align", func() { use(Alloc(1, 2*regionUnits, UnitSize)) }},
		{"Alloc", "size", func() { use(Alloc(2, 1, 2*UnitSize+1)) }},
		{"AllocCarved", "size", func() { _, _, _, _ = AllocCarved(UnitSize + 1) }},
		{"Extend", "units", func() { Extend(unit, 0, 1, UnitSize) }},
		{"Extend", "units", func() { Extend(unit, regionUnits+1, 1, UnitSize) }},
		{"Extend", "more", func() { Extend(unit, 2, 0, 2*UnitSize) }},
		{"Extend", "more", func() { Extend(unit, 2, -1, 2*UnitSize) }},
		{"Extend", "size", func() { Extend(unit, 2, 1, 2*UnitSize) }},
		{"Extend", "size", func() { Extend(unit, 2, 1, 3*UnitSize+1) }},
		{"Shrink", "units", func() { Shrink(unit, 0, 1) }},
		{"Shrink", "size", func() { Shrink(unit, 2, 0) }},
		{"Shrink", "size", func() { Shrink(unit, 2, 2*UnitSize+1) }},
		{"Free", "units", func() { Free(unit, 0) }},
		{"Free", "units", func() { Free(r.base+UnitSize, regionUnits) }},
		{"Abandon", "size", func() { Abandon(unit, UnitSize+1) }},
		{"AllocMapping", "size", func() { use(AllocMapping(0, 1)) }},
		{"AllocMapping", "align", func() { use(AllocMapping(size, 0)) }},
		{"AllocMapping", "align", func() { use(AllocMapping(size, 3*RegionSize)) }},
		{"AllocMapping", "align", func() { _, _, _, err := AllocWarmMapping(size, 5); use(0, 0, err) }},
		{"GrowMapping", "size", func() { GrowMapping(own, space+1, space, space) }},
		{"ShrinkMapping", "newSize", func() { ShrinkMapping(own, size, size+1) }},
		{"MoveMapping", "to", func() { MoveMapping(own, own, size) }},
		{"FreeEmpty", "units", func() { FreeEmpty(unit, 0) }},
		{"FreeWarmMapping", "size", func() { FreeWarmMapping(own, space+1, space) }},
		{"FreeWarmMapping", "size", func() { FreeWarmMapping(own, 0, space) }},
		{"EnterChunk", "size", func() { use(0, 0, EnterChunk(unit, 0, meta)) }},
		{"LeaveChunk", "size", func() { LeaveChunk(unit, 0, meta) }},
		{"EnterChunk", "meta", func() { use(0, 0, EnterChunk(unit, UnitSize, 0)) }},
		{"FreeMeta", "addr", func() { FreeMeta(0, EntrySize) }},
		{"FreeMeta", "addr", func() { FreeMeta(long+metaAlign, osmem.PageSize) }},
		{"stowAt", "i", func() { r.stowAt(1, own) }},
	}
	for _, off := range []uintptr{1, 16, 64, UnitSize - 1} {
		rows = append(rows,
			row{"Extend", "base", func() { Extend(unit+off, 1, 1, 2*UnitSize) }},
			row{"Commit", "base", func() { use(0, 0, Commit(unit+off, 1)) }},
			row{"Shrink", "base", func() { Shrink(unit+off, 1, 1) }},
			row{"Free", "base", func() { Free(unit+off, 1) }},
			row{"FreeCarved", "base", func() { FreeCarved(unit + off) }},
			row{"Abandon", "base", func() { Abandon(unit+off, 1) }},
			row{"GrowMapping", "base", func() { GrowMapping(own+off, size, space, space) }},
			row{"GrowMapping", "space", func() { GrowMapping(own, size, space, space+off) }},
			row{"ShrinkMapping", "base", func() { ShrinkMapping(own+off, size, 1) }},
			row{"MoveMapping", "from", func() { MoveMapping(own+off, own+RegionSize, size) }},
			row{"MoveMapping", "to", func() { MoveMapping(own, own+RegionSize+off, size) }},
			row{"MoveUnits", "from", func() { MoveUnits(unit+off, own, UnitSize) }},
			row{"MoveUnits", "to", func() { MoveUnits(unit, own+off, UnitSize) }},
			row{"FreeEmpty", "base", func() { FreeEmpty(unit+off, 1) }},
			row{"FreeWarmMapping", "base", func() { FreeWarmMapping(own+off, size, space) }},
			row{"FreeWarmMapping", "space", func() { FreeWarmMapping(own, size, space+off) }},
			row{"FreeMapping", "base", func() { FreeMapping(own+off, space) }},
			row{"FreeMapping", "space", func() { FreeMapping(own, space+off) }},
			row{"EnterChunk", "base", func() { use(0, 0, EnterChunk(unit+off, UnitSize, meta)) }},
			row{"EnterChunk", "size", func() { use(0, 0, EnterChunk(unit, UnitSize+off, meta)) }},
			row{"EnterChunk", "meta", func() { use(0, 0, EnterChunk(unit, UnitSize, meta+off)) }},
			row{"LeaveChunk", "base", func() { LeaveChunk(unit+off, UnitSize, meta) }},
			row{"LeaveChunk", "size", func() { LeaveChunk(unit, UnitSize+off, meta) }},
			row{"LeaveChunk", "meta", func() { LeaveChunk(unit, UnitSize, meta+off) }},
			row{"FreeMeta", "addr", func() { FreeMeta(meta+off, EntrySize) }},
			row{"stow", "base", func() { stow(own+off, size, 0) }},
			row{"stowAt", "from", func() { r.stowAt(0, own+off) }},
		)
	}
	used, mapped := InUse()
	for _, row := range rows {
		wantPanic(t, "span."+row.op, row.arg, row.call)
	}
	if u, m := InUse(); u != used || m != mapped {
		t.Errorf("after that %d units and %d mappings are in use; %d and %d were before", u, m, used, mapped)
	}
}

func use(_, _ any, _ error) {}

// TestHollowEnds calls Hollow for what ends with a large block, or with a unit that has smaller
// blocks, and for a byte more. What begins behind the start of the block, as with a CheckLevel, has
// less room.
func TestHollowEnds(t *testing.T) {
	if osmem.DecommitRevokes {
		return // Hollow does nothing
	}
	const tag = 1 << 20 << KindBits
	base, _, err := Alloc(4, 1, 4*UnitSize)
	testcall.Must(t, err)
	defer Free(base, 4)
	size := 4*UnitSize - osmem.PageSize // with pages of 64 KiB three units
	for i := range uintptr(4) {
		s := Find(base + i*UnitSize)
		s.Base, s.Size = base, size
		kind := uintptr(KindBody)
		if i == 0 {
			kind = KindLarge
		}
		s.StoreTag(tag | kind)
		defer s.StoreTag(0)
	}
	for _, at := range []uintptr{0, 128, UnitSize, UnitSize + 128} {
		wantPanic(t, "span.Hollow", "size", func() { Hollow(base+at, size-at+1) })
		if !Hollow(base+at, size-at) {
			t.Errorf("Hollow did nothing at %d", at)
		}
	}
	Find(base).StoreTag(tag | 1)
	wantPanic(t, "span.Hollow", "size", func() { Hollow(base, UnitSize+1) })
	if !Hollow(base, UnitSize) {
		t.Error("Hollow did nothing to a unit")
	}
}

// wantPanic calls f and wants the panic of op that arg is wrong.
func wantPanic(t *testing.T, op, arg string, f func()) {
	t.Helper()
	defer func() {
		t.Helper()
		if text, _ := recover().(string); !strings.HasPrefix(text, "cheap: "+op+": "+arg+" is 0x") {
			t.Errorf("%s with a wrong %s: %q", op, arg, text)
		}
	}()
	f()
}
