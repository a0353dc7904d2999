package cheap

import (
	"errors"
	"strings"
	"testing"
	"unsafe"
)

// fakeAlloc is an Allocator over Go memory that counts, refuses when told to,
// fills what it gives out with garbage, and knows what is live. Blocks are
// aligned to 16 and no better, unless AlignedMalloc is asked.
type fakeAlloc struct {
	t       testing.TB
	blocks  map[unsafe.Pointer]fakeBlock
	mallocs int
	frees   int
	fail    bool // refuse memory
	destroy int  // calls of Destroy
}

// A fakeBlock keeps the memory of a block alive.
type fakeBlock struct {
	mem  []byte
	size int
}

func newFake(t testing.TB) *fakeAlloc {
	return &fakeAlloc{t: t, blocks: map[unsafe.Pointer]fakeBlock{}}
}

func (a *fakeAlloc) Malloc(size int) unsafe.Pointer {
	return a.malloc(size, 16, 16)
}

// malloc returns a block whose address modulo 2*align is odd.
func (a *fakeAlloc) malloc(size, align, odd int) unsafe.Pointer {
	if size < 0 {
		a.t.Fatalf("Malloc(%d)", size)
	}
	if a.fail || size > 1<<28 {
		return nil
	}
	mem := make([]byte, size+1+3*align)
	for n := copy(mem, "\xDB"); n < len(mem); n *= 2 {
		copy(mem[n:], mem[:n])
	}
	p := unsafe.Pointer(unsafe.SliceData(mem))
	skip := int(-uintptr(p) & uintptr(2*align-1))
	p = unsafe.Add(p, skip+odd)
	a.blocks[p] = fakeBlock{mem, size}
	a.mallocs++
	return p
}

func (a *fakeAlloc) Free(p unsafe.Pointer) {
	if p == nil {
		return
	}
	if _, ok := a.blocks[p]; !ok {
		a.t.Fatalf("Free(%p) of what is not live", p)
	}
	delete(a.blocks, p)
	a.frees++
}

func (a *fakeAlloc) Destroy() error {
	a.destroy++
	return nil
}

// live is the sum of the sizes of live blocks.
func (a *fakeAlloc) live() (bytes int) {
	for _, b := range a.blocks {
		bytes += b.size
	}
	return bytes
}

// fakeAligned is a fakeAlloc with AlignedMalloc.
type fakeAligned struct{ *fakeAlloc }

func (a fakeAligned) AlignedMalloc(size, align int) unsafe.Pointer {
	return a.malloc(size, align, 0)
}

// wantMisuse runs f, which must panic with a MisuseError whose text begins with
// "cheap: op: " and contains each of the words.
func wantMisuse(t *testing.T, op string, f func(), words ...string) {
	t.Helper()
	defer func() {
		t.Helper()
		v := recover()
		err, _ := v.(error)
		var m *MisuseError
		if !errors.As(err, &m) || !strings.HasPrefix(m.Error(), "cheap: "+op+": ") {
			t.Errorf("panic value %v, want a MisuseError of %s", v, op)
			return
		}
		for _, w := range words {
			if !strings.Contains(m.Error(), w) {
				t.Errorf("%q does not say %q", m.Error(), w)
			}
		}
	}()
	f()
}

// anyPointer is a pointer to wherever. The runtime itself objects to those below
// 4096.
func anyPointer(n uintptr) unsafe.Pointer {
	return *(*unsafe.Pointer)(unsafe.Pointer(&n)) // never dereferenced
}
