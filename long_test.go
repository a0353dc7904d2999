package cheap

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"testing"
	"time"

	"github.com/cheapgo/cheap/internal/mem/span"
	"github.com/cheapgo/cheap/internal/test/testchild"
	"github.com/cheapgo/cheap/internal/test/testheap"
)

// TestLongRun does random operations in eight goroutines, while GOMAXPROCS goes from 1 to
// 16 and back. They share heaps, of which one has a limit, and have heaps of their own,
// Locals, arenas, arenas of the pool and objects of FixedBlock; they trim and destroy. All contents
// and all counts are compared with the reference, and at the end nothing is left. It runs
// in a process of its own, which has nothing when it begins.
func TestLongRun(t *testing.T) {
	ops := testheap.HammerRounds(1_000_000)
	if *testheap.Long {
		ops = 1_000_000_000
	}
	testchild.Main(t, func() {
		n, err := strconv.Atoi(os.Getenv("CHEAP_TEST_N"))
		if err != nil {
			panic(err)
		}
		longProgram(n)
	})
	cmd := testchild.Command(t)
	cmd.Env = append(cmd.Env, fmt.Sprintf("CHEAP_TEST_N=%d", ops))
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if *testheap.Long {
		cmd.Stdout = io.MultiWriter(&out, os.Stdout) // it takes long
	}
	if err := cmd.Run(); err != nil {
		t.Errorf("%v\n%s", err, out.Bytes())
	}
	t.Logf("%s", out.Bytes())
}

// smallMix has a few large blocks, and very few with a mapping.
var smallMix = mix{
	size: func(r *rand.Rand) int {
		switch n := r.IntN(1 << 14); {
		case n == 0 && !testheap.Scarce:
			return span.OwnMapping + r.IntN(span.OwnMapping/4)
		case n < 160:
			return 32<<10 + r.IntN(200_000)
		case n < 1000:
			return r.IntN(32 << 10)
		case n < 5000:
			return r.IntN(2000)
		}
		return r.IntN(256)
	},
	most: 600, align: 14, wide: 64, life: 2000, realloc: 11, bursts: 6, rare: 1,
}

// longProgram is what TestLongRun does in the child.
func longProgram(ops int) {
	const (
		users  = 8
		procs  = 16
		limit  = 6 << 20
		spread = 64 << 20 // what the memory may have more than after the first round
	)
	rounds := 10 + ops/5_000_000
	t := testheap.Panicker{}
	before := takeHoldings(t)
	start := time.Now()
	s, err := newScene(t, users, limit, smallMix)
	s.must(err)
	var first, firstPeak int64
	changes := 0
	for round := range rounds {
		stop := testheap.ChangeProcs(procs, func(i int) {
			if i%8 == 0 {
				s.shared[i/8%2].Trim()
			}
			for range 20 {
				runtime.Gosched()
			}
		})
		s.work(ops / rounds / users)
		changes += stop()
		s.check()
		if runtime.GOOS != "linux" || round%10 > 0 {
			continue
		}
		Trim()
		debug.FreeOSMemory()
		now, err := testheap.OfProcess("RssAnon")
		s.must(err)
		peak, err := testheap.OfProcess("VmHWM")
		s.must(err)
		if round == 0 {
			first, firstPeak = now, peak
		}
		fmt.Printf("%d %%: %.0f s, resident %.1f MiB, at most %.1f\n",
			100*(round+1)/rounds, time.Since(start).Seconds(), float64(now)/(1<<20), float64(peak)/(1<<20))
		if now > first+spread || peak > firstPeak+spread {
			t.Fatal("the memory grows")
		}
	}
	done := s.end()
	seconds := time.Since(start).Seconds()
	after := takeHoldings(t)
	fmt.Printf("%s, %d changes of GOMAXPROCS, %.0f s, drift %d bytes\nat the end: %s\n",
		done, changes, seconds, after.held-before.held, after)
	after.mustBe(t, before)
	if ops >= 1_000_000 && min(done.refused, done.handed, done.heaps, done.trims, changes) == 0 {
		t.Fatal("something was never done")
	}
}
