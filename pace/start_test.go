package pace

import (
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"testing"

	"github.com/cheapgo/cheap/internal/test/testcall"
	"github.com/cheapgo/cheap/internal/test/testwait"
	"github.com/cheapgo/cheap/own"
)

// setMemoryLimit is debug.SetMemoryLimit for the time of a test.
func setMemoryLimit(t *testing.T, bytes int64) {
	was := debug.SetMemoryLimit(bytes)
	t.Cleanup(func() { debug.SetMemoryLimit(was) })
}

func TestStartTwice(t *testing.T) {
	start(t, Options{})
	if err := Start(Options{}); err != ErrStarted {
		t.Errorf("the second Start: %v", err)
	}
	Stop()
	Stop() // does nothing
	start(t, Options{Limit: 1 << 40})
	if st := ReadStats(); st.Limit != 1<<40 {
		t.Errorf("after Stop and Start: %+v", st)
	}
}

func TestStartOptions(t *testing.T) {
	for _, row := range []struct {
		o    Options
		says string
	}{
		{Options{Limit: -1}, "pace.Start: Options.Limit is negative (-1)"},
		{Options{MaxGCShare: -0.1}, "pace.Start: Options.MaxGCShare is -0.1"},
		{Options{MaxGCShare: 1.1}, "pace.Start: Options.MaxGCShare is 1.1"},
		{Options{MaxGCShare: math.NaN()}, "pace.Start: Options.MaxGCShare is NaN"},
		{Options{MaxGCShare: math.Inf(1)}, "pace.Start: Options.MaxGCShare is +Inf"},
	} {
		mustMisuse(t, row.says, func() { Start(row.o) })
		if current.Load() != nil {
			t.Errorf("Start(%+v) has started", row.o)
			Stop()
		}
	}
	p := start(t, Options{})
	if p.maxShare != defaultMaxGCShare {
		t.Errorf("MaxGCShare is %v", p.maxShare)
	}
}

// TestStopPutsBack looks at the runtime's limit before, while and after.
func TestStopPutsBack(t *testing.T) {
	for _, before := range []int64{math.MaxInt64, 3 << 30} {
		setMemoryLimit(t, before)
		limit := func() int64 { return debug.SetMemoryLimit(-1) }
		testcall.Must(t, Start(Options{}))
		if limit() != before {
			t.Errorf("%d: without a limit the runtime's is %d", before, limit())
		}
		SetLimit(1 << 30)
		if is := limit(); is > 1<<30 || is < 512*mib || is != ReadStats().GoLimit {
			t.Errorf("%d: the runtime's limit is %d, %+v", before, is, ReadStats())
		}
		if was := SetLimit(0); was != 1<<30 || limit() != before || ReadStats().GoLimit != 0 {
			t.Errorf("%d: SetLimit(0) = %d, and the runtime's limit is %d", before, was, limit())
		}
		SetLimit(2 << 30)
		if limit() == before {
			t.Errorf("%d: the runtime's limit is as before", before)
		}
		if Stop(); limit() != before {
			t.Errorf("%d: after Stop the runtime's limit is %d", before, limit())
		}
	}
}

// TestRuntimeLimitFollows takes bytes outside the Go heap, whose limit falls by
// as many, but never below what it needs.
func TestRuntimeLimitFollows(t *testing.T) {
	setMemoryLimit(t, math.MaxInt64)
	start(t, Options{Limit: 1 << 30})
	a := newAccount(t, AccountOptions{Manual: true})
	at := func(what string, want int64) {
		t.Helper()
		if is := debug.SetMemoryLimit(-1); is > want+32*mib || is < want-32*mib || is != ReadStats().GoLimit {
			t.Errorf("%s: the runtime's limit is %d MiB, want about %d; %+v", what, is/mib, want/mib, ReadStats())
		}
	}
	at("at first", 1<<30)
	for range 6 {
		testcall.Must(t, a.Add(100*mib))
	}
	at("with 600 MiB outside", 1<<30-600*mib)
	for a.Add(10*mib) == nil {
	}
	var r reader
	if is, needs := debug.SetMemoryLimit(-1), r.read().live; is < needs {
		t.Errorf("the runtime's limit is %d, and %d bytes are reachable", is, needs)
	}
	a.Remove(a.Held() - 100*mib)
	runtime.GC() // the pacer checks after it
	testwait.Until(t, "the limit to rise", func() bool { return debug.SetMemoryLimit(-1) > 1<<30-164*mib })
}

// TestRuntimeLimitIsNotRaised has a limit of the runtime that is smaller than what package pace would set,
// from before Start or SetLimit. It stays.
func TestRuntimeLimitIsNotRaised(t *testing.T) {
	const own = 300 * mib
	setMemoryLimit(t, own)
	start(t, Options{Limit: 1 << 30})
	a := newAccount(t, AccountOptions{Manual: true})
	must := func(when string, low, high int64) {
		t.Helper()
		if is := debug.SetMemoryLimit(-1); is < low || is > high || is != ReadStats().GoLimit {
			t.Errorf("%s the runtime's limit is %d MiB; %+v", when, is/mib, ReadStats())
		}
	}
	must("at first", own, own)
	testcall.Must(t, a.Add(100*mib))
	must("with 100 MiB outside", own, own)
	testcall.Must(t, a.Add(700*mib))
	must("with 800 MiB outside", mib, own-50*mib)
	a.Remove(800 * mib)
	SetLimit(2 << 30)
	must("with 2 GiB", own, own)
	SetLimit(0)
	debug.SetMemoryLimit(own / 2)
	SetLimit(1 << 30)
	must("with another limit of the program", own/2, own/2)
	if Stop(); debug.SetMemoryLimit(-1) != own/2 {
		t.Errorf("after Stop it is %d", debug.SetMemoryLimit(-1))
	}
}

// TestProgramChangesLimit has the program set the runtime's limit itself. Stop restores that, whether anything has
// noticed it before, and also if SetLimit has taken the limit back.
func TestProgramChangesLimit(t *testing.T) {
	const own = 2 << 30
	for _, then := range []string{"Stop", "Add", "SetLimit"} {
		setMemoryLimit(t, math.MaxInt64)
		start(t, Options{Limit: 1 << 30})
		a := newAccount(t, AccountOptions{Manual: true})
		debug.SetMemoryLimit(own)
		if then != "Stop" {
			testcall.Must(t, a.Add(250*mib))
			if is, st := debug.SetMemoryLimit(-1), ReadStats(); is != own || st.GoLimit != 0 || st.Limit != 1<<30 {
				t.Errorf("%s: the runtime's limit is %d; %+v", then, is, st)
			}
			if err := a.Add(1 << 30); err == nil {
				t.Error("a request that exceeds the limit was not refused, after the program has changed the runtime's")
			}
		}
		if then == "SetLimit" {
			if SetLimit(512 * mib); debug.SetMemoryLimit(-1) > 512*mib {
				t.Errorf("after SetLimit the runtime's limit is %d", debug.SetMemoryLimit(-1))
			}
		}
		if Stop(); debug.SetMemoryLimit(-1) != own {
			t.Errorf("%s: after Stop the runtime's limit is %d", then, debug.SetMemoryLimit(-1))
		}
		a.Remove(a.Held())
	}
}

// TestStopWaits stops while a collection is under way. It has ended when Stop returns.
func TestStopWaits(t *testing.T) {
	a := newAccount(t, AccountOptions{})
	for range 20 {
		p := start(t, Options{})
		for begun, _ := p.counts(); begun == 0; begun, _ = p.counts() {
			testcall.Must(t, a.Add(mib))
		}
		Stop()
		if begun, _ := p.counts(); ReadStats().Cycles != begun {
			t.Fatalf("after Stop %d collections have ended, of %d", ReadStats().Cycles, begun)
		}
		a.Remove(a.Held())
	}
}

func TestSetLimit(t *testing.T) {
	if was := SetLimit(5); was != 0 || ReadStats().Limit == 5 {
		t.Errorf("before Start: SetLimit = %d", was)
	}
	start(t, Options{Limit: 1 << 40})
	for _, row := range [][2]int64{{1 << 41, 1 << 40}, {0, 1 << 41}, {1 << 42, 0}} {
		if was := SetLimit(row[0]); was != row[1] || ReadStats().Limit != row[0] {
			t.Errorf("SetLimit(%d) = %d, want %d", row[0], was, row[1])
		}
	}
	mustMisuse(t, "pace.SetLimit: the limit -1", func() { SetLimit(-1) })
	if limit := ReadStats().Limit; limit != 1<<42 {
		t.Errorf("the limit is %d", limit)
	}
}

// TestEnvironment takes the limit from the runtime's, which GOMEMLIMIT sets.
func TestEnvironment(t *testing.T) {
	setMemoryLimit(t, 700*mib) // no cgroup in which tests run has less
	start(t, Options{LimitFromEnvironment: true})
	if limit := ReadStats().Limit; limit != 700*mib {
		t.Errorf("the limit is %d", limit)
	}
	Stop()
	start(t, Options{LimitFromEnvironment: true, Limit: 1 << 30})
	if limit := ReadStats().Limit; limit != 1<<30 {
		t.Errorf("the limit is %d, and was given", limit)
	}
}

// TestCollectorOff has GOGC=off, with which pacing starts no collection.
func TestCollectorOff(t *testing.T) {
	was := debug.SetGCPercent(-1)
	defer debug.SetGCPercent(was)
	if err := Start(Options{}); err != ErrCollectorOff {
		t.Errorf("with GOGC=off and no limit: %v", err)
	}
	if current.Load() != nil {
		t.Error("it has started")
	}
	debug.SetGCPercent(100)
	p := start(t, Options{})
	debug.SetGCPercent(-1) // when the program is on its way
	a := newAccount(t, AccountOptions{})
	add := func() {
		for range 100 {
			testcall.Must(t, a.Add(10*mib))
		}
	}
	add()
	settled(t, p)
	if st := ReadStats(); st.Cycles != 0 || st.Waits != 0 {
		t.Errorf("GOGC=off: %+v", st)
	}
	debug.SetGCPercent(100)
	add()
	testwait.Until(t, "a collection, with GOGC=100", func() bool { return ReadStats().Cycles > 0 })
	settled(t, p)
}

// TestGOGCIsRead grows by the same bytes with different GOGC.
func TestGOGCIsRead(t *testing.T) {
	was := debug.SetGCPercent(100)
	defer debug.SetGCPercent(was)
	cycles := func(gogc int) int64 {
		debug.SetGCPercent(gogc)
		p := start(t, Options{MaxGCShare: 1})
		defer Stop()
		a := NewAccount(AccountOptions{})
		defer a.Close()
		for range 4000 {
			testcall.Must(t, a.Add(mib))
			settled(t, p)
			a.Remove(mib - mib/2) // half of it lives
		}
		return ReadStats().Cycles
	}
	if few, many := cycles(400), cycles(50); few == 0 || many <= few {
		t.Errorf("%d collections with GOGC=400, %d with GOGC=50", few, many)
	}
}

// TestOnlyGo has a program run that has nothing outside the Go heap. Pace does nothing
// there at all: nothing has it look, and it waits for no collection. How many
// collections the runtime starts is another matter, and depends on what else runs.
func TestOnlyGo(t *testing.T) {
	setMemoryLimit(t, math.MaxInt64)
	testwait.Until(t, "what tests before have forgotten to be released", func() bool {
		runtime.GC()
		own.Flush(t.Context())
		return auto() < floor/2
	})
	p := start(t, Options{})
	if p.awaiting.Load() {
		t.Error("it waits for a collection from the beginning")
	}
	var r reader
	before := r.read()
	after := before
	for after.cycles == before.cycles { // until the runtime has collected
		onlyGo(500)
		after = r.read()
	}
	if after.gogc != before.gogc || debug.SetMemoryLimit(-1) != math.MaxInt64 {
		t.Errorf("GOGC is %d, before %d; the memory limit is %d", after.gogc, before.gogc, debug.SetMemoryLimit(-1))
	}
	st := ReadStats()
	if st.Cycles != 0 || st.Yields != 0 || st.Waits != 0 || st.CPUTime != 0 || p.awaiting.Load() || p.state() != idle {
		t.Errorf("in state %s, waiting for a collection: %v; %+v", stateNames[p.state()], p.awaiting.Load(), st)
	}
}

// TestReadStats keeps the counters after Stop until the next Start.
func TestReadStats(t *testing.T) {
	p := start(t, Options{})
	a := newAccount(t, AccountOptions{})
	testcall.Must(t, a.Add(100*mib))
	paced(t, p, a)
	st := ReadStats()
	cycles := st.Cycles
	if st.Reclaimable < 100*mib || st.Held < 100*mib || st.Released != 0 || st.CPUTime <= 0 {
		t.Errorf("%+v", st)
	}
	Stop()
	if st := ReadStats(); st.Cycles < cycles {
		t.Errorf("after Stop: %+v", st)
	}
	start(t, Options{})
	if st := ReadStats(); st.Cycles != 0 {
		t.Errorf("after the next Start: %+v", st)
	}
}

// TestHammerStart starts and stops while others take memory.
func TestHammerStart(t *testing.T) {
	setMemoryLimit(t, math.MaxInt64)
	a := newAccount(t, AccountOptions{Name: "hammer"})
	before := auto()
	stop := testwait.Loop(4, func() {
		if a.Add(5*mib) == nil {
			ReadStats()
			Accounts()
			a.Remove(5 * mib)
		}
	})
	for i := range 24 {
		testcall.Want(t, Start(Options{Limit: int64(i%3) * 300 * mib}))
		SetLimit(int64(i%2) * 400 * mib)
		Stop()
	}
	stop()
	if a.Held() != 0 || auto() != before {
		t.Errorf("%d bytes held, %d more automatically", a.Held(), auto()-before)
	}
	if is := debug.SetMemoryLimit(-1); is != math.MaxInt64 {
		t.Errorf("the runtime's limit is %d", is)
	}
}

// TestUnread starts where cgroups cannot be read.
func TestUnread(t *testing.T) {
	was := openCgroup
	t.Cleanup(func() { openCgroup = was })
	openCgroup = func(*atomic.Int64) (usage, error) { return nil, os.ErrNotExist }
	start(t, Options{LimitFromEnvironment: true})
	if s := ReadStats(); s.Unread != os.ErrNotExist {
		t.Errorf("Stats.Unread is %v", s.Unread)
	}
	Stop()
	start(t, Options{Limit: 1 << 40})
	if s := ReadStats(); s.Unread != nil {
		t.Errorf("Stats.Unread is %v, and the environment was not asked", s.Unread)
	}
}
