package own

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"time"
	"weak"

	"github.com/cheapgo/cheap/own/internal/batch"
)

// CheckReleased is for tests. It calls f on a new goroutine, collects, and returns
// an error if owners in pools that f has made are neither closed nor released. f
// makes pools and owners as the program does, and keeps none of them. The error has
// the names of the pools, and with Options.Trace the stacks that made the owners.
//
// CheckReleased finds a Release function that refers to an owner of its own pool; see
// section Release functions of the package. It finds every other reference to an owner as
// well, such as one of a package variable or of a goroutine that f has started. It ignores
// pools that were made before f, so a test of a package variable makes another pool with the
// same options; if f makes no pool, the error says so. leaktest.Check of package inspect looks
// at all pools. A reference that is made later, or on another path through the program, is
// not found.
//
// No other goroutine should make pools meanwhile. CheckReleased collects up to 12
// times, and takes half a second or more if it finds something. With CHEAP_OWN=leak it
// only calls f.
func CheckReleased(f func()) error {
	before, first := rostered(), poolsMade()
	done := make(chan struct{})
	go func() { // so that no reference stays on this stack
		defer close(done)
		f()
	}()
	<-done
	made := rostered()
	maps.DeleteFunc(made, func(w weak.Pointer[Pool], _ member) bool { _, ok := before[w]; return ok })
	if batch.Leak {
		return nil
	}
	if poolsMade() == first {
		return errors.New("cheap: own: CheckReleased: the function has made no pool, so nothing was checked; a pool that was made before, " +
			"such as a package variable, is not looked at: make one with the same options")
	}
	// A batch takes three collections at most. The others are for objects with
	// finalizers that refer to owners, and for a machine too busy to run cleanups.
	const collections = 12
	var left []string
	for i := range collections {
		runtime.GC()
		rest(i)
		ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
		Flush(ctx) // an error means that the numbers below are not 0
		cancel()
		if left = unreleased(made); left == nil {
			return nil
		}
	}
	return fmt.Errorf("cheap: own: not released after %d collections: %s\n"+
		"Each is still reachable. Options.Release, another function of the options, or a state must not refer to an owner of its own pool, "+
		"nor to an object that refers to one", collections, strings.Join(left, ", "))
}

// rest leaves time for what follows from a collection, the more the later it is. Tests replace
// it.
var rest = func(collections int) { time.Sleep(time.Millisecond << min(collections, 6)) }

// unreleased describes the pools that have owners which are not released.
func unreleased(pools map[weak.Pointer[Pool]]member) (left []string) {
	for w := range pools {
		p := w.Value()
		if p == nil {
			continue // a pool is collected after its last batch
		}
		st := p.Stats()
		n := st.Live - st.Queued
		if n == 0 {
			continue
		}
		text := fmt.Sprintf("%d of %s", n, p.spec.Name)
		var unclosed batch.Unclosed
		for _, b := range p.intake.Batches() {
			unclosed.Add(b)
		}
		for o, n := range unclosed.Origins {
			text += fmt.Sprintf("\n%d made by\n%s", n, o)
		}
		left = append(left, text)
	}
	slices.Sort(left)
	return left
}
