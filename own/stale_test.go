package own

import (
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
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

// TestOwnByMany has goroutines own, resize and close, and close once more what
// they closed, while others collect and read Stats; the pool is destroyed in
// the middle. Each resource is released once.
func TestOwnByMany(t *testing.T) {
	const goroutines = 8
	each := times(20_000)
	counts := make([]atomic.Int32, goroutines*each)
	p := NewPool(Options{Batch: 64, Release: func(_ any, rs []uintptr) error {
		for _, r := range rs {
			(*atomic.Int32)(*(*unsafe.Pointer)(unsafe.Pointer(&r))).Add(1)
		}
		return nil
	}})
	var owned atomic.Int64
	var all, others sync.WaitGroup
	stop := make(chan struct{})
	others.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				runtime.GC()
				if st := p.Stats(); st.Live < 0 {
					t.Errorf("%+v", st)
				}
			}
		}
	})
	for g := range goroutines {
		all.Go(func() {
			var kept [32]object
			for i := range each {
				var o object
				if err := o.Own(p, unsafe.Pointer(&counts[g*each+i]), 10); errors.Is(err, ErrPoolClosed) {
					break
				} else if err != nil {
					t.Error(err)
					return
				}
				owned.Add(1)
				if i%16 == 0 {
					o.Resize(20)
				}
				k := &kept[i%len(kept)]
				stale := *k
				switch i % 5 {
				case 0:
					o.Close()
				case 1:
					k.Close()
					*k = o
				case 2: // forgotten
					*k = o
				default:
					k.Close()
					o.Close()
				}
				stale.Close()
				if i == each*3/4 && g == 0 {
					p.CloseWait(patient(t))
				}
			}
			for i := range kept {
				kept[i].Close()
			}
		})
	}
	all.Wait()
	close(stop)
	others.Wait()
	sum := int64(0)
	for tries := 0; sum < owned.Load() && tries < 1000; tries++ {
		runtime.GC()
		testcall.Must(t, Flush(t.Context()))
		sum = 0
		for i := range counts {
			sum += int64(counts[i].Load())
		}
	}
	for i := range counts {
		if k := counts[i].Load(); k > 1 {
			t.Fatalf("%d was released %d times", i, k)
		}
	}
	if sum != owned.Load() {
		t.Errorf("%d released of %d", sum, owned.Load())
	}
	if st := p.Stats(); st.Live != 0 || st.Bytes != 0 {
		t.Errorf("%+v", st)
	}
}

var aByte byte
