package pace

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/internal/mem/account"
	"github.com/cheapgo/cheap/internal/mem/span"
	"github.com/cheapgo/cheap/internal/test/testcall"
	"github.com/cheapgo/cheap/internal/test/testchild"
	"github.com/cheapgo/cheap/internal/test/testwait"
	"github.com/cheapgo/cheap/internal/watch/resident"
	"github.com/cheapgo/cheap/own"
)

// A hoard is a cache of which an account knows what it has.
type hoard struct {
	*Account
	free func(want int64) int64 // in place of freeing what is wanted, if it is not nil
	end  func()
}

// newHoard registers a cache with a share of weight 1.
func newHoard(t *testing.T, name string, free func(want int64) int64) *hoard {
	h := &hoard{Account: newAccount(t, AccountOptions{Manual: true}), free: free}
	if h.free == nil {
		h.free = h.give
	}
	h.end = OnPressure(name, Share{Held: h.Held}, h.free)
	t.Cleanup(h.end)
	return h
}

func (h *hoard) give(want int64) int64 {
	n := min(want, h.Held())
	h.Remove(n)
	return n
}

// looked looks, and returns what is in use. A goroutine that takes memory does not look while another one does, and a
// test may take nothing after that.
func (p *pacer) looked() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.adjust()
	return p.inUse
}

// cacheNamed returns what Stats has of a cache.
func cacheNamed(name string) (s CacheStats) {
	for _, c := range ReadStats().Caches {
		if c.Name == name {
			return c
		}
	}
	return s
}

// TestOnPressure fills a limit by two caches, which give way in proportion to what they have, as soon as less than
// LeastRoom is free, and not before.
func TestOnPressure(t *testing.T) {
	setMemoryLimit(t, math.MaxInt64)
	a, b := newHoard(t, "a", nil), newHoard(t, "b", nil) // before Start
	const limit = 256 * mib
	p := start(t, Options{Limit: limit, LeastRoom: 0.25})
	add := func(h *hoard, n int64) {
		t.Helper()
		testcall.Must(t, h.Add(n))
	}
	add(a, 100*mib)
	add(b, 40*mib)
	if s := cacheNamed("a"); s.Calls > 0 {
		t.Errorf("asked while there is room: %+v", s)
	}
	add(b, 60*mib)
	room := func() int64 { return limit - p.looked() }
	testwait.Until(t, "room", func() bool { return room() >= limit/4+limit/8-4*mib })
	if is, other := a.Held(), b.Held(); is < 60*mib || other < 60*mib || is+other > limit/8*5 {
		t.Errorf("a holds %d MiB, and b %d", is/mib, other/mib)
	}
	for _, name := range []string{"a", "b"} {
		testwait.Until(t, "the calls to be counted", func() bool {
			s := cacheNamed(name)
			return s.Calls > 0 && s.Freed > s.Asked/2 && s.Freed <= 2*s.Asked && s.Held > 0 && !s.Slow
		})
	}

	// Ended, and the other one has to give all.
	b.end()
	b.end()
	was := b.Held()
	add(a, 90*mib)
	testwait.Until(t, "room again", func() bool { return room() >= limit/4+limit/8-4*mib })
	if b.Held() != was || cacheNamed("b").Calls != 0 {
		t.Errorf("asked after its end: %+v", cacheNamed("b"))
	}

	// After Stop none is asked, and after the next Start again.
	Stop()
	calls := cacheNamed("a").Calls
	add(a, 150*mib)
	if now := cacheNamed("a").Calls; now != calls {
		t.Errorf("asked %d times after Stop", now-calls)
	}
	start(t, Options{Limit: limit})
	testwait.Until(t, "a cache to give after Start", func() bool { return a.Held()+b.Held() < limit/8*7 })
}

// TestRequestAsksCaches requests more than is free, of a program of which a cache has nearly all, also when
// collections were futile. The cache gives what is missing, before the request is refused.
func TestRequestAsksCaches(t *testing.T) {
	setMemoryLimit(t, math.MaxInt64)
	const wanted = 20 * mib
	heap, err := cheap.NewHeap(cheap.HeapOptions{})
	testcall.Must(t, err)
	defer heap.Destroy()
	pool := numbers(t)
	for name, request := range map[string]func() error{
		"pool": func() error {
			room, err := pool.Reserve(t.Context(), wanted)
			if err == nil {
				room.Close()
			}
			return err
		},
		"heap": func() error {
			b, err := heap.TryMalloc(wanted)
			if err == nil {
				heap.Free(b)
			}
			return err
		},
	} {
		for _, futile := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/futile=%v", name, futile), func(t *testing.T) {
				h := newHoard(t, "h", nil)
				p := start(t, Options{Limit: 128 * mib, LeastRoom: 0.01})
				most(t, h.Account, mib)
				has := h.Held()
				if futile {
					p.mu.Lock()
					_, p.collector.futileEver = account.Process.Reclaimable()
					p.collector.futileUntil = time.Now().Add(time.Hour)
					p.is.Store(int32(refused))
					p.mu.Unlock()
				}
				testcall.Must(t, request())
				if given := has - h.Held(); given < wanted/2 || name == "pool" && given > 4*wanted { // blocks may be Go memory, and count twice
					t.Errorf("the cache has given %d MiB for a request of %d", given/mib, wanted/mib)
				}
				if p.wanted.Load() != 0 {
					t.Error("a request is still counted")
				}
			})
		}
	}
}

// TestForgottenIsFreed has a cache forget owners. A collection follows, and what it releases counts as given.
func TestForgottenIsFreed(t *testing.T) {
	setMemoryLimit(t, math.MaxInt64)
	owners, pool := map[int]*own.Number[int]{}, numbers(t)
	for i := range 40 {
		owners[i] = new(own.Number[int])
		testcall.Must(t, owners[i].Own(pool, 1, 4*mib))
	}
	end := OnPressure("owners", Share{}, func(want int64) (freed int64) {
		for i := range owners {
			if freed < want {
				delete(owners, i)
				freed += 4 * mib
			}
		}
		return freed
	})
	defer end()
	start(t, Options{Limit: 168 * mib})
	testwait.Until(t, "what was forgotten to be released", func() bool {
		s := cacheNamed("owners")
		return s.Freed > 0 && s.Held == -1
	})
}

// TestGarbageCounts has a map forget memory of Go, and fill again before the collection is over. What the collection has
// found counts, and no further one is skipped: a map that gave without one would be asked until it is empty. It rests as
// long as Options.MaxGCShare says.
func TestGarbageCounts(t *testing.T) {
	setMemoryLimit(t, math.MaxInt64)
	p, block := start(t, Options{Limit: 1024 * mib, MaxGCShare: 1e-6}), make([]byte, 32*mib)
	for doubts := range 2 {
		testwait.Until(t, "a collection that is not in vain", func() bool { // unless another one came first
			c := &cache{free: func(want int64) int64 { block = make([]byte, want); return want }, skips: 5, doubts: doubts}
			begin := time.Now()
			p.ask(c, 32*mib, 32*mib)
			runtime.KeepAlive(block)
			return c.skips == 0 && c.freed.Load() >= 16*mib && c.doubts == doubts+1 && c.rest.next.Sub(begin) >= backoffMost
		})
	}
}

// TestFreesNothing has a cache promise what it does not free, while others leave as much garbage; and one whose Held falls
// with each call. The verdict names both.
func TestFreesNothing(t *testing.T) {
	setMemoryLimit(t, math.MaxInt64)
	p, held := start(t, Options{Limit: 1024 * mib}), int64(1<<40)
	for name, promises := range map[string]int64{"garbage of others": 32 * mib, "Held": 0} {
		share := Share{}
		if promises == 0 {
			share.Held = func() int64 { held -= 32 * mib; return held }
		}
		t.Cleanup(OnPressure(name, share, func(int64) int64 { return promises }))
		all := allCaches()
		testwait.Until(t, "the verdict to know", func() bool {
			runtime.KeepAlive(make([]byte, 64*mib)) // garbage
			p.ask(all[len(all)-1], 32*mib, 32*mib)
			list := resident.Process.Read(resident.Options{}).Pace.Keepers
			return len(list) > 0 && list[len(list)-1].Name == name
		})
	}
}

// TestOthersWait has a cache beside a larger one of which a call runs. It is not asked while there is no hurry, and then
// for what ends the hurry.
func TestOthersWait(t *testing.T) {
	setMemoryLimit(t, math.MaxInt64)
	a := newAccount(t, AccountOptions{Manual: true})
	end := OnPressure("large", Share{Held: func() int64 { return 1 << 40 }}, func(int64) int64 { return 0 })
	t.Cleanup(end)
	t.Cleanup(OnPressure("small", Share{Held: func() int64 { return 1 << 30 }}, func(int64) int64 { return 0 }))
	large := allCaches()[0]
	large.held.Store(1 << 40)
	caches.mu.Lock()
	running := make(chan struct{})
	large.running = running
	caches.mu.Unlock()
	t.Cleanup(func() { close(running) }) // before end, which waits for it
	p := start(t, Options{Limit: 1024 * mib, LeastRoom: 0.5})
	press := func(runs bool) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.pressing, p.hurry = runs, make(chan struct{}, 1)
	}
	press(true) // here
	testcall.Must(t, a.Add(530*mib))
	testwait.Until(t, "press to wait for the larger cache", func() bool { // unless a collection is under way
		return p.pressOnce(make(chan struct{}))
	})
	caches.mu.Lock()
	if c := caches.all[1]; c.calls.Load() > 0 || c.vain() {
		t.Errorf("%d calls of the other one; in vain: %v", c.calls.Load(), c.vain())
	}
	caches.mu.Unlock()
	press(false)
	testcall.Must(t, a.Add(300*mib))
	testwait.Until(t, "a call", func() bool { p.looked(); return cacheNamed("small").Asked > 0 })
	if s := cacheNamed("small"); s.Asked/s.Calls > 150*mib {
		t.Errorf("asked for more than ends the hurry: %+v", s)
	}
}

// TestHope has requests wait for a cache that may give something soon.
func TestHope(t *testing.T) {
	t.Cleanup(OnPressure("cache", Share{}, func(int64) int64 { return 0 }))
	c := allCaches()[0]
	running := make(chan struct{})
	for _, row := range []struct {
		running chan struct{}
		least   int64
		slow    bool
		want    bool
	}{
		{nil, noBound, false, true}, {nil, 1, false, false}, {running, 1, false, true}, {running, noBound, true, false}, {nil, noBound, true, false},
	} {
		c.running, c.least = row.running, row.least
		if c.slow.Store(row.slow); hope() != row.want {
			t.Errorf("%+v: hope is %v", row, !row.want)
		}
	}
	c.running = nil
}

// TestCacheGivesNothing has a cache that never gives. The pause between two calls doubles, but more need ends it, and
// the verdict names the cache.
func TestCacheGivesNothing(t *testing.T) {
	setMemoryLimit(t, math.MaxInt64)
	h := newHoard(t, "miser", func(want int64) int64 { return want })
	p := start(t, Options{Limit: 1024 * mib, LeastRoom: 0.5})
	p.mu.Lock()
	p.shortage.deep = noBound
	p.mu.Unlock()
	testcall.Must(t, h.Add(520*mib))
	testwait.Until(t, "the verdict to know", func() bool {
		list := resident.Process.Read(resident.Options{}).Pace.Keepers
		return len(list) == 1 && list[0].Name == "miser" && list[0].Misses >= missesFault && list[0].Held > 0
	})
	c := allCaches()[0]
	testwait.Until(t, "the last call to end", func() bool {
		caches.mu.Lock()
		defer caches.mu.Unlock()
		if c.running != nil {
			return false
		}
		if c.by.Load() != 0 {
			t.Error("a goroutine is noted that has ended")
		}
		if want := min(backoffLeast<<(c.misses-1), backoffMost); c.rest.pause != want {
			t.Errorf("the pause after %d calls in vain is %v, want %v", c.misses, c.rest.pause, want)
		}
		if want := 1<<(bits.Len64(uint64(c.misses+1))-1) - 1; c.skips != want { // after collections for calls 1, 3, 7, 15
			t.Errorf("after %d calls in vain %d collections are skipped, want %d", c.misses, c.skips, want)
		}
		c.rest.next = time.Now().Add(time.Hour)
		return true
	})
	calls := c.calls.Load()
	p.mu.Lock()
	if p.shortage.deep == noBound {
		t.Error("what came before the calls matters as much as before")
	}
	p.mu.Unlock()
	testcall.Must(t, h.Add(200*mib))
	testwait.Until(t, "a call for more", func() bool { p.looked(); return c.calls.Load() > calls })
	if s := cacheNamed("miser"); s.Freed > s.Asked/8 {
		t.Errorf("counted as freed: %+v", s)
	}
}

// TestEndAndStopWhileCalled ends a registration, and stops pacing, while the function runs, and within it.
func TestEndAndStopWhileCalled(t *testing.T) {
	setMemoryLimit(t, math.MaxInt64)
	called, goOn := make(chan bool, 100), make(chan bool, 1)
	h := newHoard(t, "h", func(want int64) int64 { called <- true; <-goOn; return 0 })
	start(t, Options{Limit: 1024 * mib, LeastRoom: 0.5})
	h.Add(640 * mib)
	<-called
	Stop() // does not wait for the function
	var ended atomic.Bool
	done := make(chan bool)
	go func() {
		h.end()
		ended.Store(true)
		close(done)
	}()
	defer func() { goOn <- true }() // also if the test fails
	testwait.Until(t, "end to be called", func() bool { return len(allCaches()) == 0 })
	if ended.Load() {
		t.Error("end has returned while the function runs")
	}
	goOn <- true
	<-done

	within := make(chan error)
	var end func()
	end = OnPressure("within", Share{}, func(int64) int64 {
		Stop()
		end()
		within <- Start(Options{})
		runtime.Goexit()
		return 0
	})
	start(t, Options{Limit: 1024 * mib, LeastRoom: 0.5})
	testcall.Want(t, <-within)
}

// TestFreeMayAllocate has the function of a cache request what there is no room for. That is refused at once, and does
// not wait for the function.
func TestFreeMayAllocate(t *testing.T) {
	setMemoryLimit(t, math.MaxInt64)
	bear(t, func(p *patience) { p.limit = time.Hour })
	pool, got := numbers(t), make(chan error, 100)
	h := newHoard(t, "h", func(want int64) int64 {
		room, err := pool.Reserve(t.Context(), 500*mib)
		if err == nil {
			room.Close()
		}
		got <- err
		return 0
	})
	start(t, Options{Limit: 1024 * mib, LeastRoom: 0.5})
	h.Add(640 * mib)
	var limit *LimitError
	if err := <-got; !errors.As(err, &limit) {
		t.Errorf("the request: %v", err)
	}
}

// TestSlowCache has the function of a cache wait for a goroutine that waits for room. Both stacks are on stderr.
func TestSlowCache(t *testing.T) {
	testchild.Main(t, func() {
		pool := own.NewPool(own.Options{Numbers: true, Release: func(_ any, _ []uintptr) error { return nil }})
		h := NewAccount(AccountOptions{Manual: true})
		refused := make(chan error)
		OnPressure("entangled", Share{Held: h.Held}, func(want int64) int64 { return waitsForRequest(refused) })
		longest.limit = time.Hour
		if err := Start(Options{Limit: 128 * mib, LeastRoom: 0.1}); err != nil {
			panic(err)
		}
		h.Add(100 * mib)
		go func() {
			_, err := pool.Reserve(t.Context(), 60*mib)
			refused <- err
		}()
		slow := func() bool { return ReadStats().Caches[0].Slow }
		testwait.Until(t, "the call to be slow, and the verdict to know", func() bool {
			list := resident.Process.Read(resident.Options{}).Pace.Keepers
			return slow() && len(list) == 1 && list[0].Slow
		})
		allCaches()[0].saySlow() // not again
		refused <- nil
		testwait.Until(t, "the call to end", func() bool { return !slow() })
	})
	out, err := testchild.Command(t).CombinedOutput()
	for _, want := range []string{`OnPressure("entangled")`, "pace.waitsForRequest", "own.(*Pool).Reserve"} {
		if err != nil || strings.Count(string(out), want) != 1 {
			t.Errorf("%v; the output has not %q once:\n%s", err, want, out)
		}
	}
}

//go:noinline
func waitsForRequest(refused chan error) int64 {
	<-refused
	return 0
}

// TestPanicInFree ends the program.
func TestPanicInFree(t *testing.T) {
	testchild.Main(t, func() {
		h := NewAccount(AccountOptions{Manual: true})
		OnPressure("h", Share{Held: h.Held}, func(want int64) int64 { panic("of the program") })
		if err := Start(Options{Limit: 128 * mib, LeastRoom: 0.5}); err != nil {
			panic(err)
		}
		h.Add(80 * mib)
		select {}
	})
	out, err := testchild.Command(t).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "panic: of the program") {
		t.Errorf("%v: %s", err, out)
	}
}

// TestPick picks among caches that are not all ready, or say nothing.
func TestPick(t *testing.T) {
	for _, row := range []struct {
		name  string
		need  int64
		all   []stake
		which int
		want  int64
	}{
		{"none", 100, nil, -1, 0},
		{"no need", 0, []stake{{1, 0, 50, true, false}}, -1, 0},
		{"one", 100, []stake{{1, 0, 500, true, false}}, 0, 100},
		{"one with less", 100, []stake{{1, 0, 50, true, false}}, 0, 50},
		{"at its floor", 100, []stake{{1, 50, 50, true, false}, {1, 60, 50, true, false}}, -1, 0},
		{"the larger one, down to the smaller one", 100, []stake{{1, 0, 200, true, false}, {1, 0, 260, true, false}}, 1, 60},
		{"equal ones, half of it first", 100, []stake{{1, 0, 200, true, false}, {1, 0, 200, true, false}}, 0, 50},
		{"by weight", 100, []stake{{2, 0, 300, true, false}, {1, 0, 200, true, false}}, 1, 50},
		{"beyond floors", 100, []stake{{1, 150, 300, true, false}, {1, 0, 200, true, false}}, 1, 50},
		{"one that has far more", 100, []stake{{1, 250, 300, true, false}, {1, 0, 400, true, false}}, 1, 175},
		{"down to its floor", 200, []stake{{1, 250, 300, true, false}}, 0, 50},
		{"the largest is not ready", 100, []stake{{1, 0, 900, false, false}, {1, 0, 200, true, false}}, 1, 100},
		{"one says nothing", 100, []stake{{1, 0, 900, true, false}, {3, 0, -1, true, false}}, 1, 75},
		{"a larger one rests, and the other ends the hurry", 100, []stake{{1, 0, 900, false, true}, {1, 0, 200, true, false}}, 1, 30},
		{"also if it has far more than the next one", 300, []stake{{1, 0, 1000, false, true}, {1, 0, 500, true, false}, {1, 0, 100, true, false}}, 1, 30},
		{"a smaller one rests", 100, []stake{{1, 0, 100, false, true}, {1, 0, 200, true, false}}, 1, 100},
		{"none is ready", 100, []stake{{1, 0, 900, false, false}}, -1, 0},
		{"the largest weights", 100, []stake{{math.MaxInt64, 0, -1, true, false}, {math.MaxInt64, 0, -1, true, false}}, 0, 50},
	} {
		if which, want := pick(row.need, 30, row.all); which != row.which || want != row.want {
			t.Errorf("%s: cache %d, %d bytes; want %d, %d", row.name, which, want, row.which, row.want)
		}
	}
}

// TestShortage looks with less and less room, and then with more.
func TestShortage(t *testing.T) {
	const least = 0.1
	var h shortage
	for _, row := range []struct {
		room, wanted int64
		state        state
		want         shortage
	}{
		{noBound, 0, idle, shortage{}},
		{500, 0, idle, shortage{}},
		{100, 0, idle, shortage{}},
		{100, 130, idle, shortage{false, 50, 30, 0}},
		{100, 90, idle, shortage{}},
		{90, 0, idle, shortage{true, 60, 0, 10}},
		{90, 0, collecting, shortage{true, 0, 0, 10}},
		{40, 0, collecting, shortage{true, 110, 15, 60}},
		{-20, 0, idle, shortage{true, 180, 70, 130}},
		{-20, 300, idle, shortage{true, 300, 300, 170}},
		{120, 0, idle, shortage{true, 80, 0, 170}},
		{200, 0, idle, shortage{false, 0, 0, 170}},
		{160, 0, idle, shortage{false, 0, 0, 170}},
		{140, 0, idle, shortage{true, 60, 0, 170}}, // earlier than before
	} {
		v := view{limit: 1000, wanted: row.wanted, state: row.state}
		if h = h.find(v, space{room: row.room}, least); h != row.want {
			t.Errorf("room %d, wanted %d: %+v, want %+v", row.room, row.wanted, h, row.want)
		}
	}
	for range 1000 { // in a shortage that does not end
		h.called()
		h = h.find(view{limit: 1000}, space{room: 90}, least)
	}
	if h != (shortage{true, 60, 0, 31}) {
		t.Errorf("after 1000 calls: %+v", h)
	}
	for room, want := range map[int64]shortage{690: {true, 160, 0, 10}, 850: {}} { // of 1,000 at most 950 are free
		if h := (shortage{short: true}).find(view{limit: 1000}, space{room: room}, 0.7); h != want {
			t.Errorf("room %d, of which 0.7 is to be free: %+v, want %+v", room, h, want)
		}
		if h := (shortage{short: true, deep: 1000}).find(view{limit: 1000}, space{room: 900}, 0.7); h.short {
			t.Errorf("900 of 1,000 are free, and more cannot be: %+v", h)
		}
	}
}

// TestOthersGive has a cache beside one that has most and gives nothing, or beside one that came first and says nothing.
// It is asked while there is no hurry.
func TestOthersGive(t *testing.T) {
	setMemoryLimit(t, math.MaxInt64)
	for _, row := range []struct {
		name  string
		held  func() int64
		gives bool
	}{
		{"has most", func() int64 { return math.MaxInt64 }, false},
		{"says nothing", nil, false},
		{"says nothing, and gives", nil, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			first, other := newAccount(t, AccountOptions{Manual: true}), newAccount(t, AccountOptions{Manual: true})
			share, free := Share{Weight: math.MaxInt, Held: row.held}, func(want int64) int64 { return math.MinInt64 }
			if row.gives {
				free = (&hoard{Account: first}).give
			}
			t.Cleanup(OnPressure("first", share, free))
			if row.held != nil {
				share.Held = other.Held
			}
			t.Cleanup(OnPressure("other", share, (&hoard{Account: other}).give))
			p := start(t, Options{Limit: 1024 * mib, LeastRoom: 0.5})
			for _, a := range []*Account{first, other} {
				testcall.Must(t, a.Add(300*mib))
			}
			testwait.Until(t, "the other one to give", func() bool { p.looked(); return cacheNamed("other").Freed > 0 })
		})
	}
}

// TestHurry has press wait for a cache that rests. More need ends its rest, if the last call was in vain, and else,
// where it is urgent, another cache is asked.
func TestHurry(t *testing.T) {
	setMemoryLimit(t, math.MaxInt64)
	for _, row := range []struct {
		asked        string
		first, later int64 // MiB that come
		least        int64
	}{
		{"resting", 530, 100, 350 * mib},
		{"other", 700, 80, noBound},
	} {
		t.Run(row.asked, func(t *testing.T) {
			if row.asked == "other" {
				t.Cleanup(OnPressure("other", Share{Held: func() int64 { return 1 << 30 }}, func(int64) int64 { return 0 }))
			}
			t.Cleanup(OnPressure("resting", Share{Held: func() int64 { return 1 << 40 }}, func(int64) int64 { return 0 }))
			all, a := allCaches(), newAccount(t, AccountOptions{Manual: true})
			caches.mu.Lock()
			c := all[len(all)-1]
			c.rest.next, c.least = time.Now().Add(time.Hour), row.least
			caches.mu.Unlock()
			p := start(t, Options{Limit: 1024 * mib, LeastRoom: 0.5})
			testcall.Must(t, a.Add(row.first*mib))
			testwait.Until(t, "press to look", func() bool {
				p.looked()
				p.mu.Lock()
				defer p.mu.Unlock()
				return p.pressed > 0
			})
			testcall.Must(t, a.Add(row.later*mib))
			testwait.Until(t, "a call", func() bool { p.looked(); return cacheNamed(row.asked).Calls > 0 })
		})
	}
}

// TestSmallCache has a cache with little give that, all the time, while others have the memory. It is asked less and less
// often, and the verdict does not name it. One that says nothing, and of which little is wanted, is not such a cache.
func TestSmallCache(t *testing.T) {
	setMemoryLimit(t, math.MaxInt64)
	other, gave := newAccount(t, AccountOptions{Manual: true}), false
	held := func() int64 {
		if gave {
			gave = false
			return 0
		}
		return 1000
	}
	end := OnPressure("small", Share{Held: held}, func(int64) int64 { gave = true; return 1000 })
	c := allCaches()[0]
	p := start(t, Options{Limit: 1024 * mib, LeastRoom: 0.5})
	testcall.Must(t, other.Add(600*mib))
	testwait.Until(t, "a long pause", func() bool {
		p.looked()
		caches.mu.Lock()
		defer caches.mu.Unlock()
		if c.misses > 0 {
			t.Fatalf("%d misses", c.misses)
		}
		return c.rest.pause >= 4*backoffLeast
	})
	end()

	c = &cache{free: (&hoard{Account: other}).give}
	c.held.Store(-1)
	if p.ask(c, 100*mib, 1<<40); c.vain() || other.Held() > 500*mib {
		t.Error("what a cache has given that says nothing was in vain")
	}
	c = &cache{free: func(int64) int64 { return 0 }}
	testwait.Until(t, "nothing, of 4 bytes, to be in vain", func() bool { p.ask(c, 4, 4); return c.vain() })
}

// TestRefusedBesideCaches requests memory in the state refused. It does not wait for a cache that has nothing, and for
// one that promises more and more as long as for a collection.
func TestRefusedBesideCaches(t *testing.T) {
	setMemoryLimit(t, math.MaxInt64)
	pool := numbers(t)
	var rest atomic.Int64
	rest.Store(1 << 60)
	for name, held := range map[string]func() int64{
		"has nothing": func() int64 { return 0 }, "lies": func() int64 { return rest.Add(-1 << 30) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Cleanup(OnPressure("cache", Share{Held: held}, func(int64) int64 { return 0 }))
			p := start(t, Options{Limit: 128 * mib})
			most(t, newAccount(t, AccountOptions{Manual: true}), mib)
			testwait.Until(t, "a request to be refused in that state", func() bool {
				p.mu.Lock()
				_, p.collector.futileEver = account.Process.Reclaimable()
				p.collector.futileUntil = time.Now().Add(time.Hour)
				p.is.Store(int32(refused))
				p.mu.Unlock()
				if _, err := pool.Reserve(t.Context(), 20*mib); !errors.Is(err, cheap.ErrLimit) {
					t.Error(err)
				}
				return p.state() == refused // a collection ends it
			})
			if name == "lies" {
				return
			}
			testwait.Until(t, "a long pause", func() bool {
				caches.mu.Lock()
				defer caches.mu.Unlock()
				return caches.all[0].rest.pause >= 4*backoffLeast
			})
		})
	}
}

// TestNoCallAfterwards presses after Stop, and calls a cache whose registration has ended meanwhile.
func TestNoCallAfterwards(t *testing.T) {
	called := func() int64 { t.Error("called"); return 0 }
	end := OnPressure("cache", Share{Held: called}, func(int64) int64 { return called() })
	p := start(t, Options{})
	Stop()
	p.tasks.Add(1)
	p.press(nil)
	all := allCaches()
	c := all[0]
	if end(); all[0] != c {
		t.Error("the list that others have has changed")
	}
	c.call(nil, func() { called() })
	over := make(chan struct{})
	close(over)
	await(over, nil, time.Hour)
}

// TestIdleIsGivenBack has a cache free blocks of a heap. What the heap does not use then goes back to the system.
// In a child, because with cheap_gomem its memory stays with the runtime.
func TestIdleIsGivenBack(t *testing.T) {
	testchild.Main(t, func() {
		if err := Start(Options{Limit: 1024 * mib}); err != nil {
			panic(err)
		}
		blocks := make([]unsafe.Pointer, 16)
		for i := range blocks {
			blocks[i] = cheap.Malloc(mib)
		}
		current.Load().ask(&cache{free: func(int64) int64 {
			for _, b := range blocks {
				cheap.Free(b)
			}
			return 16 * mib
		}}, mib, mib)
		if n := span.Idle(); n >= leastFreed {
			panic(fmt.Sprintf("%d MiB are idle", n/mib))
		}
	})
	if out, err := testchild.Command(t).CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

// TestHeldIsRead reads what a cache holds, which is not negative, and not again too soon.
func TestHeldIsRead(t *testing.T) {
	calls := 0
	t.Cleanup(OnPressure("cache", Share{Held: func() int64 { calls++; return -5 }}, func(int64) int64 { return 0 }))
	p := start(t, Options{Limit: 1024 * mib})
	over := make(chan struct{})
	p.pressOnce(over)
	if s := cacheNamed("cache"); s.Held != 0 || calls != 1 {
		t.Errorf("%d calls: %+v", calls, s)
	}
	p.readHeld = time.Now().Add(time.Hour)
	if p.pressOnce(over); calls != 1 {
		t.Error("called too soon")
	}
}

// TestFreedSince has an owner take memory while a cache frees nothing, also where a limit is about what the kernel
// counts: half of what owners declare.
func TestFreedSince(t *testing.T) {
	setMemoryLimit(t, math.MaxInt64)
	pool, p := numbers(t), start(t, Options{Limit: 1024 * mib})
	for _, metered := range []bool{false, true} {
		before := p.taken()
		var n own.Number[int]
		testcall.Must(t, n.Own(pool, 1, 200*mib))
		want := int64(0)
		if metered {
			p.metered.Store(true)
			p.mu.Lock()
			p.gauge.scale = 0.5
			p.mu.Unlock()
			want = -100 * mib
		}
		if freed := p.freedSince(before); abs(freed-want) > 50*mib {
			t.Errorf("metered %v: %d MiB became free, want %d", metered, freed/mib, want/mib)
		}
		n.Close()
	}
}

// TestCollectWhereScarce collects for a cache where there is no room: a quarter of the time is for collections then,
// whatever MaxGCShare is.
func TestCollectWhereScarce(t *testing.T) {
	p := start(t, Options{MaxGCShare: 1e-6})
	testwait.Until(t, "a shorter rest", func() bool {
		p.scarce.Store(true) // a look says that it is not
		rest, _ := p.collectFreed()
		return rest < backoffMost
	})
}

// TestOthersFree frees more beside a cache than that gives. Stats have no more than it was asked for.
func TestOthersFree(t *testing.T) {
	setMemoryLimit(t, math.MaxInt64)
	other := newAccount(t, AccountOptions{Manual: true})
	h := newHoard(t, "h", func(want int64) int64 { other.Remove(other.Held()); return 1 })
	start(t, Options{Limit: 4096 * mib})
	testcall.Must(t, h.Add(20*mib))
	testcall.Must(t, other.Add(3720*mib))
	testwait.Until(t, "a call to be counted", func() bool { return cacheNamed("h").Freed > 0 })
	if s := cacheNamed("h"); s.Freed > s.Asked {
		t.Errorf("%+v", s)
	}
}

// TestFadeWithCaches ends a shortage. What malloc grew by fades if there are caches.
func TestFadeWithCaches(t *testing.T) {
	p := new(pacer)
	for _, want := range []int64{64, 63} {
		p.gauge.excess, p.shortage = 64, shortage{short: true}
		if p.askCaches(shortage{}); p.gauge.excess != want {
			t.Errorf("%d after a shortage, want %d", p.gauge.excess, want)
		}
		t.Cleanup(OnPressure("cache", Share{}, func(int64) int64 { return 0 }))
	}
}

func TestOnPressureMisuse(t *testing.T) {
	free := func(int64) int64 { return 0 }
	mustMisuse(t, "pace.OnPressure: the function", func() { OnPressure("x", Share{}, nil) })
	mustMisuse(t, "pace.OnPressure: the share", func() { OnPressure("x", Share{Weight: -1}, free) })
	mustMisuse(t, "pace.OnPressure: the share", func() { OnPressure("x", Share{Floor: -1}, free) })
	mustMisuse(t, `pace.OnPressure: "x" has a floor`, func() { OnPressure("x", Share{Floor: 1}, free) })
	mustMisuse(t, "pace.Start: Options.LeastRoom", func() { Start(Options{LeastRoom: 1.5}) })
}
