package pace

import (
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cheapgo/cheap/internal/mem/account"
	"github.com/cheapgo/cheap/internal/mem/giveback"
	"github.com/cheapgo/cheap/internal/test/testcall"
	"github.com/cheapgo/cheap/internal/test/testwait"
	"github.com/cheapgo/cheap/internal/watch/procfs"
)

// A fakeMalloc calls a function of a test.
type fakeMalloc struct{ called func(what string) }

func (m fakeMalloc) Read() (used, free int64, ok bool) {
	m.called("Read")
	return 40 * mib, 50 * mib, true
}

func (m fakeMalloc) Trim() { m.called("Trim") }

func (m fakeMalloc) Keep(int64) { m.called("Keep") }

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
			p.refusal(1, 0, false)
			p.demand(false)
			done.Store(true)
		}()
		testwait.Until(t, "others to use the package during "+what, done.Load)
	}}
	withMalloc(t, m, &fakeUsage{100 * mib, 1 << 30})
	p = start(t, Options{Limit: 1 << 30})
	for todo, want := range map[mallocTask]int{noTask: 0, readTask: 1, trimTask: 2} {
		calls = nil
		p.mu.Lock()
		p.returner.sampled.next = time.Now().Add(time.Hour)
		p.todo.Store(int32(todo))
		p.mu.Unlock()
		p.tend()
		if len(calls) < want || (len(calls) > 0) != (want > 0) || want > 0 && calls[len(calls)-1] != "Read" || p.atMalloc.Load() {
			t.Errorf("task %d: %v", todo, calls)
		}
		if todo == trimTask && p.returner.trimmed.pause == 0 {
			t.Error("malloc may give memory back again at once")
		}
	}
	if st := ReadStats(); st.Trims != 1 {
		t.Errorf("%d trims", st.Trims)
	}
	calls = nil
	if p.trimMalloc(); slices.Contains(calls, "Arenas") {
		t.Error("the arenas were counted again")
	}
	testcall.Must(t, newAccount(t, AccountOptions{}).Add(giveback.Least))
	if procfs.Anonymous() != 0 && !slices.Contains(calls, "Keep") {
		t.Errorf("malloc was not told to keep pages: %v", calls)
	}
	Stop()
	calls = nil
	p.todo.Store(int32(readTask))
	if p.tend(); len(calls) > 0 {
		t.Errorf("after Stop: %v", calls)
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
		p.todo.Store(int32(trimTask))
		p.tend()
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

// TestMallocTask has the returner decide what is to be done with malloc.
func TestMallocTask(t *testing.T) {
	const limit = 1 << 30
	now := time.Now()
	for _, row := range []struct {
		name               string
		used, room, unused int64
		changed            int64 // used, since malloc was read
		known, read        bool  // read: malloc may be read now
		slack              int64
		contended          bool
		want               mallocTask
	}{
		{"much room", limit / 2, limit / 3, limit / 4, 0, true, true, 0, false, noTask},
		{"little room", limit / 2, limit / 5, limit / 4, 0, true, true, 0, false, readTask},
		{"little room, and it was read just now", limit / 2, limit / 5, limit / 4, limit / 32, true, false, 0, false, noTask},
		{"the scale is not known", limit / 2, limit / 3, 0, limit / 2, false, true, 0, false, readTask},
		{"next to none", limit - limit/32, limit / 5, limit / 4, 0, true, false, 0, false, trimTask},
		{"next to none but for slack", limit - limit/8, limit / 5, limit / 4, 0, true, false, limit / 5, false, trimTask},
		{"next to none, and malloc may be read", limit - limit/32, limit / 5, limit / 4, limit / 32, true, true, 0, false, trimTask},
		{"next to none, nothing is free", limit - limit/32, limit / 5, mib, 0, true, false, 0, false, noTask},
		{"next to none, and much has changed", limit - limit/32, limit / 5, mib, limit / 32, true, false, 0, false, readTask},
		{"next to none, and much has come back", limit - limit/32, limit / 5, mib, -limit / 32, true, false, 0, false, readTask},
		{"much room, but a request waits", limit / 2, limit / 3, limit / 4, 0, true, false, 0, true, trimTask},
	} {
		u := new(fakeUsage)
		g := gauge{
			by: u, limit: limit, used: row.used, room: row.room, unused: row.unused, known: row.known, slack: row.slack, scale: 1,
			at: moment{by: u, used: row.used - row.changed}, last: moment{by: u, used: row.used},
		}
		r := new(returner)
		if !row.read {
			r.sampled.next = now.Add(time.Hour)
		}
		v := view{at: now, malloc: true, contended: row.contended}
		task := func() mallocTask { return r.task(v, space{malloc: g.mallocSpace(v)}) }
		if got := task(); got != row.want {
			t.Errorf("%s: task %d, want %d", row.name, got, row.want)
		}
		if v.malloc = false; row.want == trimTask && task() == trimTask {
			t.Errorf("%s, without a malloc", row.name)
		}
		v.malloc = true
		if r.early = now.Add(time.Hour); row.want == readTask && !row.read && task() == readTask {
			t.Errorf("%s, and it was read just now", row.name)
		}
		if r.trimmed.next = now.Add(time.Hour); row.want == trimTask && task() == trimTask {
			t.Errorf("%s, and malloc has given memory back just now", row.name)
		}
		if r.trimmed.next = now.Add(-contendedEach / 2); row.contended && task() == trimTask {
			t.Errorf("%s, and malloc has given memory back a moment ago", row.name)
		}
		g.limit = 0
		if got := task(); got != noTask {
			t.Errorf("%s, without a limit: task %d", row.name, got)
		}
	}
}

// TestSampleShare has samples of a millisecond taken in one percent of the time, or ten near a limit or if much has moved.
func TestSampleShare(t *testing.T) {
	now := time.Now()
	var r returner
	if r.note(sample{took: time.Millisecond}, now); r.sampled.next != now.Add(100*time.Millisecond) || r.early != now.Add(10*time.Millisecond) {
		t.Errorf("%+v", r)
	}
	if r.note(sample{took: time.Millisecond, moved: true}, now); r.sampled.next != now.Add(10*time.Millisecond) {
		t.Errorf("%+v", r)
	}
}

// TestRested has a step that was allowed for a while.
func TestRested(t *testing.T) {
	for _, row := range []struct {
		next time.Duration
		want bool
	}{{-time.Hour, true}, {0, false}, {time.Hour, false}} {
		b := backoff{next: time.Now().Add(row.next)}
		if got := b.rested(time.Now(), time.Minute); got != row.want {
			t.Errorf("allowed from %v on: %v", row.next, got)
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
		g := &gauge{scale: 1}
		g.read(see(r.read(), u))
		if n := 40*mib - account.Process.HeldDeclared(); n > 0 {
			declared.Charge(n) // as much as fakeMalloc has in use
		}
		s := takeSample(&r)
		g.set(s, see(r.read(), u))
		if g.scale < row.least || s.moved != (meanwhile != 0) || s.most-s.at.declared != abs(meanwhile) {
			t.Errorf("%d MiB meanwhile: the scale is %.2f, moved %v", meanwhile/mib, g.scale, s.moved)
		}
	}
}
