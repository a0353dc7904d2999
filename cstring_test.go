package cheap

import (
	"math"
	"strings"
	"testing"
	"unsafe"
)

func TestCString(t *testing.T) {
	a := newFake(t)
	for _, s := range []string{"", "x", "hello, world", strings.Repeat("long ", 5000), "ends\x00early"} {
		p := CString(a, s)
		if got := string(unsafe.Slice((*byte)(p), len(s)+1)); got != s+"\x00" {
			t.Errorf("CString(%q) = %q", s, got)
		}
		want, _, _ := strings.Cut(s, "\x00")
		if got := GoString(p); got != want {
			t.Errorf("GoString = %q, want %q", got, want)
		}
		a.Free(p)
	}
	a.fail = true
	if p := CString(a, "x"); p != nil {
		t.Errorf("CString without memory = %p", p)
	}
}

func TestCBytes(t *testing.T) {
	a := newFake(t)
	for _, b := range [][]byte{nil, {}, {1, 0, 2}, make([]byte, 5000)} {
		p := CBytes(a, b)
		if p == nil {
			t.Fatalf("CBytes(%v) = nil", b)
		}
		if got := unsafe.Slice((*byte)(p), len(b)); string(got) != string(b) {
			t.Errorf("CBytes(%v) = %v", b, got)
		}
		a.Free(p)
	}
	a.fail = true
	if p := CBytes(a, []byte("x")); p != nil {
		t.Errorf("CBytes without memory = %p", p)
	}
}

func TestCStrings(t *testing.T) {
	a := newFake(t)
	for _, want := range [][]string{nil, {""}, {"a", "", "ccc"}, strings.Split(strings.Repeat("word ", 1000), " ")} {
		p := CStrings(a, want)
		array := unsafe.Slice((*unsafe.Pointer)(p), len(want)+1)
		for i, s := range want {
			if got := GoString(array[i]); got != s {
				t.Fatalf("string %d is %q, want %q", i, got, s)
			}
		}
		if array[len(want)] != nil {
			t.Fatalf("no NULL after %d strings", len(want))
		}
		a.Free(p)
	}
	if a.mallocs != 4 || a.frees != 4 {
		t.Errorf("%d blocks for 4 arrays", a.mallocs)
	}
	a.fail = true
	if p := CStrings(a, []string{"x"}); p != nil {
		t.Errorf("CStrings without memory = %p", p)
	}
}

func TestCStringsTooLarge(t *testing.T) {
	// Strings that are never read: their sum is too large.
	var b byte
	header := struct {
		data *byte
		len  int
	}{&b, math.MaxInt / 2}
	huge := *(*string)(unsafe.Pointer(&header))
	if p := CStrings(newFake(t), []string{huge, huge, huge, huge}); p != nil {
		t.Errorf("CStrings of more bytes than an int counts = %p", p)
	}
}

func TestGoString(t *testing.T) {
	if s := GoString(nil); s != "" {
		t.Errorf("GoString(nil) = %q", s)
	}
	// Every start and length around a border of pages.
	mem := make([]byte, 3*4096)
	base := unsafe.Pointer(unsafe.SliceData(mem))
	border := int(-uintptr(base)&4095) + 4096
	for start := border - 20; start < border+2; start++ {
		for n := range 40 {
			for i := range mem {
				mem[i] = 'x'
			}
			mem[start+n] = 0
			if s := GoString(unsafe.Add(base, start)); s != strings.Repeat("x", n) {
				t.Fatalf("start %d, length %d: %q", start-border, n, s)
			}
		}
	}
}
