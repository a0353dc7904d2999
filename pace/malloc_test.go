package pace

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cheapgo/cheap/internal/account"
	"github.com/cheapgo/cheap/internal/testwait"
)

// A fakeMalloc calls a function of a test.
type fakeMalloc struct{ called func(what string) }

func (m fakeMalloc) Read() (used, free int64, ok bool) {
	m.called("Read")
	return 40 * mib, 50 * mib, true
}

func (m fakeMalloc) Trim() { m.called("Trim") }

func (m fakeMalloc) Arenas() int {
	m.called("Arenas")
	return 3
}

// withMalloc sets the malloc and the usage of the process, for the time of a test.
func withMalloc(t *testing.T, m account.Malloc, u usage) {
	was, process := account.Process.Malloc(), openProcess
	account.Process.SetMalloc(m)
	openProcess = func(*atomic.Int64) usage { return u }
	t.Cleanup(func() {
		account.Process.SetMalloc(was)
		openProcess = process
	})
}

// TestMallocWithoutLock uses the package while malloc is read and gives memory back.
func TestMallocWithoutLock(t *testing.T) {
	var calls []string
	var p *pacer
	m := fakeMalloc{func(what string) {
		if p == nil {
			return // in Start
		}
		calls = append(calls, what)
		var done atomic.Bool
		go func() {
			ReadStats()
			p.refusal(1, 0)
			p.demand(false)
			done.Store(true)
		}()
		testwait.Until(t, "others to use the package during "+what, done.Load)
	}}
	withMalloc(t, m, &fakeUsage{100 * mib, 1 << 30})
	p = start(t, Options{Limit: 1 << 30})
	for todo, want := range map[mallocTask]int{readTask: 1, trimTask: 2} {
		calls = nil
		p.mu.Lock()
		p.gauge.sampled.next = time.Now().Add(time.Hour)
		p.todo = todo
		p.unlock()
		if len(calls) < want || calls[len(calls)-1] != "Read" {
			t.Errorf("task %d: %v", todo, calls)
		}
	}
	if st := ReadStats(); st.Trims != 1 {
		t.Errorf("%d trims", st.Trims)
	}
}

// TestAwaitMalloc has a goroutine take memory at the bound while malloc gives memory back. It waits for
// that; one that is below the bound does not, nor one that stops the package.
func TestAwaitMalloc(t *testing.T) {
	var paused, goOn atomic.Bool
	m := fakeMalloc{func(what string) {
		if what == "Trim" {
			paused.Store(true)
			testwait.Until(t, "the test to go on", goOn.Load)
		}
	}}
	withMalloc(t, m, &fakeUsage{100 * mib, 1 << 30})
	p := start(t, Options{Limit: 1 << 30})
	ended := make(chan struct{})
	go func() {
		p.mu.Lock()
		p.todo = trimTask
		p.unlock()
		close(ended)
	}()
	testwait.Until(t, "Trim", paused.Load)
	p.mu.Lock() // who holds it sets the bound
	p.bound.Store(noBound)
	p.awaitMalloc() // below the bound
	p.bound.Store(-1)
	var passed atomic.Bool
	done := make(chan struct{})
	go func() {
		p.awaitMalloc()
		passed.Store(true)
		close(done)
	}()
	waitIn(t, "awaitMalloc", passed.Load)
	if passed.Load() {
		t.Error("a goroutine at the bound has not waited")
	}
	p.mu.Unlock()
	Stop()
	goOn.Store(true)
	<-done
	<-ended
	if n := account.Process.Scale(); n != 1 {
		t.Errorf("the scale is %d after Stop", n)
	}
}

// TestMallocTask has the pacer decide what is to be done with malloc.
func TestMallocTask(t *testing.T) {
	withMalloc(t, fakeMalloc{func(string) {}}, nil)
	const limit = 1 << 30
	for _, row := range []struct {
		name               string
		used, room, unused int64
		changed            int64 // used, since malloc was read
		known, read        bool  // read: malloc may be read now
		want               mallocTask
	}{
		{"much room", limit / 2, limit / 3, limit / 4, 0, true, true, noTask},
		{"little room", limit / 2, limit / 5, limit / 4, 0, true, true, readTask},
		{"little room, and it was read just now", limit / 2, limit / 5, limit / 4, limit / 32, true, false, noTask},
		{"the scale is not known", limit / 2, limit / 3, 0, limit / 2, false, true, readTask},
		{"next to none", limit - limit/32, limit / 5, limit / 4, 0, true, false, trimTask},
		{"next to none but for slack", limit - limit/8, limit / 5, limit / 4, 0, true, false, trimTask},
		{"next to none, and malloc may be read", limit - limit/32, limit / 5, limit / 4, limit / 32, true, true, trimTask},
		{"next to none, nothing is free", limit - limit/32, limit / 5, mib, 0, true, false, noTask},
		{"next to none, and much has changed", limit - limit/32, limit / 5, mib, limit / 32, true, false, readTask},
		{"next to none, and much has come back", limit - limit/32, limit / 5, mib, -limit / 32, true, false, readTask},
	} {
		p := new(pacer)
		g := &p.gauge
		g.limit, g.used, g.room, g.unused, g.known = limit, row.used, row.room, row.unused, row.known
		if strings.Contains(row.name, "slack") {
			g.slack = limit / 5
		}
		g.by = new(fakeUsage)
		g.at = moment{by: g.by, used: row.used - row.changed, declared: account.Process.HeldDeclared()}
		g.last, g.scale = moment{by: g.by, used: row.used}, 1
		if !row.read {
			g.sampled.next = time.Now().Add(time.Hour)
		}
		if got := p.mallocTask(); got != row.want {
			t.Errorf("%s: task %d, want %d", row.name, got, row.want)
		}
		if g.early = time.Now().Add(time.Hour); row.want == readTask && !row.read && p.mallocTask() == readTask {
			t.Errorf("%s, and it was read just now", row.name)
		}
		p.gauge.limit = 0
		if got := p.mallocTask(); got != noTask {
			t.Errorf("%s, without a limit: task %d", row.name, got)
		}
	}
	p := new(pacer)
	p.gauge = gauge{by: new(fakeUsage), limit: limit, used: limit - limit/32, unused: limit / 4, known: true, early: time.Now().Add(time.Hour)}
	p.gauge.sampled.next, p.gauge.trimmed.next = time.Now().Add(time.Hour), time.Now().Add(time.Hour)
	if got := p.mallocTask(); got != noTask {
		t.Errorf("malloc has given memory back just now: task %d", got)
	}
}

// A line is a Pacer with which requests wait until it is closed.
type line chan struct{}

func (line) Pressure() {}

func (line) Check() {}

func (line) Reclaim(int64, int, bool) error { return nil }

func (l line) Wait(context.Context, int64, bool, func() bool) error {
	<-l
	return nil
}

// TestTrimForRequests has a request wait while malloc has much free and the limit is not near. Malloc gives
// memory back for it, but not often.
func TestTrimForRequests(t *testing.T) {
	withMalloc(t, fakeMalloc{func(string) {}}, nil)
	const limit = 1 << 30
	p := new(pacer)
	p.gauge = gauge{by: new(fakeUsage), limit: limit, used: limit / 2, unused: limit / 4, known: true, early: time.Now().Add(time.Hour)}
	p.gauge.sampled.next = time.Now().Add(time.Hour)
	requests := make(line)
	account.Process.SetPacer(requests)
	defer account.Process.SetPacer(nil)
	over := make(chan error)
	go func() { over <- account.Process.Wait(t.Context(), 1, true, nil) }()
	testwait.Until(t, "a request to wait", account.Process.Contended)
	if got := p.mallocTask(); got != trimTask {
		t.Errorf("task %d, want that malloc gives memory back", got)
	}
	if p.gauge.trimmed.next = time.Now().Add(time.Hour); p.mallocTask() != noTask {
		t.Error("malloc has given memory back just now")
	}
	close(requests)
	<-over
	if p.gauge.trimmed = (backoff{}); p.mallocTask() != noTask {
		t.Error("no request waits")
	}
}

// TestRested has a step that was allowed for a while.
func TestRested(t *testing.T) {
	for _, row := range []struct {
		next time.Duration
		want bool
	}{{-time.Hour, true}, {0, false}, {time.Hour, false}} {
		b := backoff{next: time.Now().Add(row.next)}
		if got := b.rested(time.Minute); got != row.want {
			t.Errorf("allowed from %v on: %v", row.next, got)
		}
	}
}

// TestGiverOfQuietProgram has a program take memory again that was given back, and then be quiet.
func TestGiverOfQuietProgram(t *testing.T) {
	now := time.Now()
	g := &giver{next: now, earliest: now}
	g.judge(false)
	g.judge(false)
	for i, step := range []struct {
		resident, held int64
		after          time.Duration
		may            bool
	}{
		{100 * mib, 50 * mib, 0, false},
		{100 * mib, 50 * mib, 0, false},
		{100 * mib, 50*mib + mib/4, 0, false},
		{100 * mib, 50*mib + mib/4, -time.Minute, false}, // too early, whatever the program does
		{100 * mib, 50*mib + mib/4, 0, true},
		{100 * mib, 54 * mib, 0, false}, // not quiet any more
		{100 * mib, 54 * mib, time.Minute, true},
	} {
		g.listen(step.resident, step.held)
		if may := g.mayGiveBack(now.Add(step.after)); may != step.may {
			t.Errorf("step %d: %v", i, may)
		}
	}
}

// TestSampleOfBusyProgram has others allocate and declare, or release, while malloc is read. The scale is not
// too small then, and the next sample is soon.
func TestSampleOfBusyProgram(t *testing.T) {
	declared := account.Process.Open(account.Options{Declared: true, Live: func() (int64, int64) { return 0, 0 }})
	t.Cleanup(func() {
		declared.Close()
		account.Process.SetScale(1)
	})
	var meanwhile int64
	withMalloc(t, fakeMalloc{func(string) {
		if declared.Charge(max(meanwhile, 0)); meanwhile < 0 {
			declared.Uncharge(-meanwhile)
		}
	}}, nil)
	var r reader
	u := &fakeUsage{100 * mib, 1 << 30}
	for _, row := range []struct {
		meanwhile int64
		least     float64 // scale
	}{{0, 0.9}, {-20 * mib, 1.9}, {400 * mib, 0.9}} {
		meanwhile = row.meanwhile
		g := &gauge{usages: []usage{u}, scale: 1}
		g.read(r.read())
		if n := 40*mib - account.Process.HeldDeclared(); n > 0 {
			declared.Charge(n) // as much as fakeMalloc has in use
		}
		s := takeSample(&r)
		g.set(s, r.read(), false)
		if g.scale < row.least || s.moved != (meanwhile != 0) {
			t.Errorf("%d MiB meanwhile: the scale is %.2f, moved %v", meanwhile/mib, g.scale, s.moved)
		}
	}
}
