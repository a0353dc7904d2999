//go:build cgo && linux && !cheap_nocmem && !asan && !msan

package cmem

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/cheapgo/cheap/cmem/internal/cwork"
	"github.com/google/pprof/profile"
)

func TestMain(m *testing.M) {
	if s := Off(); s != "" {
		fmt.Println(s)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// withRate sets the rate for the test, also of the calling thread, on which the goroutine stays.
func withRate(t testing.TB, bytes int) {
	old := SetRate(bytes)
	runtime.LockOSThread()
	cwork.Pairs(600, 1000) // so that the thread looks at the rate
	t.Cleanup(func() {
		SetRate(old)
		cwork.Pairs(600, 1000)
		runtime.UnlockOSThread()
	})
}

// TestCounts has threads of C that come and go: each call and each byte is counted.
func TestCounts(t *testing.T) {
	const rounds, threads, pairs, size = 20, 8, 20_000, 100
	before := Read()
	for range rounds {
		cwork.Threads(threads, pairs, size)
	}
	after := Read()
	mallocs, frees, bytes := after.Mallocs-before.Mallocs, after.Frees-before.Frees, after.Bytes-before.Bytes
	const want = rounds * threads * pairs
	// The C library allocates a little for each thread.
	if few := int64(rounds * threads * 8); mallocs < want || mallocs > want+few || frees < want || frees > want+few {
		t.Errorf("%d mallocs and %d frees, want %d", mallocs, frees, want)
	}
	if bytes < want*size || bytes > want*size+rounds*threads*4096 {
		t.Errorf("%d bytes, want %d", bytes, want*size)
	}
}

// TestEnding has threads that allocate while they end.
func TestEnding(t *testing.T) {
	withRate(t, 1)
	before, was := Read(), records()
	cwork.Ending(200)
	after := Read()
	if n := records(); n > was+20 { // the runtime starts threads, too
		t.Errorf("%d threads have a record, %d before", n, was)
	}
	if n := after.Mallocs - before.Mallocs; n < 200*4 || n > 200*12 {
		t.Errorf("%d mallocs", n)
	}
}

// TestOddEnds has threads that end in odd ways, after which their memory is gone.
func TestOddEnds(t *testing.T) {
	withRate(t, 1)
	for _, f := range []func(int){cwork.Says, cwork.Detached, cwork.Late} {
		for range 2 {
			before := Read()
			f(60) // 8 MiB of stack each; the C library keeps 40 MiB
			after := Read()
			if n := after.Mallocs - before.Mallocs; n < 0 || n > 60*20 {
				t.Errorf("%d mallocs", n)
			}
		}
	}
	if cwork.Cancelled() {
		t.Error("a thread was cancelled in malloc")
	}
}

// TestPriority has a thread of real-time priority wait for one of the lowest, on one processor: it
// sleeps, so that the other one goes on.
func TestPriority(t *testing.T) {
	withRate(t, 1)
	ms := cwork.Priority(2000)
	if ms < 0 {
		t.Log("the system refuses threads of real-time priority")
	}
	if ms > 2000 { // about 40; 33,000 if it spun
		t.Errorf("%d ms of processor time", ms)
	}
}

// TestRateChange allocates a block that was not sampled at the rate of before.
func TestRateChange(t *testing.T) {
	withRate(t, 1)
	before := Read().Live
	SetRate(DefaultRate)
	p := cwork.Alloc(0, 100)
	if n := Read().Live - before; n < 0 || n > 50_000 { // with the wrong weight half a MiB
		t.Errorf("a block of 100 bytes counts for %d", n)
	}
	cwork.Free(p)
}

// TestConform compares each function with what the C library promises.
func TestConform(t *testing.T) {
	for _, rate := range []int{0, 1, 5000} {
		withRate(t, rate)
		if s := cwork.Conform(); s != "" {
			t.Errorf("rate %d: %s", rate, s)
		}
	}
}

// TestLive compares the estimate of a rate of 1, which is exact, while blocks are freed and
// reallocated, and by threads that did not allocate them.
func TestLive(t *testing.T) {
	withRate(t, 1)
	before := Read().Live
	// The runtime starts threads meanwhile, for which the C library allocates a little.
	is := func(want int64) bool {
		n := Read().Live - before
		return want-50_000 < n && n < want+50_000
	}
	p := cwork.Alloc(3, 1_000_000)
	if !is(1_000_000) {
		t.Errorf("%d bytes after malloc", Read().Live-before)
	}
	p = cwork.Realloc(p, 3_000_000)
	if !is(3_000_000) {
		t.Errorf("%d bytes after realloc", Read().Live-before)
	}
	if q := cwork.Realloc(p, math.MaxInt64); q != nil {
		t.Fatal("memory that no system has")
	}
	if !is(3_000_000) {
		t.Errorf("%d bytes after a realloc that failed", Read().Live-before)
	}
	done := make(chan bool)
	go func() { cwork.Free(p); done <- true }()
	<-done
	if !is(0) {
		t.Errorf("%d bytes after free", Read().Live-before)
	}
}

// TestFork forks while threads allocate.
func TestFork(t *testing.T) {
	withRate(t, 4096)
	if bad := cwork.Fork(50); bad != 0 {
		t.Errorf("%d children have failed", bad)
	}
	if bad := cwork.ForkMasks(300); bad != 0 {
		t.Errorf("a thread had other signals blocked after %d forks", bad)
	}
}

// siteStacks returns what the profile says of the stacks below cwork.Site, by the number of the
// site.
func siteStacks(p *profile.Profile) map[string][]int64 {
	sums := map[string][]int64{}
	for _, s := range p.Sample {
		var k []string
		for _, l := range s.Location {
			k = append(k, fmt.Sprintf("%x", l.Address))
		}
		key := strings.Join(k, " ")
		if sums[key] == nil {
			sums[key] = make([]int64, len(s.Value))
		}
		for i, v := range s.Value {
			sums[key][i] += v
		}
	}
	return sums
}

// TestTruth allocates 4 GiB at 1,000 sites, and compares the profile with the bytes that each of
// them has allocated: the largest 20 are a factor of 1.25 apart.
func TestTruth(t *testing.T) {
	withRate(t, 16<<10)
	const sites = 1000
	want := make([]float64, sites)
	total := 0.0
	for i := range want {
		want[i] = math.Pow(1.25, -float64(min(i, 40)))
		total += want[i]
	}
	const all = 4 << 30
	before := alloced(t)
	sum := 0.0
	for i := range want {
		left := want[i] / total * all
		want[i] = 0
		for left > 0 {
			size := 1 + rand.IntN(60_000)
			cwork.Free(cwork.Site(1024+i, size))
			left -= float64(size)
			want[i] += float64(size)
			sum += float64(size)
		}
	}
	var got []float64
	for k, v := range alloced(t) {
		if d := v - before[k]; d > 0 {
			got = append(got, d)
		}
	}
	slices.SortFunc(got, func(x, y float64) int { return int(y - x) })
	gotSum := 0.0
	for _, v := range got {
		gotSum += v
	}
	if math.Abs(gotSum/sum-1) > 0.05 {
		t.Errorf("%.0f bytes in the profile, %.0f allocated", gotSum, sum)
	}
	for i, g := range got[:20] {
		if math.Abs(g/want[i]-1) > 0.2 { // six standard deviations of the last
			t.Errorf("place %d: %.0f bytes, want %.0f", i, g, want[i])
		}
	}
}

// alloced returns the bytes that each stack has allocated.
func alloced(t *testing.T) map[string]float64 {
	p, err := Profile()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]float64{}
	for k, v := range siteStacks(p) {
		all[k] = float64(v[1])
	}
	return all
}

// TestGaps compares the distances between samples with the exponential distribution.
func TestGaps(t *testing.T) {
	const rate, size, n, bins = 64 << 10, 512, 400_000, 10
	withRate(t, rate)
	var counts [bins]int
	last, all := 0, 0
	samples := Read().Samples
	for i := range n {
		cwork.Free(cwork.Alloc(0, size))
		if s := Read().Samples; s != samples {
			samples = s
			// The probability of a gap that is at most as long.
			u := -math.Expm1(-float64((i-last)*size) / rate)
			counts[min(int(u*bins), bins-1)]++
			last = i
			all++
		}
	}
	chi := 0.0
	for _, c := range counts {
		e := float64(all) / bins
		chi += (float64(c) - e) * (float64(c) - e) / e
	}
	// With 9 degrees of freedom one in 100,000 is above 39.3.
	if want := n * size / rate; math.Abs(float64(all-want)) > 6*math.Sqrt(float64(want)) || chi > 39.3 {
		t.Errorf("%d samples, want about %d; χ² %.1f: %v", all, want, chi, counts)
	}
}

// build builds cprog.
func build(t *testing.T, args ...string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "cprog")
	args = append(append([]string{"build", "-o", name}, args...), "./internal/cprog")
	if out, err := exec.Command("go", args...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return name
}

// run runs it with the environment, and returns what it says and its profile.
func run(t *testing.T, name string, env ...string) (string, *profile.Profile) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "profile")
	cmd := command(name, file)
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	p, err := profile.Parse(f)
	if err != nil {
		t.Fatal(err)
	}
	return string(out), p
}

// command returns a command that runs a program, by an emulator if it needs one.
func command(name string, args ...string) *exec.Cmd {
	all := append(strings.Fields(os.Getenv("CHEAP_TEST_EXEC")), name)
	return exec.Command(all[0], append(all[1:], args...)...)
}

// stacks returns the stacks of a profile as text, with the bytes that they have in use.
func stacks(p *profile.Profile) map[string]int64 {
	all := map[string]int64{}
	for _, s := range p.Sample {
		var names []string
		for _, l := range s.Location {
			for _, n := range l.Line {
				names = append(names, n.Function.Name)
			}
			if len(l.Line) == 0 {
				names = append(names, "?")
			}
		}
		all[strings.Join(names, " ")] += s.Value[3]
	}
	return all
}

const (
	leakC     = "cwork_site cwork_right cwork_site cwork_left cwork_site cwork_right cwork_site "
	leakGo    = "github.com/cheapgo/cheap/cmem/internal/cwork._Cfunc_cwork_site github.com/cheapgo/cheap/cmem/internal/cwork.Site main.leaky main.main runtime.main runtime.goexit"
	leakBytes = 1_000_000
)

// installed reports whether the dynamic linker finds a library.
func installed(name string) bool {
	cmd := exec.Command("true")
	cmd.Env = []string{"LD_PRELOAD=" + name} // where it is not, the dynamic linker complains
	out, err := cmd.CombinedOutput()
	return err == nil && len(out) == 0
}

// TestStacks looks for the stack of a leak in programs that are built in several ways, and with
// other allocators preloaded.
func TestStacks(t *testing.T) {
	for _, row := range []struct {
		name string
		args []string
		env  []string
		c    string // what the stack begins with
	}{
		{"plain", nil, nil, leakC},
		{"jemalloc", nil, []string{"LD_PRELOAD=libjemalloc.so.2"}, leakC},
		{"mimalloc", nil, []string{"LD_PRELOAD=libmimalloc.so.2"}, leakC},
		{"tcmalloc", nil, []string{"LD_PRELOAD=libtcmalloc_minimal.so.4"}, leakC},
		{"pie", []string{"-buildmode=pie"}, nil, leakC},
		{"race", []string{"-race"}, nil, leakC},
		{"stripped", []string{"-ldflags=-s"}, nil, "? ? ? ? ? ? ? "},
		{"filtered", nil, []string{"CPROG_REFUSE=1"}, leakC},
		{"O0", nil, []string{"CGO_CFLAGS=-O0 -fno-omit-frame-pointer"}, leakC},
		{"O0 without frame pointers", nil, []string{"CGO_CFLAGS=-O0 -fomit-frame-pointer"}, leakC},
		{"O2", nil, []string{"CGO_CFLAGS=-O2 -fno-omit-frame-pointer"}, leakC},
		{"O2 without frame pointers", nil, []string{"CGO_CFLAGS=-O2 -fomit-frame-pointer"}, leakC},
		{"no tables", nil, []string{"CGO_CFLAGS=-O2 -fno-asynchronous-unwind-tables -fno-unwind-tables"}, "cwork_site"},
	} {
		t.Run(row.name, func(t *testing.T) {
			for _, e := range row.env {
				if library, ok := strings.CutPrefix(e, "LD_PRELOAD="); ok && !installed(library) {
					t.Skip(library, "is not installed")
				}
				if flags, ok := strings.CutPrefix(e, "CGO_CFLAGS="); ok {
					t.Setenv("CGO_CFLAGS", flags) // also of this package
				}
			}
			said, p := run(t, build(t, row.args...), row.env...)
			// Other allocators differ from glibc's in what they refuse, and how.
			want := "off: \nwrong: \n"
			if row.env != nil && strings.HasPrefix(row.env[0], "LD_PRELOAD=") {
				without, _ := run(t, build(t, "-tags=cheap_nocmem"), row.env...)
				_, wrong, _ := strings.Cut(without, "wrong: ")
				want = "off: \nwrong: " + wrong
			}
			if said != want {
				t.Fatalf("%q, want %q", said, want)
			}
			all := stacks(p)
			found := false
			for s, bytes := range all {
				// The C side of the call has a name of its own.
				found = found || bytes == leakBytes && strings.HasPrefix(s, row.c) && strings.HasSuffix(s, leakGo)
				found = found || bytes == leakBytes && s == "cwork_site" && row.name == "no tables" // and no more is known
			}
			if !found {
				t.Errorf("the leak is not among %v", all)
			}
		})
	}
}

// TestMovedStack looks for a stack of C that has called Go, which has moved the stack of the
// goroutine.
func TestMovedStack(t *testing.T) {
	_, p := run(t, build(t))
	all := stacks(p)
	for s, bytes := range all {
		if bytes == 77_777 {
			if !strings.HasPrefix(s, "cwork_moved ") || !strings.HasSuffix(s, "cwork.Moved main.moved main.main.gowrap1 runtime.goexit") {
				t.Error(s)
			}
			return
		}
	}
	t.Errorf("not among %v", all)
}

// TestCalledFromC looks for a stack of C that Go has called, which C has called: it ends there.
func TestCalledFromC(t *testing.T) {
	_, p := run(t, build(t))
	found := false
	for s := range stacks(p) {
		if strings.Contains(s, "cwork.cworkGo") {
			found = true
			if !strings.HasSuffix(s, " [called from C]") || strings.Contains(s, "crosscall2") {
				t.Error(s)
			}
		}
	}
	if !found {
		t.Errorf("not found in %v", stacks(p))
	}
}

// TestOff has programs in which the package does nothing.
func TestOff(t *testing.T) {
	for _, row := range []struct {
		name, want string
		args, env  []string
	}{
		{"environment", "CHEAPCMEM is off", nil, []string{"CHEAPCMEM=off"}},
		{"static", "statically", []string{"-ldflags=-linkmode=external -extldflags=-static"}, nil},
		{"tag", "without it", []string{"-tags=cheap_nocmem"}, nil},
		{"musl", "not glibc 2.35 or newer", nil, []string{"CC=musl-gcc"}},
		{"musl static", "statically", []string{"-ldflags=-linkmode=external -extldflags=-static"}, []string{"CC=musl-gcc"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			if slices.Contains(row.env, "CC=musl-gcc") {
				if _, err := exec.LookPath("musl-gcc"); err != nil {
					t.Skip(err)
				}
				t.Setenv("CC", "musl-gcc")
			}
			said, p := run(t, build(t, row.args...), row.env...)
			if !strings.Contains(said, row.want) || !strings.HasSuffix(said, "wrong: \n") || len(p.Sample) != 0 {
				t.Errorf("%q, and %d samples", said, len(p.Sample))
			}
		})
	}
}

// BenchmarkPairs is a pair of malloc and free of 64 bytes in C.
func BenchmarkPairs(b *testing.B) { cwork.Pairs(b.N, 64) }

// BenchmarkSample is a pair of malloc and free of 64 bytes in C that are sampled.
func BenchmarkSample(b *testing.B) {
	withRate(b, 1)
	b.ResetTimer()
	cwork.Pairs(b.N, 64)
}

// BenchmarkSampleThreads has two threads do so, which wait for each other's lock.
func BenchmarkSampleThreads(b *testing.B) {
	withRate(b, 1)
	b.ResetTimer()
	cwork.Threads(2, b.N, 64)
}

// BenchmarkDeepSample is a pair whose malloc is sampled below 60 functions of C and 20 of Go.
func BenchmarkDeepSample(b *testing.B) {
	withRate(b, 1)
	below(20, func() {
		for b.Loop() {
			cwork.Free(cwork.Alloc(60, 64))
		}
	})
}

//go:noinline
func below(n int, f func()) {
	if n == 0 {
		f()
		return
	}
	below(n-1, f)
}
