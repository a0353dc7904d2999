package testheap

import (
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/cheapgo/cheap/internal/test/testchild"
)

// A baton makes goroutines take turns behind the detector's back: it is a plain
// word that only norace code touches.
type baton struct{ turn uint32 }

//go:norace
func (b *baton) pass() { b.turn++ }

//go:norace
func (b *baton) wait(turn uint32) {
	for b.turn < turn {
		runtime.Gosched()
	}
}

// InTurns runs each f in a goroutine of its own, one after the other, with
// nothing between them that the detector could take for synchronization.
func InTurns(fs ...func()) {
	var b baton
	var wg sync.WaitGroup
	for i, f := range fs {
		wg.Go(func() {
			b.wait(uint32(i))
			f()
			b.pass()
			// The detector gives the place of a goroutine that has ended to
			// another one, and then takes the one for the other.
			b.wait(uint32(len(fs)))
		})
	}
	wg.Wait()
}

// MustReport runs f in a child and looks whether the detector reports a race.
// One that should be reported gets some tries: the detector misses one in ten
// even of two plain writes.
func MustReport(t *testing.T, want bool, f func()) {
	t.Helper()
	const tries = 20
	var out string
	var status int
	for range tries {
		out, status = testchild.Run(t, f)
		got := strings.Contains(out, "WARNING: DATA RACE")
		if got && !want || !want && status != 0 {
			break
		}
		if got == want {
			return
		}
	}
	t.Errorf("race reported: %v, want %v; status %d\n%s", !want, want, status, out)
}
