package osmem

import (
	"errors"
	"slices"
	"testing"
	"unsafe"
)

// mem is size bytes at addr.
func mem(addr, size uintptr) []byte { return unsafe.Slice((*byte)(Pointer(addr)), size) }

// TestReserve reserves, commits, uses and releases memory of several sizes and
// alignments.
func TestReserve(t *testing.T) {
	for _, size := range []uintptr{PageSize, 3 * PageSize, 64 << 10, 1 << 20, 5 << 20} {
		for _, align := range []uintptr{1, PageSize, 64 << 10, 4 << 20, 64 << 20} {
			addr, err := Reserve(size, align)
			if err != nil {
				t.Fatalf("%d bytes aligned to %d: %v", size, align, err)
			}
			if addr == 0 || addr%align != 0 || addr%PageSize != 0 {
				t.Errorf("%d bytes aligned to %d lie at %#x", size, align, addr)
			}
			// Only what is used is committed, so at the end too.
			last := addr + size - PageSize
			for _, page := range []uintptr{addr, last} {
				if err := Commit(page, PageSize); err != nil {
					t.Fatal(err)
				}
				if err := Commit(page, PageSize); err != nil {
					t.Errorf("second Commit: %v", err)
				}
			}
			SmallPages(addr, size)
			for _, page := range []uintptr{addr, last} {
				for i, b := range mem(page, PageSize) {
					if b != 0 && addr != last {
						t.Fatalf("byte %d of fresh memory is %d", i, b)
					}
				}
				mem(page, PageSize)[PageSize-1] = 1
			}
			Release(addr, size)
		}
	}
}

// TestDecommit drops the contents of some pages and not of their neighbours.
func TestDecommit(t *testing.T) {
	const pages = 5
	size := pages * PageSize
	addr, err := Reserve(size, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer Release(addr, size)
	if err := Commit(addr, size); err != nil {
		t.Fatal(err)
	}
	all := mem(addr, size)
	for i := range all {
		all[i] = 0xFF
	}
	middle := addr + PageSize
	Decommit(middle, 3*PageSize)
	if err := Commit(middle, 3*PageSize); err != nil {
		t.Fatal(err)
	}
	for i, b := range all {
		dropped := uintptr(i) >= PageSize && uintptr(i) < 4*PageSize
		if (b == 0) != dropped {
			t.Fatalf("byte %d is %#x, dropped: %v", i, b, dropped)
		}
	}
	for i := range all {
		all[i] = 1 // still usable
	}
}

// TestMap takes memory for metadata.
func TestMap(t *testing.T) {
	addr, err := Map(2 * PageSize)
	if err != nil {
		t.Fatal(err)
	}
	for i, b := range mem(addr, 2*PageSize) {
		if b != 0 {
			t.Fatalf("byte %d is %d", i, b)
		}
	}
	mem(addr, 2*PageSize)[2*PageSize-1] = 1
}

// TestTooLarge asks for more than the address space.
func TestTooLarge(t *testing.T) {
	const most = ^uintptr(0)>>1 + 1
	for _, row := range [][2]uintptr{{most, most}, {-PageSize, PageSize}} {
		if addr, err := Reserve(row[0], row[1]); err == nil {
			t.Errorf("Reserve(%#x, %#x) = %#x", row[0], row[1], addr)
		}
	}
}

// TestFault has each call refused.
func TestFault(t *testing.T) {
	addr, err := Reserve(PageSize, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer Release(addr, PageSize)
	refused := errors.New("refused")
	var asked []Op
	f := func(op Op, size uintptr) error {
		if size != PageSize {
			t.Errorf("%s of %d bytes", op, size)
		}
		asked = append(asked, op)
		return refused
	}
	Fault.Store(&f)
	defer Fault.Store(nil)
	_, reserve := Reserve(PageSize, 1)
	_, mapping := Map(PageSize)
	for i, err := range []error{reserve, Commit(addr, PageSize), mapping, Remap(addr, addr, PageSize)} {
		if err != refused {
			t.Errorf("call %d: %v", i, err)
		}
	}
	if want := 4; len(asked) != want {
		t.Errorf("asked about %v", asked)
	}
}

// TestFaultOfGivingBack has the system refuse to take memory back: pages stay, and read
// as zero. The page between them was taken before, and on Windows it may not be touched.
func TestFaultOfGivingBack(t *testing.T) {
	if GoBacked {
		return // the system is not called
	}
	size := 3 * PageSize
	addr, err := Reserve(size, 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := Commit(addr, size); err != nil {
		t.Fatal(err)
	}
	mem := unsafe.Slice((*byte)(Pointer(addr)), size)
	mem[0], mem[size-1] = 1, 2
	Decommit(addr+PageSize, PageSize)
	var asked []Op
	f := func(op Op, n uintptr) error {
		asked = append(asked, op)
		return errors.New("refused")
	}
	Fault.Store(&f)
	Decommit(addr, size)
	Fault.Store(nil)
	if mem[0] != 0 || mem[size-1] != 0 {
		t.Errorf("bytes are %d and %d after Decommit", mem[0], mem[size-1])
	}
	Fault.Store(&f)
	Release(addr, size)
	Fault.Store(nil)
	if !slices.Equal(asked, []Op{OpDecommit, OpRelease}) {
		t.Errorf("asked about %v", asked)
	}
	other, err := Reserve(size, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer Release(other, size)
	if other < addr+size && addr < other+size {
		t.Error("addresses that are lost were reserved again")
	}
}

func TestRoundPage(t *testing.T) {
	for _, row := range [][2]uintptr{{0, 0}, {1, PageSize}, {PageSize, PageSize}, {PageSize + 1, 2 * PageSize}} {
		if got := RoundPage(row[0]); got != row[1] {
			t.Errorf("RoundPage(%d) = %d", row[0], got)
		}
	}
}

// TestMapSparse writes to one page of memory that is mostly read.
func TestMapSparse(t *testing.T) {
	size := 5 * PageSize
	addr, err := MapSparse(size)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := Writable(addr+2*PageSize, PageSize); err != nil {
			t.Fatal(err)
		}
		mem(addr, size)[2*PageSize]++
		mem(addr, size)[3*PageSize-1]++
	}
	for i, b := range mem(addr, size) {
		if written := uintptr(i) == 2*PageSize || uintptr(i) == 3*PageSize-1; written != (b == 2) || !written && b != 0 {
			t.Fatalf("byte %d is %d", i, b)
		}
	}
}
