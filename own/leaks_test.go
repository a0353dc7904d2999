package own

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/cheapgo/cheap/internal/test/testcall"
	"github.com/cheapgo/cheap/internal/watch/leaks"
)

// site returns the sites of a pool whose stacks have a function.
func sitesIn(all []leaks.Site, function string) (found []leaks.Site) {
	for _, s := range all {
		if slices.Contains(functions(s.PCs), function) {
			found = append(found, s)
		}
	}
	return found
}

// functions returns the names of the functions of a stack, without the path of the package.
func functions(pcs []uintptr) (names []string) {
	if len(pcs) == 0 {
		return nil
	}
	for frames := runtime.CallersFrames(pcs); ; {
		f, more := frames.Next()
		names = append(names, f.Function[strings.LastIndexByte(f.Function, '/')+1:])
		if !more {
			return names
		}
	}
}

// poolInfo returns what Pools says of p.
func poolInfo(t *testing.T, p *Pool) PoolInfo {
	t.Helper()
	for _, i := range Pools() {
		if slices.Contains(i.pools, p) {
			return i
		}
	}
	t.Fatal("the pool is not in Pools")
	return PoolInfo{}
}

// record sets the leak level of the pools with the name of p until the test ends.
func record(t *testing.T, p *Pool, l LeakLevel) {
	SetLeakLevel(p.spec.Name, l)
	t.Cleanup(func() { SetLeakLevel(p.spec.Name, LeaksOff) })
}

// nothing returns options of a pool that releases nothing.
func nothing() Options { return Options{Release: func(any, []uintptr) error { return nil }} }

// TestLeaksSampled makes owners in every way. Of each way about one in 128 is recorded, and
// the sums are exact.
func TestLeaksSampled(t *testing.T) {
	n := times(100_000)
	var x byte
	ptr := unsafe.Pointer(&x)
	parents := NewPool(nothing())
	var parent object
	testcall.Must(t, parent.Own(parents, ptr, 1))
	owners := make([]object, n)
	made, queued, one, told, numbers := nothing(), nothing(), nothing(), nothing(), nothing()
	made.Construct = func(r []uintptr) (int, error) {
		for i := range r {
			r[i] = uintptr(ptr)
		}
		return len(r), nil
	}
	made.Size = 100
	queued.Run = NewQueue(1<<30, nil).Run()
	one.Batch = 1
	told.OnCollect = func(Collected) {}
	numbers.Numbers = true
	m := NewMemory(nil, MemoryOptions{Name: "sampled.Memory"})
	for _, row := range []struct {
		name string
		o    Options
		own  func(p *Pool, i int) error
	}{
		{"Own", nothing(), func(p *Pool, i int) error { return owners[i].Own(p, ptr, 100) }},
		{"large", nothing(), func(p *Pool, i int) error { return owners[i].Own(p, ptr, 1<<20) }},
		{"unknown", nothing(), func(p *Pool, i int) error { return owners[i].Own(p, ptr, 0) }},
		{"Numbers", numbers, func(p *Pool, i int) error { return p.own(&owners[i].owner, 7, 100) }},
		{"Batch", one, func(p *Pool, i int) error { return owners[i].Own(p, ptr, 100) }},
		{"OnCollect", told, func(p *Pool, i int) error { return owners[i].Own(p, ptr, 100) }},
		{"MaxQueued", queued, func(p *Pool, i int) error { return owners[i].Own(p, ptr, 100) }},
		{"Make", made, func(p *Pool, i int) error { return owners[i].Make(p) }},
		{"OwnWith", nothing(), func(p *Pool, i int) error { return owners[i].OwnWith(p, ptr, With{Size: 100, Parent: parent.Owner()}) }},
		{"Room", nothing(), func(p *Pool, i int) error {
			room, err := p.Reserve(context.Background(), 100)
			if err != nil {
				return err
			}
			return owners[i].OwnWith(p, ptr, With{Room: room})
		}},
		{"Memory", Options{}, func(_ *Pool, i int) error {
			b, err := m.NewBytes(100)
			if err == nil {
				owners[i].owner = b.owner
			}
			return err
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			clear(owners)
			p := m.blocks.pool
			if row.o.Release != nil {
				p = NewPool(row.o)
			}
			info := poolInfo(t, p)
			record(t, p, LeaksSampled)
			n := n
			if row.name == "large" || row.name == "Batch" {
				n /= 4
			}
			for i := range n {
				testcall.Must(t, row.own(p, i))
				if i%4 == 0 {
					owners[i].Close()
				}
			}
			st, open := info.Stats(), int64(n-(n+3)/4)
			if row.o.Run.queue != nil {
				drainPool(p, 0)
				st = info.Stats()
			}
			var live, bytes, samples, made int64
			for _, s := range info.sites() {
				live += s.Live
				bytes += s.Bytes
				samples += s.Samples
				made += s.Made
			}
			if live != open || st.Live != open || bytes != st.Bytes-st.Made*100 {
				t.Errorf("%d live of %d bytes, want %d of %d", live, bytes, open, st.Bytes)
			}
			// Five standard deviations: one test in two million fails by chance.
			rate := float64(leaks.Rate)
			if row.name == "large" || row.name == "Batch" {
				rate = leaks.RateAlone
			}
			want := float64(open) / rate
			if d := math.Abs(float64(samples) - want); d > 5*math.Sqrt(want) {
				t.Errorf("%d samples of %d owners, want about %.0f", samples, open, want)
			}
			if d := math.Abs(float64(made-int64(n)) / rate); d > 5*math.Sqrt(float64(n)/rate) {
				t.Errorf("%d made, want about %d", made, n)
			}
			for i := range owners {
				owners[i].Close()
			}
			drainPool(p, 0)
		})
	}
	runtime.KeepAlive(owners)
	parent.Close()
}

// TestLeaksStrata has three stacks whose owners have different sizes, or, after a Resize, the
// same size and another rate. None of them stands for owners of another stack, so the numbers
// are exact although a part is recorded. There is one P and no collection: a batch that is sealed
// after its first owner is followed by a batch of one, and that has the rate of the large owners.
func TestLeaksStrata(t *testing.T) {
	setProcs(t, 1)
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	cleanups(t) // a collection that was under way may seal, too
	const n, few, large = 20_000, 500, 1 << 20
	var x byte
	p := NewPool(nothing())
	record(t, p, LeaksSampled)
	owners := make([]object, 2*n+few)
	for i := range n {
		testcall.Must(t, owners[i].Own(p, unsafe.Pointer(&x), 100))
	}
	for i := range n {
		testcall.Must(t, owners[n+i].Own(p, unsafe.Pointer(&x), 1000))
	}
	for i := range few {
		testcall.Must(t, owners[2*n+i].Own(p, unsafe.Pointer(&x), large))
	}
	look := func(want ...[2]int64) {
		t.Helper()
		var got [][2]int64
		sum := int64(2*n + few)
		for _, s := range poolInfo(t, p).sites() {
			got = append(got, [2]int64{s.Live, s.Bytes})
			sum -= s.Live
		}
		if sum != 0 || !slices.Equal(got, want) {
			t.Errorf("%d, want %d", got, want)
		}
	}
	look([2]int64{few, few * large}, [2]int64{n, n * 1000}, [2]int64{n, n * 100})
	for i := range n {
		owners[n+i].Resize(large)
	}
	look([2]int64{n, n * large}, [2]int64{few, few * large}, [2]int64{n, n * 100})
	for i := range owners {
		owners[i].Close()
	}
}

// sum adds up sites.
func sum(sites []leaks.Site) (made, collected, live int64) {
	for _, s := range sites {
		made += s.Made
		collected += s.Collected
		live += s.Live
	}
	return made, collected, live
}

// TestLeaksCollected closes some of what a stack makes, drops others, and keeps some.
func TestLeaksCollected(t *testing.T) {
	for _, o := range []Options{{}, {Batch: 1}, {Run: Thread(0)}, {OnCollect: func(Collected) {}}, {Run: Workers(1)}} {
		w := newWorld(t, 10_000)
		p := w.pool(o)
		info := poolInfo(t, p)
		record(t, p, LeaksAll)
		testcall.Aside(func() {
			for i := range 2900 {
				if m := bakery(t, w, p); i < 2000 {
					m.Close()
				}
				butchery(t, w, p).Close()
			}
		})
		collectAtMost(t, few, "the dropped", func() bool { return info.Stats().Collected == 900 })
		kept := make([]*thing, 100)
		for i := range kept {
			kept[i] = bakery(t, w, p)
		}
		sites := info.sites()
		bread, meat := sitesIn(sites, "own.bakery"), sitesIn(sites, "own.butchery")
		if made, collected, live := sum(bread); made != 3000 || collected != 900 || live != 100 {
			t.Errorf("made %d, collected %d, live %d", made, collected, live)
		}
		if made, collected, live := sum(meat); made != 2900 || collected != 0 || live != 0 || len(sites) != 3 {
			t.Errorf("made %d, collected %d, live %d; %d sites", made, collected, live, len(sites))
		}
		runtime.KeepAlive(kept)
	}
}

// TestLeaksCollectedMemory is TestLeaksCollected of blocks, which are released as a whole
// batch, and sampled.
func TestLeaksCollectedMemory(t *testing.T) {
	for _, level := range []LeakLevel{LeaksAll, LeaksSampled} {
		m := NewMemory(nil, MemoryOptions{Name: "collected.Memory"})
		record(t, m.blocks.pool, level)
		n := times(100_000)
		testcall.Aside(func() {
			for range n {
				if _, err := m.NewBytes(50); err != nil {
					t.Error(err)
				}
			}
		})
		collectAtMost(t, few, "the blocks", func() bool { return m.Stats().Collected == int64(n) })
		sites := poolInfo(t, m.blocks.pool).sites()
		if len(sites) != 1 || sites[0].Made != sites[0].Collected {
			t.Fatalf("%+v", sites)
		}
		if d := math.Abs(float64(sites[0].Made)/float64(n) - 1); level == LeaksAll && d != 0 || d > 5*math.Sqrt(leaks.Rate/float64(n)) {
			t.Errorf("%v: %d made, want about %d", level, sites[0].Made, n)
		}
	}
}

//go:noinline
func toast(m *thing) { m.Use(func(unsafe.Pointer) {}) }

//go:noinline
func slice(m *thing) { m.TryUse(func(unsafe.Pointer) error { return nil }) }

// TestLeaksUses uses owners in two places.
func TestLeaksUses(t *testing.T) {
	for _, unshared := range []bool{false, true} {
		for _, level := range []LeakLevel{LeaksSampled, LeaksAdvanced, LeaksAll} {
			w := newWorld(t, 10_000)
			p := w.pool(Options{Unshared: unshared})
			record(t, p, level)
			var held []*thing
			for range 5000 {
				m := bakery(t, w, p)
				for range 10 {
					toast(m)
				}
				slice(m)
				held = append(held, m)
			}
			s := sitesIn(poolInfo(t, p).sites(), "own.bakery")
			if len(s) != 1 {
				t.Fatalf("%d sites", len(s))
			}
			uses := s[0].Uses
			switch {
			case level == LeaksSampled && len(uses) != 0:
				t.Errorf("%d uses with the level %v", len(uses), level)
			case level == LeaksSampled:
			case len(uses) != 2 || functions(uses[0])[0] != "own.slice" || functions(uses[1])[0] != "own.toast":
				t.Errorf("unshared=%v, %v: %d uses", unshared, level, len(uses))
			}
			runtime.KeepAlive(held)
			for _, m := range held {
				m.Close()
			}
		}
	}
}

// TestLeaksLabels has more labels than sites of a stack.
func TestLeaksLabels(t *testing.T) {
	w := newWorld(t, 1000)
	p := w.pool(Options{})
	record(t, p, LeaksAll)
	var held []*thing
	for i := range 100 {
		m := w.own(t, p, 100-i)
		m.SetLabel(fmt.Sprintf("%02d", i))
		held = append(held, m)
	}
	sites := poolInfo(t, p).sites()
	live, bytes := int64(0), int64(0)
	labels := map[string]bool{}
	for _, s := range sites {
		live += s.Live
		bytes += s.Bytes
		labels[s.Label] = true
	}
	if len(sites) != mostLabels || live != 100 || bytes != 5050 || !labels["00"] || !labels["14"] || !labels[""] {
		t.Errorf("%d sites of %d owners of %d bytes, with the labels %v", len(sites), live, bytes, labels)
	}
	runtime.KeepAlive(held)
}

// TestLeaksStacksAreBounded makes owners by more stacks than a pool keeps.
func TestLeaksStacksAreBounded(t *testing.T) {
	const bits = 12
	w := newWorld(t, 2<<bits)
	p := w.pool(Options{})
	record(t, p, LeaksAll)
	testcall.Aside(func() {
		for n := range 1 << bits {
			deepStack(n, bits, func() { w.own(t, p, 16) })
		}
	})
	collectAtMost(t, few, "all owners", func() bool { return p.Stats().Collected == 1<<bits })
	after := poolInfo(t, p).sites()
	if len(after) != 2048+1 { // one for the others
		t.Errorf("%d sites after all are collected", len(after))
	}
	if made, collected, _ := sum(after); made != 1<<bits || collected != 1<<bits {
		t.Errorf("%d made, %d collected, want %d", made, collected, 1<<bits)
	}
}
