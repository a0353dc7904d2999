package own

import (
	"testing"
	"unsafe"

	"github.com/cheapgo/cheap/internal/test/testcall"
)

// TestStaleOwners closes owners in an open batch, and tries everything with each
// of them while others live there.
func TestStaleOwners(t *testing.T) {
	resource := &aByte // not on a stack, which moves
	released := 0
	p := NewPool(Options{Release: func(_ any, r []uintptr) error { released += len(r); return nil }})
	var stale []object
	const n = 1000
	for i := range n {
		var o object
		testcall.Must(t, o.Own(p, unsafe.Pointer(resource), 100))
		for j := range stale[max(0, len(stale)-40):] {
			s := &stale[max(0, len(stale)-40)+j]
			s.Close()
			s.Resize(1 << 20)
			if !s.Closed() || s.Pointer() != nil || s.owner.number() != 0 {
				t.Fatalf("a stale owner is open")
			}
			if _, err := s.Disown(); err != ErrClosed {
				t.Fatalf("Disown of a stale owner: %v", err)
			}
			if err := new(object).OwnWith(p, unsafe.Pointer(resource), With{Size: 1, Parent: s.Owner()}); err != ErrClosed {
				t.Fatalf("OwnWith a stale owner: %v", err)
			}
			mustPanic(t, func() { s.Use(func(unsafe.Pointer) {}) })
			mustPanic(t, func() { s.owner.useNumber(func(_ uintptr) {}) })
		}
		if released != i {
			t.Fatalf("%d released, want %d", released, i)
		}
		if st := p.Stats(); st.Live != 1 || st.Bytes != 100 {
			t.Fatalf("one owner of 100 bytes is live: %+v", st)
		}
		if o.Closed() || o.Pointer() != unsafe.Pointer(resource) {
			t.Fatal("a stale owner has closed another's entry")
		}
		stale = append(stale, o)
		o.Close()
	}
	testcall.Want(t, p.CloseWait(patient(t)))
}

func mustPanic(t *testing.T, f func()) {
	t.Helper()
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	f()
}

var aByte byte
