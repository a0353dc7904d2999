package guard

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/cheapgo/cheap/internal/mem/osmem"
	"github.com/cheapgo/cheap/internal/mem/span"
	"github.com/cheapgo/cheap/internal/test/testcall"
	"github.com/cheapgo/cheap/internal/watch/sample"
)

// tag is that of no heap.
const tag = 0x7E58<<span.KindBits | span.KindGuarded

// TestNearest asks for each address of three slots, of which the second was never used.
func TestNearest(t *testing.T) {
	const base, slotSize = 1 << 20, 1000
	slots := []Block{{Start: base + 900, Size: 100}, {}, {Start: base + 2500, Size: 60}}
	for addr := uintptr(base - 1000); addr < base+4*slotSize; addr++ {
		want := ""
		switch {
		case addr >= base && addr < base+2000:
			want = "first"
		case addr >= base+2000 && addr < base+3500:
			want = "last"
		}
		b, ok := nearest(addr, base, slotSize, slots)
		got := ""
		switch {
		case ok && b == slots[0]:
			got = "first"
		case ok && b == slots[2]:
			got = "last"
		}
		// In the middle slot only the block before it may be meant. Behind the last slot there
		// is one slot's size of addresses.
		if got != want && !(addr >= base+3000 && got == "last") && !(addr >= base+1900 && addr < base+2000 && got == "") {
			t.Fatalf("address %d is near %q, want %q", addr-base, got, want)
		}
	}
	for _, c := range []struct{ addr, distance uintptr }{{899, 1}, {900, 0}, {999, 0}, {1000, 1}, {800, 100}, {1009, 10}} {
		if d := slots[0].Distance(base + c.addr); d != c.distance {
			t.Errorf("the distance of %d is %d, want %d", c.addr, d, c.distance)
		}
	}
}

// file is a file in memory.
type file []byte

func (f *file) WriteAt(b []byte, at int64) (int, error) {
	if n := int(at) + len(b); n > len(*f) {
		*f = append(*f, make([]byte, n-len(*f))...)
	}
	return copy((*f)[at:], b), nil
}

// TestTable shares the slots before and after the first block, and reads them as another
// process does.
func TestTable(t *testing.T) {
	if osmem.GoBacked {
		if Place(64, tag, 1, false) != 0 {
			t.Error("a block is guarded in Go memory")
		}
		return
	}
	if table, err := ReadTable(bytes.NewReader(nil)); err != nil {
		t.Error(err)
	} else if _, _, ok := table.Find(1); ok {
		t.Error("an empty table has a block")
	}
	var early, late file
	Share(&early)
	p, q := place(t, 64), place(t, 5000)
	Share(&late) // which writes what there is
	r := place(t, 48)
	stack := func() uint32 { return sample.Stack() }()
	if _, ok := Free(q, 5000, tag, stack); !ok {
		t.Fatal("a block cannot be freed")
	}
	Share(nil)
	if _, ok := Free(r, 48, tag, stack); !ok {
		t.Fatal("a block cannot be freed")
	}
	table, err := ReadTable(bytes.NewReader(late))
	testcall.Must(t, err)
	for _, w := range []struct {
		p, size uintptr
		live    bool
	}{{p, 64, true}, {q, 5000, false}, {r, 48, true}} { // the free of r was not shared any more
		for _, at := range []uintptr{0, w.size - 1} {
			b, _, ok := table.Find(w.p + at)
			alloc, free := b.AllocPCs, b.FreePCs
			if !ok || b.Start != w.p || b.Size != w.size || b.Live != w.live {
				t.Errorf("at byte %d of %d there is %+v, %v", at, w.size, b, ok)
			}
			here, _, _ := Find(w.p + at)
			if !slices.Equal(alloc, sample.PCs(here.AllocStack)) || !w.live && !slices.Equal(free, sample.PCs(here.FreeStack)) || w.live && free != nil {
				t.Errorf("of %d bytes the stacks are %v and %v", w.size, alloc, free)
			}
		}
	}
	if _, ok := Free(p, 64, tag, stack); !ok {
		t.Fatal("a block cannot be freed")
	}
	for _, wrong := range []func() (Damage, bool){
		func() (Damage, bool) { return Free(p, 64, tag, stack) },
		func() (Damage, bool) { return Free(1, 64, tag, stack) },
	} {
		if _, ok := wrong(); ok {
			t.Error("a block was freed that is none in use")
		}
	}
	if !bytes.Equal(early[:headerWords*word], late[:headerWords*word]) {
		t.Error("the header differs if the table is shared before the first block")
	}
	late[0] ^= 1
	if _, err := ReadTable(bytes.NewReader(late)); err == nil {
		t.Error("a table of another format is read")
	}
	if _, err := ReadTable(failing{}); err == nil {
		t.Error("no error of the file")
	}
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

func place(t *testing.T, size uintptr) uintptr {
	t.Helper()
	p := Place(size, tag, func() uint32 { return sample.Stack() }(), false)
	if p == 0 {
		t.Fatal(fmt.Sprint("no slot for ", size))
	}
	return p
}

// TestTableEarlier has a block placed where another one was freed. Both processes know both.
func TestTableEarlier(t *testing.T) {
	if osmem.GoBacked {
		return
	}
	free := func(p, size uintptr) {
		if _, ok := Free(p, size, tag, sample.Hold()); !ok {
			t.Fatal("a block cannot be freed")
		}
	}
	var shared file
	Share(&shared)
	defer Share(nil)
	size := osmem.PageSize // so that each block of this size has all bytes of the page
	p := place(t, 64)
	free(p, 64)
	var q uintptr
	for n := 0; ; n++ {
		if n > MostSlots {
			t.Fatal("the slot does not come again")
		}
		if q = Place(size, tag, sample.Hold(), false); q == p&^(size-1) {
			break
		}
		free(q, size)
	}
	table, err := ReadTable(bytes.NewReader(shared))
	testcall.Must(t, err)
	for _, at := range []uintptr{p - 1, p, p + 63, p + 64} {
		want := at >= p && at < p+64
		b, earlier, ok := table.Find(at)
		here, earlierHere, okHere := Find(at)
		if at >= q && at < q+size && (!ok || !okHere || b.Start != q || !b.Live || here != pool.slots[slotOf(q)]) {
			t.Errorf("at %#x there are %+v and %+v", at, b, here)
		}
		for _, e := range []Traced{earlier, Trace(earlierHere)} {
			if got := e.Start == p && e.Size == 64 && !e.Live; got != want || !want && e.Start != 0 {
				t.Errorf("at %#x there was %+v before", at, e.Block)
			}
			if want && (!slices.Equal(e.AllocPCs, sample.PCs(earlierHere.AllocStack)) || !slices.Equal(e.FreePCs, sample.PCs(earlierHere.FreeStack)) || e.AllocPCs == nil || e.FreePCs == nil) {
				t.Errorf("the stacks are %v and %v", e.AllocPCs, e.FreePCs)
			}
		}
	}
	free(q, size)
}

// TestPlaceSize asks for blocks that no slot holds.
func TestPlaceSize(t *testing.T) {
	for _, size := range []uintptr{0, Largest + 1, ^uintptr(0)} {
		text, _ := testcall.Catch(func() { Place(size, 1, 0, false) }).(string)
		if !strings.HasPrefix(text, "cheap: guard.Place: size is 0x") {
			t.Errorf("%d bytes: %q", size, text)
		}
	}
}
