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
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cheapgo/cheap/cmem/internal/cwork"
	"github.com/cheapgo/cheap/internal/test/testcall"
	"github.com/cheapgo/cheap/internal/test/testchild"
	"github.com/cheapgo/cheap/internal/test/testenv"
	"github.com/google/pprof/profile"
)

func TestMain(m *testing.M) {
	if s := Off(); s != "" {
		fmt.Println(s)
		os.Exit(1)
	}
	var err error
	if programs.dir, err = os.MkdirTemp("", "cprog"); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	code := m.Run()
	os.RemoveAll(programs.dir)
	os.Exit(code)
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

// TestRecordAgain has threads take the record of one that has ended. What that had drawn does not
// count for them: their first block is sampled no more often than others, and at a new rate at once.
func TestRecordAgain(t *testing.T) {
	withRate(t, 100_000)
	before := ReadStats().Samples
	for range 100 {
		cwork.Threads(1, 1, 1)
	}
	if n := ReadStats().Samples - before; n > 20 {
		t.Errorf("%d samples of 100 bytes in 100 threads", n)
	}
	SetRate(1 << 30)
	cwork.Threads(1, 1, 1000)
	SetRate(1)
	before = ReadStats().Samples
	if cwork.Threads(1, 100, 1000); ReadStats().Samples < before+100 {
		t.Errorf("%d samples of 100 blocks", ReadStats().Samples-before)
	}
}

// TestFreeUnseen has blocks whose free was not seen. They end when their addresses come again.
func TestFreeUnseen(t *testing.T) {
	withRate(t, 1)
	before, again := ReadStats().Live, 0
	for range 100 {
		p := cwork.Alloc(0, 1000)
		if !cwork.FreeUnseen(p) {
			t.Skip("free cannot be circumvented here")
		}
		q := cwork.Alloc(0, 1000)
		if q == p { //cheapvet:ignore cfree the addresses are compared
			again++
		}
		cwork.Free(q)
	}
	if n := ReadStats().Live - before; again < 90 || n > 50_000 {
		t.Errorf("%d addresses of 100 came again; %d bytes are left in use", again, n)
	}
}

// TestCounts has threads of C that come and go: each call and each byte is counted.
func TestCounts(t *testing.T) {
	const rounds, threads, pairs, size = 20, 8, 20_000, 100
	before := ReadStats()
	for range rounds {
		cwork.Threads(threads, pairs, size)
	}
	after := ReadStats()
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
	before, was := ReadStats(), records()
	cwork.Ending(200)
	after := ReadStats()
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
			before := ReadStats()
			f(60) // 8 MiB of stack each; the C library keeps 40 MiB
			after := ReadStats()
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
// sleeps, so that the other one goes on. TestTimePriority looks whether it does.
func TestPriority(t *testing.T) {
	withRate(t, 1)
	if cwork.Priority(300) < 0 {
		t.Log("the system refuses threads of real-time priority")
	}
}

// TestRateChange allocates a block that was not sampled at the rate of before.
func TestRateChange(t *testing.T) {
	withRate(t, 1)
	before := ReadStats().Live
	SetRate(DefaultRate)
	p := cwork.Alloc(0, 100)
	if n := ReadStats().Live - before; n < 0 || n > 50_000 { // with the wrong weight half a MiB
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
	before := ReadStats().Live
	// The runtime starts threads meanwhile, for which the C library allocates a little.
	is := func(want int64) bool {
		n := ReadStats().Live - before
		return want-50_000 < n && n < want+50_000
	}
	p := cwork.Alloc(3, 1_000_000)
	if !is(1_000_000) {
		t.Errorf("%d bytes after malloc", ReadStats().Live-before)
	}
	p = cwork.Realloc(p, 3_000_000)
	if !is(3_000_000) {
		t.Errorf("%d bytes after realloc", ReadStats().Live-before)
	}
	if q := cwork.Realloc(p, math.MaxInt64); q != nil {
		t.Fatal("memory that no system has")
	}
	if !is(3_000_000) {
		t.Errorf("%d bytes after a realloc that failed", ReadStats().Live-before)
	}
	testcall.Aside(func() { cwork.Free(p) })
	if !is(0) {
		t.Errorf("%d bytes after free", ReadStats().Live-before)
	}
}

// TestFork forks while threads allocate.
func TestFork(t *testing.T) {
	testenv.Skip(t, "emulator", "each fork takes a second")
	withRate(t, 4096)
	children, each := 20, 100
	if isLong() {
		children, each = 50, 300
	}
	if bad := cwork.Fork(children); bad != 0 {
		t.Errorf("%d children have failed", bad)
	}
	if bad := cwork.ForkQuiet(children); bad != 0 {
		t.Errorf("%d children have taken a sample", bad)
	}
	if bad := cwork.ForkMasks(each); bad != 0 {
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

// TestTruth allocates at 1,000 sites, and compares the profile with the bytes that each of them has
// allocated: the largest are a factor of 1.25 apart. The long form allocates 4 GiB, and looks at 20
// of them.
func TestTruth(t *testing.T) {
	all, places := 1<<30, 12
	if isLong() {
		all, places = 4<<30, 20
	}
	withRate(t, 16<<10)
	const sites = 1000
	want := make([]float64, sites)
	total := 0.0
	for i := range want {
		want[i] = math.Pow(1.25, -float64(min(i, 40)))
		total += want[i]
	}
	before := alloced(t)
	sum := 0.0
	for i := range want {
		left := want[i] / total * float64(all)
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
	if !unwinds() {
		return // the sites are told apart by the functions of C that have called malloc's caller
	}
	for i, g := range got[:places] {
		if math.Abs(g/want[i]-1) > 0.2 { // at least six standard deviations of the last
			t.Errorf("place %d: %.0f bytes, want %.0f", i, g, want[i])
		}
	}
}

// unwinds reports whether stacks have all functions of C, and not only the one that has called malloc, as with musl.
func unwinds() bool {
	was := cwork.TablesAs(cwork.NoTables)
	cwork.TablesAs(was)
	return was != cwork.NoTables
}

// alloced returns the bytes that each stack has allocated.
func alloced(t *testing.T) map[string]float64 {
	p, err := Profile()
	testcall.Must(t, err)
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
	samples := ReadStats().Samples
	for i := range n {
		cwork.Free(cwork.Alloc(0, size))
		if s := ReadStats().Samples; s != samples {
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

// programs are those that build has built, by their arguments.
var programs struct {
	dir    string // which TestMain removes
	made   atomic.Int64
	byArgs sync.Map // functions that return the name of the file, and an error
}

// build builds cprog with variables for the build, once for all tests.
func build(t *testing.T, env []string, args ...string) string {
	t.Helper()
	made, _ := programs.byArgs.LoadOrStore(fmt.Sprintf("%q %q", env, args), sync.OnceValues(func() (string, error) {
		name := filepath.Join(programs.dir, fmt.Sprint("cprog", programs.made.Add(1)))
		return name, testchild.Build(name, env, append(slices.Clone(args), "./internal/cprog")...)
	}))
	name, err := made.(func() (string, error))()
	testcall.Must(t, err)
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
	return string(out), parse(t, file)
}

// parse reads a profile from a file.
func parse(t *testing.T, file string) *profile.Profile {
	t.Helper()
	data, err := os.ReadFile(file)
	testcall.Must(t, err)
	p, err := profile.ParseData(data)
	testcall.Must(t, err)
	return p
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
				name := n.Function.Name
				if strings.Contains(name, "+0x") { // it has no symbol
					name = "?"
				}
				names = append(names, name)
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
//
// Programs for which the standard library, or all of cgo, is compiled again need the flag -cmem.builds.
func TestStacks(t *testing.T) {
	testenv.Skip(t, "musl", "the C part of a stack is only what has called malloc")
	t.Parallel()
	for _, row := range []struct {
		name string
		args []string
		env  []string // of the build
		run  []string // of the program
		c    string   // what the stack begins with
	}{
		{"plain", nil, nil, nil, leakC},
		{"jemalloc", nil, nil, []string{"LD_PRELOAD=libjemalloc.so.2"}, leakC},
		{"mimalloc", nil, nil, []string{"LD_PRELOAD=libmimalloc.so.2"}, leakC},
		{"tcmalloc", nil, nil, []string{"LD_PRELOAD=libtcmalloc_minimal.so.4"}, leakC},
		{"pie", []string{"-buildmode=pie"}, nil, nil, leakC},
		{"race", []string{"-race"}, nil, nil, leakC},
		{"stripped", []string{"-ldflags=-s"}, nil, nil, "? ? ? ? ? ? ? "},
		{"filtered", nil, nil, []string{"CPROG_REFUSE=1"}, leakC},
		{"killed by a filter", nil, nil, []string{"CPROG_REFUSE=kill"}, leakC},
		{"O0", nil, []string{"CGO_CFLAGS=-O0 -fno-omit-frame-pointer"}, nil, leakC},
		{"O0 without frame pointers", nil, []string{"CGO_CFLAGS=-O0 -fomit-frame-pointer"}, nil, leakC},
		{"O2", nil, []string{"CGO_CFLAGS=-O2 -fno-omit-frame-pointer"}, nil, leakC},
		{"O2 without frame pointers", nil, []string{"CGO_CFLAGS=-O2 -fomit-frame-pointer"}, nil, leakC},
		{"musl", nil, []string{"CC=musl-gcc"}, nil, "cwork_site "},
		{"no tables", nil, []string{"CGO_CFLAGS=-O2 -fno-asynchronous-unwind-tables -fno-unwind-tables"}, nil, "cwork_site"},
	} {
		if other := row.env != nil || row.args != nil && row.name != "stripped"; other && !*builds {
			continue
		}
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			if row.run != nil {
				testenv.Skip(t, "emulator", "libraries are of this processor, and an emulator has no filters of system calls")
			}
			if slices.Contains(row.env, "CC=musl-gcc") {
				if _, err := exec.LookPath("musl-gcc"); err != nil {
					t.Skip(err)
				}
			}
			preloads := false
			for _, e := range row.run {
				if library, ok := strings.CutPrefix(e, "LD_PRELOAD="); ok {
					if preloads = true; !installed(library) {
						testenv.Skip(t, "debian11", "there is another version of mimalloc")
						t.Skip(library, "is not installed")
					}
				}
			}
			said, p := run(t, build(t, row.env, row.args...), row.run...)
			// Other allocators differ from glibc's in what they refuse, and how.
			want := "off: \nwrong: \n"
			if preloads {
				without, _ := run(t, build(t, nil, "-tags=cheap_nocmem"), row.run...)
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

// TestNotDumpable starts programs that are not dumpable, because they may not read their own file.
// One says later that it is dumpable: stacks of Go are found from then on, by one file that is opened
// once. Another one installs a filter that kills for the call by which a stack could be read.
func TestNotDumpable(t *testing.T) {
	testenv.Skip(t, "musl", "the C part of a stack is only what has called malloc")
	t.Parallel()
	if os.Getenv("CHEAP_TEST_EXEC") != "" {
		return // the emulator would have to read the program
	}
	program, err := os.ReadFile(build(t, nil))
	testcall.Must(t, err)
	dir := t.TempDir()
	for _, d := range []string{filepath.Dir(dir), dir} {
		testcall.Must(t, os.Chmod(d, 0o777))
	}
	name := filepath.Join(dir, "cprog")
	syscall.ForkLock.RLock() // else a child of another test may have the file open, which cannot be started then
	err = os.WriteFile(name, program, 0o700)
	syscall.ForkLock.RUnlock()
	if err == nil {
		err = os.Chmod(name, 0o111)
	}
	testcall.Must(t, err)
	for _, row := range []struct {
		env, said, stack string // the end of the stack: names of C are in the file
	}{
		{"CPROG_NOTHING=1", "off: \nwrong: \n", leakGo},
		{"CPROG_DUMPABLE=1", "off: \nwrong: \nopened: 1\n", leakGo},
		{"CPROG_REFUSE=1", "off: \nwrong: \n", ""},
		{"CPROG_REFUSE=kill", "off: \nwrong: \n", ""},
	} {
		t.Run(row.env, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(dir, "profile of "+row.env)
			cmd := exec.Command(name, file)
			cmd.Env = append(os.Environ(), row.env)
			if os.Getuid() == 0 { // who may read everything
				cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
			}
			out, err := cmd.CombinedOutput()
			if err != nil || string(out) != row.said {
				t.Fatalf("%q, want %q; %v", out, row.said, err)
			}
			all := stacks(parse(t, file))
			for s, bytes := range all {
				if bytes >= leakBytes && strings.HasSuffix(s, row.stack) { // without Go, stacks of different callers are one
					return
				}
			}
			t.Errorf("the leak is not among %v", all)
		})
	}
}

// TestMovedStack looks for a stack of C that has called Go, which has moved the stack of the
// goroutine.
func TestMovedStack(t *testing.T) {
	t.Parallel()
	_, p := run(t, build(t, nil))
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

// TestOff has programs in which the package does nothing.
func TestOff(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name, want string
		args       []string
		env        []string // of the build
		run        []string // of the program
	}{
		{"environment", "CHEAP_CMEM is off", nil, nil, []string{"CHEAP_CMEM=off"}},
		{"static", "link it without -static", []string{"-ldflags=-linkmode=external -extldflags=-static"}, nil, nil},
		{"tag", "without it", []string{"-tags=cheap_nocmem"}, nil, nil},
		{"address", "is built with a sanitizer", nil, []string{"CGO_CFLAGS=-O1 -fsanitize=address", "CGO_LDFLAGS=-fsanitize=address"}, []string{"ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1"}},
		{"thread", "is built with a sanitizer", nil, []string{"CGO_CFLAGS=-O1 -fsanitize=thread", "CGO_LDFLAGS=-fsanitize=thread"}, []string{"TSAN_OPTIONS=allocator_may_return_null=1"}},
		{"musl static", "link it without -static", []string{"-ldflags=-linkmode=external -extldflags=-static"}, []string{"CC=musl-gcc"}, nil},
	} {
		if row.env != nil && !*builds {
			continue
		}
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			if slices.Contains(row.env, "CC=musl-gcc") {
				if _, err := exec.LookPath("musl-gcc"); err != nil {
					t.Skip(err)
				}
			}
			said, p := run(t, build(t, row.env, row.args...), row.run...)
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
	testcall.Deep(20, func() {
		for b.Loop() {
			cwork.Free(cwork.Alloc(60, 64))
		}
	})
}
