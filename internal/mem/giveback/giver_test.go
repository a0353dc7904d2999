package giveback

import (
	"sync"
	"testing"
	"time"

	"github.com/cheapgo/cheap/internal/mem/account"
	"github.com/cheapgo/cheap/internal/test/testenv"
	"github.com/cheapgo/cheap/internal/watch/procfs"
)

const mib = 1 << 20

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

// A keeper is a malloc that notes what it is to keep. It may have bytes that are free, some of which it gives back.
type keeper struct {
	kept, used, free, loose int64
	reads, trims            int
}

func (k *keeper) Read() (used, free int64, ok bool) {
	k.reads++
	return k.used, k.free, k.used != 0
}

func (k *keeper) Trim() {
	k.trims++
	k.free -= k.loose
}

func (*keeper) Arenas() int { return 1 }

func (k *keeper) Keep(bytes int64) { k.kept = bytes }

// TestRounds has a program with 40 MiB in use in malloc, of which 20 are not counted, go through the steps.
func TestRounds(t *testing.T) {
	k := &keeper{used: 40 * mib}
	g := new(giver)
	was := account.Process.Malloc()
	account.Process.SetMalloc(k)
	defer account.Process.SetMalloc(was)
	defer func() { anonymous = procfs.Anonymous }()
	code := int64(0) // resident bytes that neither Go nor malloc has
	anonymous = func() int64 { return g.heldBytes() + 20*mib + k.free + code }
	a := account.Process.Open(account.Options{Declared: true, Live: func() (int64, int64) { return 0, 0 }})
	defer a.Close()
	a.Charge(20 * mib)
	for i, step := range []struct {
		free, loose, code int64 // MiB
		before            func()
		reads, trims      int // so far
		calm              int
		pause             time.Duration
		base              int64 // MiB
	}{
		{code: -16, calm: 1},
		{code: -16, calm: 2},
		{free: 100, loose: 100},
		{free: 100, loose: 100, reads: 1, trims: 1},
		{calm: 0, reads: 1, trims: 1}, // 12 MiB more than is known to be in use
		// What was given back is taken again. The pause doubles.
		{free: 100, loose: 100, reads: 2, trims: 2},
		{free: 100, loose: 100, reads: 2, trims: 2, pause: Each},
		{free: 100, loose: 100, reads: 3, trims: 2, pause: Each, before: func() { g.next = g.next.Add(time.Hour) }}, // not yet
		{free: 100, loose: 100, reads: 4, trims: 3, pause: Each},
		{free: 100, loose: 100, reads: 4, trims: 3, pause: 2 * Each},
		{free: 100, loose: 100, reads: 5, trims: 4, pause: 8 * Each, before: func() { g.pause = 8 * Each }},
		{free: 100, loose: 100, reads: 5, trims: 4, pause: giveMostPause},
		// It stays away.
		{free: 100, loose: 100, reads: 6, trims: 5, pause: giveMostPause},
		{reads: 6, trims: 5},
		// Most is not malloc's, so that is the base: there is nothing to give back.
		{code: 100, reads: 7, trims: 5, base: 120},
		{code: 100, reads: 7, trims: 5, base: 120, calm: 1},
		{code: 50, reads: 7, trims: 5, base: 70, calm: 2},
		{code: 50, reads: 7, trims: 5, before: func() { g.based = time.Now().Add(-time.Hour) }},
		{code: 50, reads: 8, trims: 5, base: 70},
		{code: 50, reads: 8, trims: 5, base: 70, calm: 1},
		// Much is free, and malloc cannot give it back.
		{code: 50, free: 100, reads: 8, trims: 5, base: 70},
		{code: 50, free: 100, reads: 9, trims: 6, base: 170, pause: Each},
		{code: 50, free: 100, reads: 9, trims: 6, base: 170, pause: Each, calm: 1},
		// 12 MiB, an eighth of what is in use and 8 MiB, may stay.
		{code: 50, free: 12, reads: 9, trims: 6, base: 82, pause: Each, calm: 2},
		{code: 80, free: 12, reads: 9, trims: 6, base: 82, pause: Each},
		{code: 80, free: 12, reads: 10, trims: 6, base: 112, pause: Each},
	} {
		k.free, k.loose, code = step.free*mib, step.loose*mib, step.code*mib
		if step.before != nil {
			step.before()
		}
		g.asked, g.earliest = time.Time{}, time.Now().Add(time.Hour) // as if this took no time, and the program were not quiet
		if step.trims > k.trims {
			g.next = time.Time{} // the pause is over
		}
		if g.round(); k.reads != step.reads || k.trims != step.trims || g.calm != step.calm || g.pause != step.pause || (g.base+mib/2)/mib != step.base {
			t.Errorf("step %d: %d reads, %d trims, calm %d, pause %v, base %d; want %+v", i, k.reads, k.trims, g.calm, g.pause, g.base/mib, step)
		}
	}
	g.asked = time.Now().Add(time.Hour)
	if code = 1000 * mib; true {
		g.round()
		g.round()
	}
	if k.reads != 10 {
		t.Error("malloc was read although that takes much of the time")
	}
}

// TestKeep begins Uses with limits. malloc keeps something only while the goroutine runs, and as much as the least
// of them says.
func TestKeep(t *testing.T) {
	testenv.Skip(t, "nonlinux", "the system does not say what is resident")
	k := new(keeper)
	was := account.Process.Malloc()
	account.Process.SetMalloc(k)
	defer account.Process.SetMalloc(was)
	want := func(when string, bytes int64) {
		t.Helper()
		if Tell(); k.kept != bytes {
			t.Errorf("%s malloc keeps %d bytes, want %d", when, k.kept, bytes)
		}
	}
	u := Begin(0, false)
	want("before the first bytes are counted", 0)
	u.Wake()
	want("without a limit", keepMost)
	u.SetLimit(800 * mib)
	want("with a limit, before it is known whether there is room", 0)
	u.SetRoom(true)
	want("with a limit of 800 MiB", 100*mib)
	u.SetRoom(false)
	want("without room", 0)
	u.SetRoom(true)
	want("a moment after there was no room", 0)
	u.tight = time.Time{}
	u.SetRoom(true)
	want("when there was room for long", 100*mib)
	u.SetLimit(100 * mib)
	want("with a limit of 100 MiB", 0)
	other := Begin(800*mib, true)
	want("with both limits", 0)
	u.End()
	want("where nobody watches the limit", 50*mib)
	if !needed(all.over) {
		t.Error("the goroutine ends although it is always needed")
	}
	want("when little is counted", 50*mib)
	u.Wake()
	other.End()
	want("after the last End", 0)
	u.Wake()
	want("after a Wake that comes late", 0)
}

// TestHammerUses begins and ends Uses in several goroutines, so that the last one ends while another begins.
func TestHammerUses(t *testing.T) {
	was := account.Process.Malloc()
	k := new(keeper)
	account.Process.SetMalloc(k)
	defer account.Process.SetMalloc(was)
	var over sync.WaitGroup
	for range 4 {
		over.Go(func() {
			for range 2000 {
				Begin(0, true).End()
			}
		})
	}
	over.Wait()
	if k.kept != 0 || all.over != nil {
		t.Errorf("malloc keeps %d bytes after the last End", k.kept)
	}
}
