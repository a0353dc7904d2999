package own

import (
	"runtime"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/cheapgo/cheap/internal/test/testcall"
)

// TestGroupAsParentComesBack forgets groups with a child each: a worker releases
// the child, and then the group with all of its chunks.
func TestGroupAsParentComesBack(t *testing.T) {
	h := newHeap(t)
	m := NewMemory(h, MemoryOptions{})
	p := NewPool(Options{Release: func(_ any, _ []uintptr) error { return nil }})
	testcall.Aside(func() {
		for range 50 {
			g, err := m.NewGroup()
			if err != nil {
				t.Error(err)
				return
			}
			g.Malloc(50_000)
			testcall.Want(t, p.ownWith(&new(thing).owner, 1, With{Size: 16, Parent: g.Owner()}))
		}
	})
	collect(t, "the groups", func() bool { return h.Stats().Blocks == 0 })
	if st := m.Stats(); st.Bytes != 0 {
		t.Errorf("%+v", st)
	}
	mustDestroy(t, p)
}

// TestNilHandle leaves no lock behind.
func TestNilHandle(t *testing.T) {
	p := NewPool(Options{
		Release:   func(_ any, _ []uintptr) error { return nil },
		Construct: func(r []uintptr) (int, error) { return len(r), nil },
	})
	var none *object
	for name, f := range map[string]func(){
		"Own":     func() { none.Own(p, unsafe.Pointer(new(int)), 16) },
		"OwnWith": func() { none.OwnWith(p, unsafe.Pointer(new(int)), With{State: 1}) },
		"Make":    func() { none.Make(p) },
	} {
		if _, ok := testcall.Catch(f).(runtime.Error); !ok {
			t.Errorf("%s of a nil Handle does not panic as any use of nil does", name)
		}
	}
	p.Stats() // takes all locks
	mustDestroy(t, p)
}

// TestClosePoolWaitsForIdleStock destroys a pool while a worker releases its
// stock.
func TestClosePoolWaitsForIdleStock(t *testing.T) {
	var begun, released atomic.Int64
	leave := make(chan struct{})
	p := NewPool(Options{
		Construct: func(r []uintptr) (int, error) { return len(r), nil },
		Release: func(_ any, r []uintptr) error {
			if len(r) > 1 {
				begun.Add(1)
				<-leave
			}
			released.Add(int64(len(r)))
			return nil
		},
	})
	var o object
	testcall.Must(t, o.Make(p))
	o.Close()
	made := p.Stats().Made
	for begun.Load() == 0 {
		cleanups(t)
	}
	testcall.Want(t, p.CloseWait(whenWaiting(func() { close(leave) })))
	if n := released.Load(); n != made+1 {
		t.Errorf("%d released of %d when CloseWait returned", n, made+1)
	}
}

// TestDrainedBatchLeavesTheQueue drains a batch one by one whose last owner was
// closed.
func TestDrainedBatchLeavesTheQueue(t *testing.T) {
	p := NewPool(Options{Release: func(_ any, _ []uintptr) error { return nil }, Run: new(Queue).Run(), Batch: 4})
	testcall.Aside(func() {
		for i := range 4 {
			m := &thing{}
			testcall.Want(t, p.own(&m.owner, 1, 16))
			if i == 3 {
				m.Close()
			}
		}
	})
	for p.Stats().Queued < 4 {
		cleanups(t)
	}
	for p.Stats().Queued > 0 {
		if drainPool(p, 1) != 1 {
			t.Fatal("nothing to drain")
		}
	}
	if st := p.Stats(); st.OldestQueued != 0 {
		t.Errorf("%+v", st)
	}
	mustDestroy(t, p)
}

// TestStockGoesWhileOthersOwn has a pool that owns all the time and was asked to
// make one thing.
func TestStockGoesWhileOthersOwn(t *testing.T) {
	p := NewPool(Options{
		Construct: func(r []uintptr) (int, error) { return len(r), nil },
		Release:   func(_ any, _ []uintptr) error { return nil },
	})
	var o object
	testcall.Must(t, o.Make(p))
	o.Close()
	collectAtMost(t, 20, "the stock to be released", func() bool {
		var o object
		testcall.Want(t, p.own(&o.owner, 1, 16))
		o.Close()
		return p.Stats().Made == 0
	})
	mustDestroy(t, p)
}

// TestClosePoolBesideFilling destroys a Memory while another goroutine makes
// blocks, and looks for writes to memory that was freed.
func TestClosePoolBesideFilling(t *testing.T) {
	h := newHeap(t)
	for round := range times(100) {
		m := NewMemory(h, MemoryOptions{Pinned: 1 << 20})
		done := make(chan bool)
		var made atomic.Int64
		go func() {
			defer close(done)
			for {
				if _, err := m.NewBytes(100 << 10); err != nil {
					return
				}
				made.Add(1)
			}
		}()
		for made.Load() < int64(round%20) {
			runtime.Gosched()
		}
		m.CloseWait(waiting(0))
		block := h.Malloc(1 << 20)
		bytes := (*[1 << 20]byte)(block)
		for i := range bytes {
			bytes[i] = 0xAA
		}
		<-done
		for i, b := range bytes {
			if b != 0xAA {
				t.Fatalf("byte %d of a block was written to by another owner", i)
			}
		}
		h.Free(block)
	}
}
