package shadow

import (
	"testing"
	"unsafe"

	"github.com/cheapgo/cheap/internal/test/testcall"
)

// TestSet shows each mistake of an allocator to a Set.
func TestSet(t *testing.T) {
	mem := make([]uint64, 64)
	at := func(i int) unsafe.Pointer { return unsafe.Add(unsafe.Pointer(&mem[0]), i) }
	const align = 8

	var s Set
	testcall.Must(t, s.Add(at(64), 60, 64, align))
	testcall.Must(t, s.Add(at(192), 64, 64, align))
	for name, err := range map[string]error{
		"no block":          s.Add(nil, 8, 8, align),
		"misaligned":        s.Add(at(17), 8, 8, align),
		"too small":         s.Add(at(0), 9, 8, align),
		"same":              s.Add(at(64), 64, 64, align),
		"last byte inside":  s.Add(at(8), 57, 57, align),
		"first byte inside": s.Add(at(120), 0, 0, align),
		"around":            s.Add(at(0), 400, 400, align),
		"into the second":   s.Add(at(128), 72, 72, align),
		"never live":        s.Remove(at(72)),
		"moved, never live": s.Move(uintptr(at(72)), at(0), 8, 8, align),
	} {
		if err == nil {
			t.Errorf("%s: not noticed", name)
		}
	}
	if err := s.Add(at(128), 64, 64, align); err != nil {
		t.Errorf("between two blocks: %v", err)
	}
	if s.Len() != 3 || s.Bytes() != 192 {
		t.Errorf("%d blocks of %d bytes, want 3 of 192", s.Len(), s.Bytes())
	}
	for _, f := range []struct {
		addr uintptr
		want uintptr
	}{{63, 0}, {64, 64}, {127, 64}, {128, 128}, {255, 192}, {256, 0}} {
		b, ok := s.Find(uintptr(at(0)) + f.addr)
		if ok != (f.want != 0) || ok && b.Addr != uintptr(at(int(f.want))) {
			t.Errorf("Find(%d) = %v, %v", f.addr, b, ok)
		}
	}

	pointer := func(addr uintptr) unsafe.Pointer { return at(int(addr - uintptr(at(0)))) }
	testcall.Want(t, s.CheckAll(pointer))
	*(*byte)(at(127))++ // behind the size, within what is usable
	if s.CheckAll(pointer) == nil || s.Remove(at(64)) == nil {
		t.Error("a changed byte is not noticed")
	}

	copy(unsafe.Slice((*byte)(at(320)), 32), unsafe.Slice((*byte)(at(192)), 32))
	if err := s.Move(uintptr(at(192)), at(320), 32, 32, align); err != nil {
		t.Errorf("a move that keeps the contents: %v", err)
	}
	if s.Move(uintptr(at(128)), at(384), 64, 64, align) == nil {
		t.Error("a move that loses the contents is not noticed")
	}
}

// TestTake hands blocks from one Set to another.
func TestTake(t *testing.T) {
	mem := make([]uint64, 64)
	at := func(i int) unsafe.Pointer { return unsafe.Add(unsafe.Pointer(&mem[0]), i) }
	var from, to Set
	from.Seed(10)
	to.Seed(20)
	for i, s := range []*Set{&from, &to} {
		testcall.Must(t, s.Add(at(i*64), 64, 64, 8))
	}
	b := from.Take(0)
	if from.Len() != 0 || from.Bytes() != 0 || b.Addr != uintptr(at(0)) {
		t.Errorf("%v was taken, %d blocks of %d bytes are left", b, from.Len(), from.Bytes())
	}
	if err := to.Give(b); err != nil || to.Len() != 2 || to.Bytes() != 128 {
		t.Errorf("%v; %d blocks of %d bytes", err, to.Len(), to.Bytes())
	}
	if to.Give(b) == nil {
		t.Error("a block that was given twice is not noticed")
	}
	if err := to.Remove(at(0)); err != nil {
		t.Errorf("a block that was handed over: %v", err)
	}
	mem[8], mem[0] = mem[0], mem[8]
	if to.Remove(at(64)) == nil {
		t.Error("two Sets have the same patterns")
	}
}

// TestPattern looks for a change of any byte, at both ends of a large block too.
func TestPattern(t *testing.T) {
	for _, n := range []int{0, 1, 7, 100, Whole, Whole + 1, 3*stride + 5} {
		mem := make([]byte, n+1)
		p := unsafe.Pointer(&mem[0])
		if err := Zero(p, n); err != nil {
			t.Errorf("%d bytes: %v", n, err)
		}
		Fill(p, n, 1)
		if err := Check(p, n, 1); err != nil {
			t.Errorf("%d bytes: %v", n, err)
		}
		if mem[n] != 0 {
			t.Errorf("%d bytes: written behind the end", n)
		}
		if n == 0 {
			continue
		}
		if Zero(p, n) == nil {
			t.Errorf("%d bytes: the pattern reads as zero", n)
		}
		for _, i := range []int{0, n / 2 / stride * stride, n - 1} {
			mem[i] ^= 1 << 3
			if Check(p, n, 1) == nil {
				t.Errorf("%d bytes: byte %d has changed", n, i)
			}
			mem[i] ^= 1 << 3
		}
		for _, seed := range []uint64{0, 2, 3, 100, period} {
			if n > 16 && Check(p, n, seed) == nil {
				t.Errorf("%d bytes: the seeds 1 and %d have the same pattern", n, seed)
			}
		}
	}
}
