package own

import (
	"context"
	"runtime"
	"slices"
	"testing"
	"unsafe"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/internal/test/testcall"
)

// info returns what Pools says of a pool of that name, and whether it says anything.
func info(name string) (PoolInfo, bool) {
	all := Pools()
	i := slices.IndexFunc(all, func(p PoolInfo) bool { return p.Name == name })
	if i < 0 {
		return PoolInfo{}, false
	}
	return all[i], true
}

func TestPools(t *testing.T) {
	var resource [1]byte
	p := NewPool(Options{Name: "listed.Pool", Release: func(any, []uintptr) error { return nil }})
	var o object
	testcall.Must(t, o.Own(p, unsafe.Pointer(&resource), 100))
	o.SetLabel("first")
	got, ok := info("listed.Pool")
	if !ok || got.Memory || got.Stats() != p.Stats() || got.Stats().Live != 1 {
		t.Errorf("Pools has %+v, with %+v", got, got.Stats())
	}
	for l := range got.Live() {
		if l.Label != "first" || l.Size != 100 {
			t.Errorf("the live owner is %+v", l)
		}
	}
	o.Close()
	testcall.Must(t, p.CloseWait(context.Background()))
	if _, ok := info("listed.Pool"); ok {
		t.Error("Pools has a pool that is destroyed and owns nothing")
	}
}

// TestPoolsHasMemories has a block and a group, which lie in two pools.
func TestPoolsHasMemories(t *testing.T) {
	h, err := cheap.NewHeap(cheap.HeapOptions{Name: "listed.Heap"})
	testcall.Must(t, err)
	m := NewMemory(h, MemoryOptions{Name: "listed.Memory"})
	b, err := m.NewBytes(100)
	testcall.Must(t, err)
	g, err := m.NewGroup()
	testcall.Must(t, err)
	got, ok := info("listed.Memory")
	if st := got.Stats(); !ok || !got.Memory || st != m.Stats() || st.Live != 2 {
		t.Errorf("Pools has %+v, with %+v, want %+v", got, st, m.Stats())
	}
	if n := len(slices.Collect(got.Live())); n != 2 {
		t.Errorf("%d live owners, want 2", n)
	}
	b.Close()
	g.Close()
	testcall.Must(t, m.CloseWait(context.Background()))
	testcall.Must(t, h.DestroyAll())
}

// TestPoolsForgets drops pools, and looks at the roster itself: a pool that is collected
// leaves it when it has grown.
func TestPoolsForgets(t *testing.T) {
	const pools = 5000
	for range pools {
		NewPool(Options{Name: "dropped.Pool", Release: func(any, []uintptr) error { return nil }})
		if len(rostered()) > pools/2 {
			runtime.GC()
		}
	}
	if n := len(rostered()); n > pools*3/4 {
		t.Errorf("the roster has %d pools after %d were made and dropped", n, pools)
	}
}
