package cheap

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/cheapgo/cheap/internal/mem/account"
	"github.com/cheapgo/cheap/internal/mem/span"
	"github.com/cheapgo/cheap/internal/test/testheap"
	"github.com/cheapgo/cheap/internal/test/testwait"
)

// holdings are what the process has that a scene must leave as it was.
type holdings struct {
	heaps, accounts int
	held            int64 // bytes in all accounts, less the caches of the default heap
	blocks          int64 // of the default heap

	units, mappings int // as package span counts them
	tagged, chunked int // records in the map that say that a heap, or a chunk, has the unit
}

// takeHoldings waits until what was dropped is gone, and releases what is idle.
func takeHoldings(t testing.TB) holdings {
	testwait.Until(t, "the default heap has no blocks", func() bool {
		for i := range boxesOf {
			for j := range boxesOf[i].box {
				boxesOf[i].box[j].take() // no other goroutine uses the pool now
			}
		}
		runtime.GC()
		return Default().Stats().Blocks == 0
	})
	Trim()
	f := holdings{blocks: Default().Stats().Blocks}
	f.heaps = len(Heaps())
	f.accounts = len(account.Process.List())
	f.held = account.Process.Held() - int64(Default().Stats().Caches)*testheap.CacheBytes
	f.units, f.mappings = span.InUse()
	span.EachRecord(func(s *span.Span) {
		if s.LoadTag() != 0 {
			f.tagged++
		}
		if s.Chunk != 0 {
			f.chunked++
		}
	})
	return f
}

// mustBe fails if f is not as before.
func (f holdings) mustBe(t testing.TB, before holdings) {
	t.Helper()
	if f != before {
		t.Fatalf("drift: %s, and it was %s", f, before)
	}
}

func (f holdings) String() string {
	type plain holdings
	return fmt.Sprintf("%+v", plain(f))
}
