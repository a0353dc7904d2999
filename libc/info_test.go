//go:build cgo

package libc

import (
	"slices"
	"testing"
	"unsafe"

	"github.com/cheapgo/cheap/internal/mem/account"
)

// TestArenasIn parses what glibc 2.36 prints, and what it does not.
func TestArenasIn(t *testing.T) {
	t.Parallel()
	const text = `<malloc version="1">
<heap nr="0">
<sizes>
  <size from="33" to="48" total="96" count="2"/>
  <unsorted from="65" to="65" total="65" count="1"/>
</sizes>
<total type="fast" count="2" size="96"/>
<total type="rest" count="1" size="65"/>
<system type="current" size="135168"/>
<system type="max" size="139264"/>
</heap>
<heap nr="1">
<sizes>
</sizes>
<total type="fast" count="0" size="0"/>
<total type="rest" count="7" size="7000"/>
<system type="current" size="200000"/>
</heap>
<total type="fast" count="2" size="96"/>
<total type="mmap" count="1" size="999"/>
<system type="current" size="335168"/>
</malloc>
`
	want := []account.Arena{{System: 135168, Free: 161, Blocks: 3}, {System: 200000, Free: 7000, Blocks: 7}}
	if got := arenasIn(text); !slices.Equal(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	for _, text := range []string{"", "<malloc/>", "<heap nr", "<heap nr=\"0\"><system type=\"current\" size=\"x\"/>"} {
		for _, a := range arenasIn(text) {
			if a != (account.Arena{}) {
				t.Errorf("%q: %+v", text, a)
			}
		}
	}
}

// TestReadArenas frees every second block of many, so that malloc has them free.
func TestReadArenas(t *testing.T) {
	r, ok := account.Process.Malloc().(account.ArenaReader)
	if !ok {
		t.Fatal("the malloc of the program reads no arenas")
	}
	before := r.ReadArenas()
	if before == nil {
		return // mimalloc, or one that is not known
	}
	glibc := before[0].Blocks > 0
	var blocks [20_000]unsafe.Pointer
	for i := range blocks {
		blocks[i] = Allocator{}.Malloc(2000)
	}
	for i := range blocks {
		if i%2 == 0 {
			Allocator{}.Free(blocks[i])
		}
	}
	var free, count int64
	for _, a := range r.ReadArenas() {
		if a.Free > a.System || a.Free < 0 {
			t.Errorf("%+v", a)
		}
		free, count = free+a.Free, count+a.Blocks
	}
	if free < 10_000*2000*9/10 || glibc && count < 5000 { // a thread may have some in its cache
		t.Errorf("%d bytes in %d blocks are free, after 10,000 of 2,000 bytes were freed", free, count)
	}
	for i := range blocks {
		if i%2 == 1 {
			Allocator{}.Free(blocks[i])
		}
	}
}
