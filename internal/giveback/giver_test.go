package giveback

import (
	"sync"
	"testing"
	"time"

	"github.com/cheapgo/cheap/internal/account"
	"github.com/cheapgo/cheap/internal/procfs"
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

// A keeper is a malloc that notes what it is to keep.
type keeper struct{ kept int64 }

func (*keeper) Read() (used, free int64, ok bool) { return 0, 0, false }

func (*keeper) Trim() {}

func (*keeper) Arenas() int { return 1 }

func (k *keeper) Keep(bytes int64) { k.kept = bytes }

// TestKeep begins Uses with limits. malloc keeps something only while the goroutine runs, and as much as the least
// of them says.
func TestKeep(t *testing.T) {
	if procfs.Anonymous() == 0 {
		t.Skip("the system does not say what is resident")
	}
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
