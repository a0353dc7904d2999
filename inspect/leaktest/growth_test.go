package leaktest

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/cheapgo/cheap/internal/test/testcall"
	"github.com/cheapgo/cheap/internal/watch/census"
)

// look lets a growth see stacks, each of which has in use after a call what its function says. It returns the numbers of
// those that leak, and how many calls were made.
func look(runs int, stacks ...func(call int) (blocks, bytes float64)) (leaks []int, calls int) {
	g := newGrowth(runs)
	for ; g.goesOn(); g.end() {
		read := func() {
			sum := 0.0
			now := make([]amount, len(stacks))
			for i, f := range stacks {
				now[i].blocks, now[i].bytes = f(calls)
				sum += now[i].blocks
			}
			g.add(allStacks, sum, 0)
			for i, a := range now {
				if a != (amount{}) {
					g.add(i, a.blocks, a.bytes)
				}
			}
		}
		for range g.length() {
			if calls++; g.now != warmUp {
				read()
			}
		}
		if g.now > 0 {
			read()
		}
	}
	for _, l := range g.leaks() {
		leaks = append(leaks, l.number)
	}
	slices.Sort(leaks)
	return leaks, calls
}

func blocksOnly(f func(call int) float64) func(int) (float64, float64) {
	return func(call int) (float64, float64) { n := f(call); return n, 16 * n }
}

func TestGrowth(t *testing.T) {
	const all = 3200
	for _, row := range []struct {
		name  string
		f     func(call int) float64
		leaks bool
		calls int // 0: some
	}{
		{"nothing", func(int) float64 { return 0 }, false, 200},
		{"constant", func(int) float64 { return 7 }, false, 200},
		{"one in each call", func(call int) float64 { return float64(call) }, true, all},
		{"one in 100 calls", func(call int) float64 { return float64(call / 100) }, true, all},
		{"one in 100 calls, later", func(call int) float64 { return float64((call + 51) / 100) }, true, all},
		{"one in 100 calls, and what comes and goes", func(call int) float64 { return float64(call/100 + 50*(call%7)) }, true, all},
		{"a cache of 150", func(call int) float64 { return float64(min(call, 150)) }, false, 400},
		{"a cache of 2,500", func(call int) float64 { return float64(min(call, 2500)) }, false, all},
		{"once, in call 150", func(call int) float64 { return float64(min(call/150, 1)) }, false, 400},
		{"once, in call 300", func(call int) float64 { return float64(min(call/300, 1)) }, false, 200},
		{"emptied in each 64th call", func(call int) float64 { return float64(call % 64) }, false, 400},
		{"emptied in each 90th call", func(call int) float64 { return float64(call % 90) }, false, 400},
		{"less and less", func(call int) float64 { return float64(5000 - call) }, false, 200},
	} {
		leaks, calls := look(100, blocksOnly(row.f))
		if got := slices.Contains(leaks, 0); got != row.leaks || row.calls != 0 && calls != row.calls {
			t.Errorf("%s: leaks: %v, %d calls; want %v, %d", row.name, got, calls, row.leaks, row.calls)
		}
	}
	if leaks, calls := look(10, blocksOnly(func(call int) float64 { return float64(call / 10) })); len(leaks) != 1 || calls != all/10 {
		t.Errorf("10 calls: %v after %d", leaks, calls)
	}
}

// TestGrowthBytes has a block that grows.
func TestGrowthBytes(t *testing.T) {
	double := func(call int) (blocks, bytes float64) {
		for bytes = 16; bytes < float64(call); bytes *= 2 {
		}
		return 1, bytes
	}
	high := func(call int) (blocks, bytes float64) { return 1, float64(min(call, 1000)) }
	if leaks, _ := look(100, high, double); !slices.Equal(leaks, []int{1}) {
		t.Errorf("%v", leaks)
	}
}

// TestGrowthReplaced has a cache that was full before, of blocks that no stack is known of. Each new block has one of its
// own, and all together stay as many.
func TestGrowthReplaced(t *testing.T) {
	old := blocksOnly(func(call int) float64 { return 5000 - float64(call) })
	young := blocksOnly(func(call int) float64 { return float64(call) })
	leak := blocksOnly(func(call int) float64 { return float64(call / 100) })
	if leaks, _ := look(100, old, young); len(leaks) != 0 {
		t.Errorf("%v", leaks)
	}
	if leaks, _ := look(100, old, young, leak); !slices.Equal(leaks, []int{2}) {
		t.Errorf("with a leak: %v", leaks)
	}
}

// TestGrowthMany has a leak that no single stack has.
func TestGrowthMany(t *testing.T) {
	var stacks []func(int) (float64, float64)
	for i := range 200 {
		stacks = append(stacks, blocksOnly(func(call int) float64 { return float64(min(1, call/(1+16*i))) }))
	}
	if leaks, _ := look(100, stacks...); !slices.Equal(leaks, []int{allStacks}) {
		t.Errorf("%v", leaks)
	}
}

// TestGrowthByChance has 500 programs in which what is in use changes by chance, around what it is in the mean: none
// leaks. 500 more leak a block in 100 calls beside that, and all are found.
func TestGrowthByChance(t *testing.T) {
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 1))
		queue := 0
		kinds := []func(int) float64{
			func(int) float64 { return float64(r.IntN(100)) },
			func(int) float64 { return float64(1000 + r.IntN(3)) },
			func(int) float64 { queue = min(max(queue+r.IntN(3)-1, 0), 30); return float64(queue) },
			func(int) float64 { return float64(r.IntN(200) / 199) },
		}
		for kind, f := range kinds {
			if leaks, _ := look(100, blocksOnly(f)); len(leaks) != 0 {
				t.Errorf("program %d of kind %d: %v", seed, kind, leaks)
			}
		}
		leak := func(call int) float64 { return float64(call / 100) }
		if leaks, _ := look(100, blocksOnly(kinds[1]), blocksOnly(leak)); !slices.Equal(leaks, []int{1}) {
			t.Errorf("program %d with a leak: %v", seed, leaks)
		}
	}
}

// A counting is a C heap of which a stack grows by a block in each reading.
type counting struct {
	census.CHeap
	off              string
	ready            bool // it is off until Track
	n                int
	tracked, stopped bool
}

func (c *counting) Off() string {
	if c.ready && !c.tracked {
		return "it is not on yet"
	}
	return c.off
}
func (c *counting) Read() census.CCounts                    { c.n++; return census.CCounts{Mallocs: int64(c.n)} }
func (c *counting) Track() (stop func())                    { c.tracked = true; return func() { c.stopped = true } }
func (c *counting) EachStack(f func(int, float64, float64)) { f(3, float64(c.n), 16*float64(c.n)) }
func (c *counting) Named(numbers []int) []census.CSuspect {
	all := make([]census.CSuspect, len(numbers))
	for i, n := range numbers {
		if n == 3 {
			all[i] = census.CSuspect{Library: "libx.so.1", Stack: "x_new\n\t/lib/libx.so.1\nmain.f\n\tf.go:7\n" +
				"github.com/cheapgo/cheap/inspect/leaktest.CheckC\n\tcheckc.go:1\n"}
		}
	}
	return all
}

func (f *fake) Failed() bool                      { return len(f.failed) > 0 }
func (f *fake) Fatalf(format string, args ...any) { f.Errorf(format, args...) }
func (f *fake) Logf(format string, args ...any)   { f.logged = append(f.logged, format) }

func TestCheckC(t *testing.T) {
	with := func(c census.CHeap, body func(f *fake), opts ...Option) *fake {
		defer census.SetCHeap(census.SetCHeap(c))
		f := &fake{name: "Fake"}
		CheckC(f, func() { body(f) }, opts...)
		return f
	}
	calls := 0
	count := func(*fake) { calls++ }
	mustFail(t, with(nil, count).failed, `import _ "github.com/cheapgo/cheap/cmem"`)
	if f := with(&counting{off: "it is off"}, count); calls != 1 || len(f.failed) != 0 || len(f.logged) != 1 {
		t.Errorf("off: %d calls, %v, %v", calls, f.failed, f.logged)
	}
	c := &counting{}
	calls = 0
	mustFail(t, with(c, count, Runs(2)).failed,
		"leaktest: C holds 65 blocks more, of 1040 bytes, after 64 calls; made in libx.so.1 by\nx_new\n\t/lib/libx.so.1\nmain.f\n\tf.go:7")
	if calls != 64 || !c.tracked || !c.stopped {
		t.Errorf("%d calls, %+v", calls, c)
	}
	calls = 0
	if mustFail(t, with(&counting{ready: true}, count, Runs(2)).failed, "C holds 65 blocks more"); calls != 64 {
		t.Errorf("%d calls where samples are turned on by the check", calls)
	}
	mustFail(t, with(&counting{}, count, Runs(2), IgnoreC("libx.so*")).failed)
	mustFail(t, with(&counting{}, count, Runs(2), IgnoreC("main.f")).failed)
	mustFail(t, with(&counting{}, count, Runs(2), IgnoreC("main.g")).failed, "libx.so.1")
	calls = 0
	mustFail(t, with(&counting{}, func(f *fake) { calls++; f.Errorf("wrong") }).failed, "wrong")
	if calls != 1 {
		t.Errorf("%d calls after a failure", calls)
	}
	if len(checks.names) != 0 {
		t.Errorf("%q are checked in the end", checks.names)
	}
	if v, _ := testcall.Catch(func() { Runs(-1) }).(string); !strings.Contains(v, "leaktest: Runs: a negative number") {
		t.Error(v)
	}
}
