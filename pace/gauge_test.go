package pace

import (
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cheapgo/cheap/internal/mem/account"
	"github.com/cheapgo/cheap/internal/mem/span"
	"github.com/cheapgo/cheap/internal/test/testcall"
	"github.com/cheapgo/cheap/internal/watch/gcwatch"
)

// A fakeUsage is what a test says that the kernel counts.
type fakeUsage struct{ used, limit int64 }

func (f *fakeUsage) read() (int64, int64) { return f.used, f.limit }

func (f *fakeUsage) shared() bool { return false }

// newGauge returns a gauge of a process with a limit of a GiB, 10 MiB of code and stacks, and of
// malloc what is said.
func newGauge(u *fakeUsage, inUse, free int64) (*gauge, reading) {
	r := reading{total: 20 * mib, heap: 8 * mib, live: 8 * mib, reserve: 2 * mib}
	g := new(gauge)
	u.used, u.limit = 30*mib+inUse+free, 1<<30
	s := sample{all: 1 << 40, resident: u.used + account.Process.Held() - account.Process.HeldDeclared() + int64(span.Idle()), used: inUse, free: free, ok: true}
	v := see(r, u)
	s.at = v.moment()
	g.first(s, v)
	note(g, s, v)
	return g, r
}

// see is a look at usages.
func see(r reading, usages ...usage) view {
	v := viewOf(r)
	for _, u := range usages {
		used, limit := u.read()
		v.uses = append(v.uses, use{u, used, limit})
		if v.limit == 0 || limit < v.limit {
			v.limit = limit
		}
	}
	return v
}

// note is gauge.set for a sample of this moment.
func note(g *gauge, s sample, v view) {
	s.at = v.moment()
	s.most = s.at.declared
	g.set(s, v)
}

// TestGauge lets a process use more, of what accounts know and of what they do not.
func TestGauge(t *testing.T) {
	told := account.Process.Open(account.Options{Name: "declared", Declared: true, Quick: true, Live: func() (int64, int64) { return 0, 0 }})
	defer told.Close()
	const limit, aim = 1 << 30, 1<<30 - (1<<30)/20
	var u fakeUsage
	g, r := newGauge(&u, 5*mib, 3*mib)
	if g.scale != 1 || g.free != 3*mib || g.base < 9*mib || g.base > 11*mib {
		t.Errorf("at the start %+v", g)
	}
	near := func(what string, got, want int64) {
		t.Helper()
		if d := got - want; d > mib || d < -mib {
			t.Errorf("%s: %.1f MiB, want %.1f", what, float64(got)/mib, float64(want)/mib)
		}
	}
	// look is how a process goes on that is calm: the excess is the least.
	look := func() {
		v := see(r, &u)
		g.last = v.moment()
		g.last.by, g.last.used, g.excess = &u, u.used, 0
		g.read(v)
	}
	largest := min(account.Process.LargestCharge(), limit/8)
	look()
	near("room at the start", g.room, aim-38*mib-largest-g.slack+2*mib)

	// Declared, and resident.
	told.Charge(100 * mib)
	u.used += 100 * mib
	look()
	near("room when 100 MiB have come", g.room, aim-138*mib-largest-g.slack+2*mib)
	near("free in malloc", g.unused, 3*mib)

	// 60 MiB are released: malloc keeps them, and the kernel counts them still.
	told.Uncharge(60 * mib)
	look()
	near("free in malloc after a release, as far as is known", g.unused, 3*mib)
	note(g, sample{all: 1 << 40, resident: 138 * mib, used: 45 * mib, free: 63 * mib, ok: true}, see(r, &u))
	look()
	near("free in malloc after a release", g.unused, 63*mib)
	near("room after a release", g.room, aim-138*mib-largest-g.slack+47*mib)

	// They are used again.
	told.Charge(60 * mib)
	look()
	near("free in malloc when that is used again", g.unused, 3*mib)

	// Somebody else uses 300 MiB, such as another process in the cgroup. Until the next sample that could
	// be what malloc has free.
	u.used += 300 * mib
	look()
	near("room beside others", g.room, aim-438*mib-largest-g.slack+47*mib)
	note(g, sample{all: 1 << 40, resident: 138 * mib, used: 105 * mib, free: 3 * mib, ok: true}, see(r, &u))
	look()
	near("room beside others, when that is known", g.room, aim-438*mib-largest-g.slack+2*mib)
	u.used -= 300 * mib

	// Nobody has written what malloc has handed out: it will be used.
	u.used, g.at.used = 38*mib, 38*mib
	note(g, sample{all: 1 << 40, resident: 38 * mib, used: 905 * mib, free: 3 * mib, ok: true}, see(r, &u))
	look()
	near("room where most is not resident", g.room, aim-g.base-r.needs()-905*mib-int64(span.Idle())-(account.Process.Held()-account.Process.HeldDeclared())-g.slack)
	if g.limit != limit {
		t.Errorf("the limit is %d", g.limit)
	}
}

// TestScale declares sizes that are wrong.
func TestScale(t *testing.T) {
	told := account.Process.Open(account.Options{Name: "declared", Declared: true, Quick: true, Live: func() (int64, int64) { return 0, 0 }})
	defer told.Close()
	defer account.Process.SetScale(1)
	for _, row := range []struct {
		declared, real int64
		known          bool // whether malloc says what is in use
		want           float64
	}{
		{100 * mib, 100 * mib, true, 1},
		{100 * mib, 500 * mib, true, 5},
		{500 * mib, 100 * mib, true, 0.2},
		{100 * mib, 0, true, leastScale},
		{mib, 500 * mib, true, 500},
		{0, 500 * mib, true, 1}, // nobody has declared anything
		{512 * kib, 3 << 30, true, mostScale},
		{mib, mib / 2, true, 1}, // too little to tell
		{100 * mib, 300 * mib, false, 3},
		{500 * mib, 100 * mib, false, 1}, // maybe nobody has written it yet
	} {
		var u fakeUsage
		g, r := newGauge(&u, 5*mib, 3*mib)
		u.used += row.real
		before := account.Process.HeldDeclared()
		told.Charge(row.declared)
		s := sample{all: 1 << 40, resident: u.used, used: 5*mib + row.real, free: 3 * mib, ok: row.known}
		if !row.known {
			s.used, s.free = 0, 0
			g.otherResident += 8 * mib
		}
		note(g, s, see(r, &u))
		if before == 0 && math.Abs(g.scale-row.want) > row.want/20 {
			t.Errorf("%d bytes declared, and %d used: scale %.3f, want %.3f", row.declared, row.real, g.scale, row.want)
		}
		if d := g.declared(g.real(1000 * mib)); d < 999*mib || d > 1001*mib {
			t.Errorf("there and back: %d", d)
		}
		told.Uncharge(row.declared)
	}
}

// TestScaleUnderLargeLimit has a program declare and use little of a large limit: its scale is measured, as
// batches of a scale that is not known have one owner.
func TestScaleUnderLargeLimit(t *testing.T) {
	told := account.Process.Open(account.Options{Name: "declared", Declared: true, Quick: true, Live: func() (int64, int64) { return 0, 0 }})
	defer told.Close()
	defer account.Process.SetScale(1)
	withMalloc(t, fakeMalloc{func(string) {}}, nil)
	for _, row := range []struct {
		declared int64
		known    bool
	}{{4 * mib, false}, {9 * mib, true}, {40 * mib, true}} {
		var u fakeUsage
		g, r := newGauge(&u, 5*mib, 3*mib)
		told.Charge(row.declared)
		if enough := account.Process.HeldDeclared() > g.enough(); enough != row.known || g.limit < 32*9*mib {
			t.Fatalf("%d bytes are declared, %d are enough, the limit is %d", account.Process.HeldDeclared(), g.enough(), g.limit)
		}
		v := see(r, &u)
		if task := new(returner).task(v, g.find(v)); (task == readTask) != row.known {
			t.Errorf("%d bytes are declared: task %d", row.declared, task)
		}
		u.used += row.declared
		note(g, sample{all: 1 << 40, resident: u.used, used: 5*mib + row.declared, free: 3 * mib, ok: true}, see(r, &u))
		if g.known != row.known {
			t.Errorf("%d bytes are declared: known is %v", row.declared, g.known)
		}
		told.Uncharge(row.declared)
	}
}

// TestRoomy has goroutines wait at the bound only where less than an eighth of the limit and slack are free, or
// a quarter, or what is free is malloc's and not left.
func TestRoomy(t *testing.T) {
	for _, row := range []struct {
		metered                 bool
		slack, room, left, want int64
	}{
		{true, 50 * mib, 300 * mib, 500 * mib, 7*mib + 150*mib},
		{true, 50 * mib, 300 * mib, 20 * mib, 7*mib + 20*mib},
		{true, 50 * mib, 300 * mib, 0, 7 * mib},
		{true, 50 * mib, 180 * mib, 500 * mib, 7*mib + 90*mib},
		{true, 50 * mib, 178 * mib, 500 * mib, 0},
		{true, 250 * mib, 258 * mib, 500 * mib, 7*mib + 129*mib},
		{true, 250 * mib, 256 * mib, 500 * mib, 0},
		{true, 50 * mib, -mib, 500 * mib, 0},
		{false, 50 * mib, 300 * mib, 500 * mib, 0},
	} {
		g := gauge{limit: 1 << 30, room: row.room, used: 1<<30 - row.slack - row.left, slack: row.slack, scale: 1}
		c := collector{baseline: baseline{reclaimable: 7 * mib}, backoff: 1, cycles: 1}
		v := view{reclaimable: 7 * mib}
		s := space{metered: row.metered, roomy: row.metered && g.roomy(), left: g.declared(g.left()), ceiling: row.room}
		narrow := s
		narrow.roomy = false
		if got, want := c.aim(v, s).bound, max(row.want, c.aim(v, narrow).bound); got != want || s.roomy != (row.want != 0) {
			t.Errorf("%+v: %d, want %d", row, got, want)
		}
	}
}

// TestSlack has goroutines each of which may have allocated a resource that nobody has declared yet.
func TestSlack(t *testing.T) {
	for range 100 {
		account.Process.ChargeReclaimable(4 * mib)
		account.Process.UnchargeReclaimable(4 * mib)
	}
	over := make(chan struct{})
	defer close(over)
	var u fakeUsage
	g, r := newGauge(&u, 0, 0)
	for _, n := range []int{0, 30, 1000} {
		for range n {
			go func() { <-over }()
		}
		g.read(see(r, &u))
		want := min(max(int64(runtime.NumGoroutine())*account.Process.MeanCharge(), g.excess), g.limit/4)
		if g.slack != want || n == 30 && g.slack <= g.excess || n == 1000 && g.slack != g.limit/4 {
			t.Errorf("%d goroutines, %d bytes each: %d, want %d", runtime.NumGoroutine(), account.Process.MeanCharge(), g.slack, want)
		}
	}
	large := &fakeUsage{g.used, 100 << 30} // so that a quarter of the limit is more
	g.read(see(r, large))
	was := g.slack
	account.Process.Reserve(500 * mib)
	defer account.Process.Reserve(-500 * mib)
	if g.read(see(r, large)); g.slack != max(was-500*mib, g.excess) {
		t.Errorf("with 500 MiB in rooms: %d, before %d", g.slack, was)
	}
	g, r = newGauge(&u, 0, 0)
	g.scale = mostScale
	v := see(r, &u)
	v.largest, v.mean, v.reserved = 1<<60, 1<<60, 0
	if g.read(v); g.slack != g.limit/4 || g.room < -g.limit {
		t.Errorf("with resources of 2^60 bytes: slack %d, room %d", g.slack, g.room)
	}
}

// TestTwoUsages has two usages take turns in which leaves least room: nothing has changed then.
func TestTwoUsages(t *testing.T) {
	const limit = 1 << 40 // so that what the test takes by itself is little
	one, other := &fakeUsage{limit / 4, limit}, &fakeUsage{limit, 2 * limit}
	g, r := newGauge(&fakeUsage{}, 0, 0)
	note(g, sample{all: 1 << 40, resident: 1 << 40, ok: true}, see(r, one, other))
	unused := g.unused
	for i, step := range []struct {
		used, other int64
		by          usage
		stale       bool
	}{
		{limit / 4, limit, one, false},
		{limit / 4, 2 * limit, other, false},
		{limit / 4, limit, one, false},
		{limit / 2, limit, one, true},
		{limit / 2, 2 * limit, other, false},
		{limit / 4, limit, one, false},
	} {
		one.used, other.used = step.used, step.other
		if g.read(see(r, one, other)); g.by != step.by || g.stale() != step.stale || step.by == other && g.unused > unused+limit/64 {
			t.Errorf("step %d: stale %v, %d unused; %+v", i, g.stale(), g.unused, g)
		}
	}
}

// TestSetScale has malloc read in the middle of releases: of some that are not counted yet, and of others that
// are counted between the look at malloc and that at the accounts. The scale falls by an eighth at a time,
// rises at once, and stays if it may be right.
func TestSetScale(t *testing.T) {
	defer account.Process.SetScale(1)
	var g gauge
	for i, step := range []struct {
		real, few, many int64
		want            float64
	}{
		{600, 300, 600, 2},
		{300, 300, 300, 1.75},
		{600, 300, 600, 1.75}, // 1 to 2
		{1200, 300, 600, 2},   // 2 to 4
		{1200, 300, 300, 4},
		{300, 300, 300, 3.5},
		{300, 100, 300, 3.0625}, // 1 to 3
		{300, 100, 300, 3},
		{300, 100, 300, 3},
		{0, 0, 0, 2.625},
	} {
		if g.setScale(step.real, step.few, step.many, leastScale); g.scale != step.want || !g.known {
			t.Errorf("step %d: %v, want %v", i, g.scale, step.want)
		}
	}
}

// TestLimitStale has others take as much as releases give back: what is held stays, and the limit is checked.
func TestLimitStale(t *testing.T) {
	a := newAccount(t, AccountOptions{})
	p := new(pacer)
	p.heldAt.Store(account.Process.Held() + 100*mib)
	_, ever := account.Process.Reclaimable()
	p.takenAt.Store(ever + 5*mib)
	for i := range 6 {
		if stale := p.limitStale(); stale != (i >= 5) {
			t.Errorf("after %d MiB: %v", i, stale)
		}
		testcall.Must(t, a.Add(mib))
		a.Remove(mib)
	}
	p.takenAt.Store(noBound)
	if p.limitStale() {
		t.Error("without a limit of what is taken")
	}
	p.heldAt.Store(account.Process.Held())
	if !p.limitStale() {
		t.Error("what is held has reached its bound")
	}
}

// TestWaitForLook has a goroutine hold the lock of a look, as one that has lost its processor does. Others pass until
// they have taken what was left, or are at the bound, and then wait for that look, but not in a release function.
func TestWaitForLook(t *testing.T) {
	_, ever := account.Process.Reclaimable()
	for _, row := range []struct {
		bound, most    int64
		release, waits bool
	}{{noBound, noBound, false, false}, {noBound, ever, false, true}, {-1, noBound, false, true}, {-1, ever, true, false}} {
		p := new(pacer)
		p.bound.Store(row.bound)
		p.takenMost.Store(row.most)
		p.mu.Lock()
		var done, locked atomic.Bool
		var over sync.WaitGroup
		over.Go(func() {
			if row.release {
				defer gcwatch.EnterSection().Leave()
			}
			locked.Store(p.lock())
			done.Store(true)
		})
		if row.waits {
			waitIn(t, "pace.(*pacer).lock", done.Load)
			if done.Load() {
				t.Errorf("%+v: the goroutine has not waited", row)
			}
			p.mu.Unlock()
		}
		over.Wait()
		if locked.Load() != row.waits {
			t.Errorf("%+v: locked %v", row, locked.Load())
		}
	}
}

// TestLeft has the kernel's number near the limit: what may be taken at once is what is left, whatever is free.
func TestLeft(t *testing.T) {
	for _, row := range []struct{ limit, used, slack, want int64 }{
		{100, 60, 10, 30}, {100, 95, 3, 2}, {100, 99, 3, 0}, {100, 120, 0, 0},
	} {
		g := &gauge{limit: row.limit, used: row.used, slack: row.slack, unused: 50, room: 40}
		if got := g.left(); got != row.want {
			t.Errorf("%+v: %d", row, got)
		}
	}
}

// TestStuck has malloc take fresh memory although some is free, and use it again.
func TestStuck(t *testing.T) {
	g := new(gauge)
	for i, step := range []struct{ grown, taken, want int64 }{
		{10, 10, 10}, // all that was taken is fresh
		{5, 20, 0},   // 15 were free before
		{8, -20, 8},  // releases, and fresh memory for others
		{0, 3, 5},
		{-4, 0, 1},
		{-4, 10, 0},
	} {
		if g.noteStuck(step.grown, step.taken); g.stuck != step.want {
			t.Errorf("step %d: %d, want %d", i, g.stuck, step.want)
		}
	}
}

// TestExcess lets the process grow by what nobody has declared, and be calm for a while.
func TestExcess(t *testing.T) {
	var u fakeUsage
	g, r := newGauge(&u, 0, 0)
	g.read(see(r, &u))
	calm := g.excess
	u.used += 100 * mib
	g.read(see(r, &u))
	if g.excess != 100*mib || calm > 64*mib {
		t.Errorf("the excess is %d, and %d before", g.excess, calm)
	}
	u.used += 900 * mib
	g.read(see(r, &u))
	if g.excess != g.limit/4 {
		t.Errorf("the excess is %d, more than a quarter of the limit", g.excess)
	}
	for range 1000 {
		g.fade()
		g.read(see(r, &u))
	}
	if g.excess != g.limit/32 {
		t.Errorf("after that it is %d, want %d", g.excess, g.limit/32)
	}
	// Where another usage has least room, the two are not compared.
	other := &fakeUsage{2 << 30, 2 << 30}
	if g.read(see(r, &u, other)); g.by != other || g.excess != g.limit/32 || g.room > 0 {
		t.Errorf("%+v", g)
	}
}

func TestNextPause(t *testing.T) {
	const limit = 1 << 30
	for _, row := range []struct {
		pause       time.Duration
		grown, room int64
		want        time.Duration
	}{
		{10 * time.Millisecond, 0, 100 * mib, 20 * time.Millisecond},
		{80 * time.Millisecond, -mib, 100 * mib, guardMost},
		{10 * time.Millisecond, 10 * mib, 800 * mib, 100 * time.Millisecond},
		{10 * time.Millisecond, 10 * mib, 80 * mib, 10 * time.Millisecond},
		{10 * time.Millisecond, 100 * mib, 80 * mib, guardLeast},
		{10 * time.Millisecond, 100 * mib, -80 * mib, guardLeast},
		{time.Millisecond, 2 * mib, noBound, guardMost},
		{guardMost, 2 * mib, noBound, guardMost},
	} {
		if got := nextPause(row.pause, row.grown, row.room, limit); got != row.want {
			t.Errorf("after %v in which %d came, with room for %d: %v, want %v", row.pause, row.grown, row.room, got, row.want)
		}
	}
}

func TestBackoff(t *testing.T) {
	var b backoff
	if !b.allowed(time.Now()) {
		t.Error("the first time is not allowed")
	}
	for i, want := range []time.Duration{5, 10, 20, 40, 80, 160, 320, 640, 1000, 1000} {
		b.set(false, 0)
		if want *= time.Millisecond; b.pause != want {
			t.Errorf("after %d times in vain the pause is %v, want %v", i+1, b.pause, want)
		}
	}
	if b.set(true, time.Hour); b.pause != backoffLeast || b.allowed(time.Now()) || time.Until(b.next) < time.Minute {
		t.Errorf("after a long one that has brought something: %+v", b)
	}
}
