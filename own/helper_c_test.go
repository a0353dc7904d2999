//go:build cgo && unix

package own_test

import (
	"context"
	"flag"
	"runtime"
	"testing"
	"time"

	"github.com/cheapgo/cheap/internal/test/testenv"
	"github.com/cheapgo/cheap/internal/test/testwait"
	"github.com/cheapgo/cheap/own"
)

// raceEnabled says whether the race detector runs, which makes the tests slow.
var raceEnabled = testenv.Built("-race")

// times is n with -own.long, and else a tenth of it, or a twentieth where all is slow.
func times(n int) int {
	switch {
	case flag.Lookup("own.long").Value.String() == "true":
		return n
	case raceEnabled:
		return n / 20
	}
	return n / 10
}

// collectUntil collects until f returns true.
func collectUntil(t *testing.T, what string, f func() bool) {
	t.Helper()
	testwait.Until(t, what, func() bool {
		runtime.GC()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		own.Flush(ctx) // what waits for Drain is f's
		return f()
	})
}
