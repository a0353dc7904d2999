package heap

import (
	"go/ast"
	"go/parser"
	"go/token"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"github.com/cheapgo/cheap/internal/osmem"
	"github.com/cheapgo/cheap/internal/shadow"
	"github.com/cheapgo/cheap/internal/sizeclass"
	"github.com/cheapgo/cheap/internal/span"
	"github.com/cheapgo/cheap/internal/testcall"
	"github.com/cheapgo/cheap/internal/testheap"
	"github.com/cheapgo/cheap/internal/testwait"
)

// only yields one heap.
func only(h *Heap) func(func(*Heap) bool) { return func(yield func(*Heap) bool) { yield(h) } }

// useLocal takes blocks of many classes from l, and frees them.
func useLocal(l *Local) {
	var blocks []unsafe.Pointer
	for i := range 20 {
		blocks = append(blocks, l.Malloc(16+i*100))
	}
	for _, p := range blocks {
		l.Free(p)
	}
}

// TestLocalRests looks at Locals twice, as two ticks of the decay do. One that has not moved
// between has no memory of the heap then; another keeps its cache. The first one works on.
func TestLocalRests(t *testing.T) {
	testheap.SetDecay(t, -1) // the test makes the ticks
	testheap.WithRate(t, 0)
	h := newHeap(t, Options{})
	watched := span.Watched()
	rests, moves, never := h.NewLocal(), h.NewLocal(), h.NewLocal()
	tick := func() { seizeLocals(only(h), (*localCache).rests) }
	for round := range 3 {
		useLocal(rests)
		useLocal(moves)
		live := rests.Malloc(300)
		shadow.Fill(live, 300, 5)
		if s := h.Stats(); s.Cached == 0 || span.Watched()-watched < 2 {
			t.Fatalf("round %d: %+v, %d caches are watched", round, s, span.Watched()-watched)
		}
		tick()
		if !rests.c.has() || round == 0 && !never.c.has() {
			t.Fatalf("round %d: a Local lost its cache at the first tick", round)
		}
		useLocal(moves)
		tick() // the second one finds those at rest
		if rests.c.has() || never.c.has() {
			t.Fatalf("round %d: a Local that rests has a cache", round)
		}
		if !moves.c.has() {
			t.Fatalf("round %d: a Local that moves lost its cache", round)
		}
		mallocs := h.Stats().Mallocs
		if err := shadow.Check(live, 300, 5); err != nil {
			t.Fatalf("a block in use: %v", err)
		}
		rests.Free(live)
		if s := h.Stats(); s.Blocks != 0 || s.Mallocs != mallocs || !rests.c.has() {
			t.Fatalf("round %d: %+v, %d mallocs before; Free brings the cache back", round, s, mallocs)
		}
	}
	h.Trim()
	if s := h.Stats(); s.Cached != 0 || s.Caches != 0 || s.Held != 0 || span.Watched() != watched {
		t.Errorf("after Trim: %+v, %d caches are watched", s, span.Watched()-watched)
	}
	for _, l := range []*Local{rests, moves, never} {
		l.Destroy()
	}
	mustHoldNothing(t, h)
}

// TestTrimTakesLocals has Trim empty the Locals of all heaps that no goroutine is in.
func TestTrimTakesLocals(t *testing.T) {
	testheap.SetDecay(t, -1)
	for range 2 {
		h := newHeap(t, Options{})
		l := h.NewLocal()
		useLocal(l)
		defer func() {
			if s := h.Stats(); s.Cached != 0 || l.c.has() {
				t.Errorf("after Trim: %+v", s)
			}
			l.Destroy()
		}()
	}
	Trim()
}

// TestLocalDecay leaves the work to the decay: a Local that rests loses its blocks, and then no
// timer is armed for it.
func TestLocalDecay(t *testing.T) {
	testheap.SetDecay(t, 1<<20) // a millisecond
	h := newHeap(t, Options{})
	l := h.NewLocal()
	defer l.Destroy()
	for range 3 {
		useLocal(l)
		testwait.Until(t, "the Local has no cache", func() bool { return h.Stats().Caches == 0 })
	}
}

// TestLocalDecayOff turns the decay off with a Local that rests, which loses its cache.
func TestLocalDecayOff(t *testing.T) {
	testheap.SetDecay(t, -1)
	h := newHeap(t, Options{})
	l := h.NewLocal()
	useLocal(l)
	testheap.SetDecay(t, 0)
	if l.c.has() {
		t.Error("the Local has a cache")
	}
	l.Destroy()
	mustHoldNothing(t, h)
}

// TestLocalSeizedTwice has a tick of the decay choose a Local that another call of seizeLocals has
// chosen. Behind that call the Local has no cache, wherever the tick is, and the tick then leaves
// the Local alone.
func TestLocalSeizedTwice(t *testing.T) {
	testheap.SetDecay(t, -1)
	testheap.WithRate(t, 0)
	h := newHeap(t, Options{})
	l := h.NewLocal()
	useLocal(l)
	var tick []seizure
	seizeLocals(func(yield func(*Heap) bool) {
		yield(h)
		tick = h.divertLocals(nil, seizures.Add(1), anyLocal)
	}, anyLocal)
	if len(tick) != 1 || l.c.has() {
		t.Errorf("the tick chose %v; the Local has a cache: %v", tick, l.c.has())
	}
	useLocal(l)
	for _, s := range tick {
		s.c.dropOf(s.round)
	}
	if !l.c.has() {
		t.Error("the tick has taken the cache that the Local has got since")
	}
	l.Destroy()
	mustHoldNothing(t, h)
}

// TestLocalRestsInDestroy destroys heaps with an open Local. Where it has a cache, its goroutine may
// be about to read a block of it, so the units of these are not used again. Where it has none, they
// are.
func TestLocalRestsInDestroy(t *testing.T) {
	testheap.SetDecay(t, -1)
	testheap.WithRate(t, 0)
	for _, rests := range []bool{true, false} {
		before, _ := span.InUse()
		h, err := New(Options{})
		if err != nil {
			t.Fatal(err)
		}
		l := h.NewLocal()
		useLocal(l)
		if rests {
			h.Trim()
			h.Free(h.Malloc(100))
		}
		if err := h.Destroy(); err != nil {
			t.Fatal(err)
		}
		if after, _ := span.InUse(); (after == before) != rests {
			t.Errorf("rests: %v; %d units are in use, before %d", rests, after, before)
		}
		for _, use := range []func(){func() { l.Malloc(100) }, func() { l.Calloc(1, 100) }, func() { l.Realloc(nil, 100) }} {
			if _, ok := testcall.Catch(use).(*MisuseError); !ok {
				t.Errorf("rests: %v; the Local works", rests)
			}
		}
		l.Destroy()
	}
}

// TestLocalComesBack has the goroutine of a Local come between the steps in which its cache is
// taken.
func TestLocalComesBack(t *testing.T) {
	testheap.SetDecay(t, -1)
	testheap.WithRate(t, 0)
	for name, comes := range map[string]func(h *Heap, l *Local) (keeps bool){
		"not": func(*Heap, *Local) bool { return false },
		"Malloc": func(h *Heap, l *Local) bool {
			h.Free(l.Malloc(100))
			return true
		},
		"Free": func(h *Heap, l *Local) bool {
			l.Free(h.Malloc(100))
			return true
		},
		"Calloc and Realloc": func(h *Heap, l *Local) bool {
			h.Free(l.Realloc(l.Calloc(10, 10), 500))
			return true
		},
		"Destroy": func(h *Heap, l *Local) bool {
			l.Destroy()
			return false
		},
		"another seizure": func(h *Heap, l *Local) bool {
			seizeLocals(only(h), anyLocal)
			return false
		},
		"another first step": func(h *Heap, l *Local) bool {
			h.divertLocals(nil, seizures.Add(1), anyLocal)
			return false
		},
		"another first step and Malloc": func(h *Heap, l *Local) bool {
			h.divertLocals(nil, seizures.Add(1), anyLocal)
			h.Free(l.Malloc(100))
			return true
		},
		"Malloc and another first step": func(h *Heap, l *Local) bool {
			h.Free(l.Malloc(100))
			h.divertLocals(nil, seizures.Add(1), anyLocal)
			return true
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHeap(t, Options{})
			l := h.NewLocal()
			useLocal(l)
			picked := h.divertLocals(nil, seizures.Add(1), anyLocal)
			if len(picked) != 1 || picked[0].l != l || l.k != &noCache {
				t.Fatalf("chose %v", picked)
			}
			keeps := comes(h, l)
			picked[0].c.dropOf(picked[0].round)
			if l.c.has() != keeps {
				t.Errorf("has a cache: %v, want %v", !keeps, keeps)
			}
			if !l.closed {
				useLocal(l)
			}
			if s := h.Stats(); s.Blocks != 0 {
				t.Errorf("%+v", s)
			}
			l.Destroy()
			mustHoldNothing(t, h)
		})
	}
}

// TestLocalInside takes the caches of Locals while the goroutine of one is in it.
func TestLocalInside(t *testing.T) {
	testheap.SetDecay(t, -1)
	testheap.WithRate(t, 0)
	h := newHeap(t, Options{})
	l, other := h.NewLocal(), h.NewLocal()
	useLocal(l)
	useLocal(other)
	l.in = true
	k := l.k
	seizeLocals(only(h), anyLocal)
	if !l.c.has() || !cacheAt(l.c.slot).hasBlocks() || other.c.has() {
		t.Error("the wrong Local has lost its cache")
	}
	l.in = false
	mallocs := h.Stats().Mallocs
	l.Free(l.Malloc(100))
	if l.k != k || h.Stats().Mallocs != mallocs+1 {
		t.Error("it has not come back to its cache")
	}
	// A panic in the slow path does not leave it inside.
	testcall.Catch(func() { l.Free(unsafe.Pointer(&global)) })
	testcall.Catch(func() { l.Malloc(-1) })
	testcall.Catch(func() { l.Realloc(unsafe.Pointer(&global), 5) })
	// Nor does a method that only empties the cache.
	p := h.Malloc(100)
	useLocal(l)
	l.c.flush.Store(true)
	l.UsableSize(p)
	h.Free(p)
	h.Trim()
	if l.c.has() {
		t.Error("the Local is still inside")
	}
	l.Destroy()
	other.Destroy()
	mustHoldNothing(t, h)
}

// TestLocalNoCacheAgain lets a Local that has rested come back where the limit leaves no room for
// a cache. It works through the heap, and has a cache some time after there is room.
func TestLocalNoCacheAgain(t *testing.T) {
	testheap.SetDecay(t, -1)
	testheap.WithRate(t, 0)
	h := newHeap(t, Options{Limit: 1 << 20})
	l := h.NewLocal()
	useLocal(l)
	h.Trim()
	var blocks []unsafe.Pointer
	for size := 256 << 10; size > 4096; size /= 2 {
		for {
			p := h.Malloc(size)
			if p == nil {
				break
			}
			blocks = append(blocks, p)
		}
	}
	refuse := h.account.Limit() - h.account.Held()
	if refuse >= cacheBytes && !h.account.TryCharge(refuse) {
		t.Fatal("no room to take")
	}
	l.Free(blocks[0])
	if l.c.has() {
		t.Fatal("a cache beyond the limit")
	}
	if refuse >= cacheBytes {
		h.account.Uncharge(refuse)
	}
	for _, p := range blocks[1:] {
		h.Free(p)
	}
	for range 2 * mostMisses {
		l.Free(l.Malloc(100))
	}
	if !l.c.has() {
		t.Error("no cache where there is room")
	}
	l.Destroy()
	mustHoldNothing(t, h)
}

// TestHammerLocalRests has goroutines use Locals, each its own, and rest, while others take
// their caches, as the decay, Trim and a reached limit do. Each block has a pattern.
func TestHammerLocalRests(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	testheap.SetDecay(t, 1<<20)
	h := newHeap(t, Options{})
	turns := make(chan struct{}, 2) // to stop the world all the time would leave no time for the users
	var users, others sync.WaitGroup
	for g := range 8 {
		users.Go(func() {
			r := rand.New(rand.NewPCG(uint64(g), 7))
			l := h.NewLocal()
			var live shadow.Set
			live.Seed(uint64(g) << 32)
			free := func(n int) {
				b := live.At(n)
				p := osmem.Pointer(b.Addr)
				if err := live.Remove(p); err != nil {
					t.Error(err)
				}
				l.Free(p)
			}
			for range testheap.HammerRounds(400) {
				select {
				case turns <- struct{}{}:
				default:
				}
				for range 1 + r.IntN(300) {
					size := r.IntN(600)
					switch n := r.IntN(10); {
					case n < 4 || live.Len() == 0:
						p := l.Malloc(size)
						if n == 0 {
							l.Free(p)
							if p = l.Calloc(1, size); shadow.Zero(p, size) != nil {
								t.Error("Calloc returns what is not zero")
							}
						}
						if err := live.Add(p, size, h.UsableSize(p), sizeclass.Quantum); err != nil {
							t.Error(err)
						}
					case n < 9 || live.Len() > 100:
						free(r.IntN(live.Len()))
					default:
						b := live.At(r.IntN(live.Len()))
						q := l.Realloc(osmem.Pointer(b.Addr), size)
						if err := live.Move(b.Addr, q, size, h.UsableSize(q), sizeclass.Quantum); err != nil {
							t.Error(err)
						}
					}
				}
				switch r.IntN(10) {
				case 0:
					l.Destroy()
					l = h.NewLocal()
				case 1:
					l = h.NewLocal() // the old one is dropped
				case 2, 3, 4:
					for range r.IntN(20) {
						runtime.Gosched() // it rests
					}
				}
			}
			for live.Len() > 0 {
				free(0)
			}
			l.Destroy()
		})
	}
	for i := range 3 {
		others.Go(func() {
			r := rand.New(rand.NewPCG(uint64(i), 8))
			for range turns {
				switch n := r.IntN(30); {
				case n == 0:
					runtime.GC()
				case n == 1:
					runtime.GOMAXPROCS(1 + r.IntN(4))
				case n < 10:
					h.Trim()
				case n < 15:
					h.reclaim()
				case n < 20:
					seizeLocals(everyHeap, (*localCache).rests)
				default:
					seizeLocals(only(h), func(*localCache) bool { return r.IntN(2) == 0 })
				}
				h.Stats()
			}
		})
	}
	users.Wait()
	close(turns)
	others.Wait()
	testwait.Until(t, "the Locals that were dropped are found", func() bool {
		runtime.GC()
		h.seize.Lock()
		defer h.seize.Unlock()
		return h.locals == nil
	})
	if s := h.Stats(); s.Blocks != 0 || s.Mallocs != s.Frees {
		t.Errorf("%+v", s)
	}
	mustHoldNothing(t, h)
}

// spin counts in a function that, as Local.Malloc and Local.Free, has no place where the goroutine
// may be stopped. Meanwhile inside is 1, and 2 after that. At the end it sets in. It reports whether
// after was set meanwhile.
//
//go:norace
//go:nosplit
//go:nocheckptr
//go:noinline
func spin(inside, after *uint32, in *bool, n int) (stopped bool) {
	*inside = 1
	for range n {
		if *after != 0 {
			stopped = true
			break
		}
	}
	*in = true
	*inside = 2
	return stopped
}

//go:norace
func set(p *uint32) { *p = 1 }

//go:norace
func get(p *uint32) uint32 { return *p }

// TestNosplitIsNotStopped is what the caches of Locals rely on: percpu.Stop does not return while a
// goroutine is in a function that is marked go:nosplit. And seizeLocals does not look at Local.in
// before that: the goroutine may have loaded the cache, and the store of in not be visible yet.
func TestNosplitIsNotStopped(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(max(2, runtime.GOMAXPROCS(0))))
	testheap.SetDecay(t, -1)
	l := newHeap(t, Options{}).NewLocal()
	met := 0
	for range 20 {
		useLocal(l)
		inside, after := new(uint32), new(uint32)
		stopped := make(chan bool)
		go func() { stopped <- spin(inside, after, &l.in, 30_000_000) }()
		for get(inside) == 0 { // it may be 2 before this goroutine looks
			runtime.Gosched()
		}
		wasInside := get(inside) == 1
		seizeLocals(only(l.h), anyLocal)
		set(after)
		if <-stopped {
			t.Fatal("the world was stopped while a goroutine was in a function without safe points")
		}
		if !l.c.has() {
			t.Fatal("the Local has lost its cache while its goroutine was in it")
		}
		if wasInside {
			met++
		}
	}
	if met == 0 {
		t.Error("no goroutine was inside")
	}
}

// TestLocalSections looks at the source of Local.Malloc and Local.Free. The functions that they call
// from the load of the cache on, and that these call, are marked go:nosplit, so that none of them
// has a safe point where the compiler does not inline it.
func TestLocalSections(t *testing.T) {
	const nosplit, nocheckptr, noinline = "//go:nosplit", "//go:nocheckptr", "//go:noinline"
	needs := map[string][]string{ // by type and name
		"Local.Malloc":    {nosplit, nocheckptr, noinline},
		"Local.Free":      {nosplit, nocheckptr, noinline},
		"Local.cache":     {nosplit, nocheckptr},
		"cache.at":        {nosplit, nocheckptr},
		".At":             {nosplit, nocheckptr},
		".Pointer":        {nosplit, nocheckptr}, // of package osmem
		".Checksum":       {nosplit},
		".NextOf":         {nosplit},
		"Block.IsFree":    {nosplit},
		"Block.SetCached": {nosplit},
		"cacheClass.push": {nosplit},
	}
	// What runs behind the section; conversions; and what has no safe point.
	others := []string{"allocSlow", "freeSlow", "raceAcquire", "StateOf", "LoadPointer", "uintptr", "uint64", "Add", "cacheClass", "Offsetof"}
	found := 0
	for _, dir := range []string{".", "block", "../osmem"} {
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range files {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range f.Decls {
				fn, ok := d.(*ast.FuncDecl)
				if !ok {
					continue
				}
				key := receiver(fn) + "." + fn.Name.Name
				want, ok := needs[key]
				home := "."
				switch key {
				case ".Pointer":
					home = "../osmem"
				case ".At", ".Checksum", ".NextOf", "Block.IsFree", "Block.SetCached":
					home = "block"
				}
				if !ok || dir != home {
					continue
				}
				found++
				for _, w := range want {
					if fn.Doc == nil || !slices.ContainsFunc(fn.Doc.List, func(c *ast.Comment) bool { return c.Text == w }) {
						t.Errorf("%s has no %s", key, w)
					}
				}
				for _, called := range callsFrom(fn) {
					known := slices.Contains(others, called)
					for k := range needs {
						known = known || strings.HasSuffix(k, "."+called)
					}
					if !known {
						t.Errorf("%s calls %s, which is not known to have no safe point", key, called)
					}
				}
			}
		}
	}
	if found != len(needs) {
		t.Errorf("%d functions were found, want %d", found, len(needs))
	}
}

// receiver returns the name of the type of a method, or "".
func receiver(fn *ast.FuncDecl) string {
	if fn.Recv == nil {
		return ""
	}
	typ := fn.Recv.List[0].Type
	if star, ok := typ.(*ast.StarExpr); ok {
		typ = star.X
	}
	id, _ := typ.(*ast.Ident)
	if id == nil {
		return "?"
	}
	return id.Name
}

// callsFrom returns the names of what fn calls, from a call of cache on if there is one.
func callsFrom(fn *ast.FuncDecl) (names []string) {
	ast.Inspect(fn.Body, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		name := ""
		switch f := call.Fun.(type) {
		case *ast.Ident:
			name = f.Name
		case *ast.SelectorExpr:
			ast.Inspect(f.X, func(n ast.Node) bool { // in x.cache().at(c), cache comes first
				if s, ok := n.(*ast.SelectorExpr); ok && s.Sel.Name == "cache" {
					names = nil
				}
				return true
			})
			name = f.Sel.Name
		}
		if name == "cache" {
			names = nil
		}
		if name != "" {
			names = append(names, name)
		}
		return true
	})
	return names
}
