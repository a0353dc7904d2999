package heap

import (
	"io"
	"os"
	"strings"
	"testing"
	"unsafe"

	"github.com/cheapgo/cheap/internal/mem/osmem"
	"github.com/cheapgo/cheap/internal/mem/span"
	"github.com/cheapgo/cheap/internal/test/testcall"
	"github.com/cheapgo/cheap/internal/test/testchild"
)

// TestMapsReads counts how often a report of misuse reads the list of mappings: once where only
// the system knows the address, and never where the heap does. It has a process for itself, in
// which no other test has had memory at an address that is to be unknown.
func TestMapsReads(t *testing.T) {
	if output, passed := testchild.Test(t, countMapsReads); !passed {
		t.Error(output)
	}
}

func countMapsReads(t *testing.T) {
	opened := 0
	was := openMaps
	openMaps = func() (io.ReadCloser, error) { opened++; return was() }
	defer func() { openMaps = was }()
	h, other := NewHeap(t, Options{}), NewHeap(t, Options{})
	checked := newCheckedHeap(t, Options{Check: CheckBlocks})
	freed, live, foreign, large := h.Malloc(64), h.Malloc(64), other.Malloc(64), h.Malloc(100_000)
	h.Free(freed)
	defer func() {
		h.Free(live)
		h.Free(large)
		other.Free(foreign)
	}()
	unmapped, err := osmem.Reserve(span.RegionSize, span.RegionSize)
	testcall.Must(t, err)
	mapping := h.Malloc(span.OwnMapping) // at other addresses
	h.Free(mapping)
	osmem.Release(unmapped, span.RegionSize)
	// The last unit of a region is handed out last.
	unused := osmem.Pointer(uintptr(live)&^(span.RegionSize-1) + span.RegionSize - 64)
	for _, row := range []struct {
		name  string
		p     unsafe.Pointer
		reads int
		says  string
	}{
		{"free", freed, 0, "is free already"},
		{"inside", unsafe.Add(live, 8), 0, "is inside the block"},
		{"inside of a large block", unsafe.Add(large, 70_000), 0, "is inside the block"},
		{"of another heap", foreign, 0, "belongs to another heap"},
		{"given back", mapping, 0, "that a heap has given back"},
		{"never used", unused, 0, "was never handed out; it is not from a heap"},
		{"a small number", osmem.Pointer(24), 0, "a small number"},
		{"Go memory", unsafe.Pointer(new([64]byte)), 1, "not from a heap"},
		{"code", funcPointer(), 1, "in the code or data of"},
		{"unmapped", osmem.Pointer(unmapped), 1, "no address of this process"},
		{"beyond all mappings", osmem.Pointer(^uintptr(0) &^ 15), 1, "not from a heap"},
	} {
		if osmem.GoBacked && row.name == "unmapped" {
			continue // Go keeps the memory
		}
		if words := foreignWords(uintptr(row.p)); row.reads != 0 && words != "it is not from a heap" {
			row.reads, row.says = 0, words // a heap of another test had these addresses
		}
		for _, free := range []func(unsafe.Pointer){h.Free, checked.Free} {
			opened = 0
			e, ok := testcall.Catch(func() { free(row.p) }).(*MisuseError)
			if !ok || opened != row.reads {
				t.Errorf("%s: %d reads, want %d: %v", row.name, opened, row.reads, e)
			}
			// Not each kernel has names, and a checked heap knows other blocks as another heap's.
			if says := row.says; !strings.Contains(e.Error(), says) && !strings.Contains(e.Error(), "another heap") {
				t.Errorf("%s: %v, want %q", row.name, e, says)
			}
		}
	}
}

// funcPointer returns an address in the code of the program.
func funcPointer() unsafe.Pointer {
	f := os.Getpagesize
	return **(**unsafe.Pointer)(unsafe.Pointer(&f))
}
