package resident

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

const mib = 1 << 20

// A planted program is a reading that something is wrong with, or nothing, and what a person would say
// who looks at it. change makes the reading of step i, of 10 that are ten seconds apart; nil means that
// there is one reading only.
type planted struct {
	name   string
	change func(r *Reading, i int64)
	about  About
	says   []string // parts of the sentence and of what to do
}

// healthy is a server with a Go heap of 80 MiB, half of it garbage or free, and 20 MiB of C.
func healthy() *Reading {
	return &Reading{
		Go: Go{Objects: 60 * mib, Idle: 20 * mib, Stacks: mib, Runtime: 4 * mib, Live: 40 * mib, Percent: 100, Goroutines: 50},
		C:  C{Known: true, Live: 20 * mib, Libraries: []Holder{{Name: "libsqlite3.so.0", Bytes: 18 * mib}}},
		Kernel: Kernel{
			Resident: 125 * mib, Anonymous: 110 * mib, File: 15 * mib, Threads: 12,
		},
	}
}

// more adds anonymous bytes.
func (r *Reading) more(n int64) {
	r.Kernel.Anonymous, r.Kernel.Resident = r.Kernel.Anonymous+n, r.Kernel.Resident+n
}

var plantedPrograms = []planted{
	{"healthy, once", nil, AboutNothing, []string{"nothing stands out", "Go heap in use"}},
	{"healthy, with a heap that goes up and down", func(r *Reading, i int64) {
		r.Go.Live, r.Go.Objects = (40+i%3*20)*mib, (60+i%3*30)*mib
		r.more(i % 3 * 30 * mib)
	}, AboutNothing, nil},
	{"healthy, with a cache in C that is full", func(r *Reading, i int64) {
		r.C.Live = 400 * mib
		r.more(400 * mib)
	}, AboutNothing, []string{"C in use", "libsqlite3.so.0"}},
	{"healthy, after a start that has filled a cache", func(r *Reading, i int64) {
		r.C.Live += min(i, 3) * 40 * mib
		r.more(min(i, 3) * 40 * mib)
	}, AboutNothing, nil},
	{"healthy, with a full cache in C that gives nothing", func(r *Reading, i int64) {
		r.C.Live = 400 * mib
		r.more(400 * mib)
		r.Pace.Keepers = []Keeper{{"pages", 380 * mib, 3, 100 * mib, mib, false}, {"other", -1, 4, 10 * mib, 0, false}}
	}, AboutCache, []string{`the cache "pages" frees nothing`, "asked for 100 MiB", "1.00 MiB became free", "holds 380 MiB", "pace.OnPressure"}},
	{"a cache whose function waits", func(r *Reading, i int64) {
		r.Pace.Keepers = []Keeper{{Name: "pages", Held: -1, Misses: 1, Asked: 100 * mib, Slow: true}}
	}, AboutCache, []string{`the cache "pages"`, "for more than a second", "goroutine profile"}},
	{"a leak in C", func(r *Reading, i int64) {
		r.C.Live += i * 20 * mib
		r.C.Error = (3 + i/9) * mib
		r.C.Growing = Growing{Over: 10 * time.Second, Sites: []Site{{Library: "app", Grown: 19 * mib, GrownError: 2 * mib, Stack: "malloc_it\n\tx.c:1\nmain._Cfunc_find\n\t_cgo:1\nmain.find\n\tm.go:2\nmain.find\n\tm.go:3\nmain.main\n\tm.go:9\n"}, {Grown: mib, Stack: "main.find\n\tm.go:2\nmain.main\n"}, {Grown: mib, Stack: "x"}}}
		r.more(i * 20 * mib)
	}, AboutCGrows, []string{"C: 200 MiB ± 4.00 MiB in use and growing by 180 MiB ± 5.00 MiB in 1m30s", "the most in main.find m.go:2, called by main.main (app) by 19.0 MiB ± 2.00 MiB in 10s, and less in 1 other place"}},
	{"a leak in C of blocks that are hardly written to", func(r *Reading, i int64) {
		r.C.Live += i * 200 * mib
		r.more(i * 20 * mib)
	}, AboutCGrows, []string{"C: 1.78 GiB in use, of which 229 MiB are resident, and growing by 209 MiB in 1m30s"}},
	{"healthy, with a block of C that is hardly written to", func(r *Reading, i int64) {
		r.C.Live = 900 * mib
		r.more(100 * mib)
	}, AboutNothing, []string{"of 225 MiB the most, 149 MiB, is C in use, where 900 MiB are allocated, most of it not written to"}},
	{"a leak in C, while a place that was looked at has grown by a tenth of it", func(r *Reading, i int64) {
		r.C.Live += i * 20 * mib
		r.C.Growing = Growing{Over: 10 * time.Second, Sites: []Site{{Library: "app", Grown: 2 * mib, Stack: "main.innocent\n"}}}
		r.more(i * 20 * mib)
	}, AboutCGrows, []string{"growing by 180 MiB in 1m30s. To do: see the profile"}},
	{"a leak in C, without cmem", func(r *Reading, i int64) {
		r.C = C{}
		r.more(i * 20 * mib)
	}, AboutCGrows, []string{"growing by 180 MiB in 1m30s", "cmem"}},
	{"a leak in C that was swapped out", func(r *Reading, i int64) {
		r.C = C{}
		r.Kernel.Swap = 600 * mib
	}, AboutSwap, []string{"600 MiB swapped out"}},
	{"malloc keeps it", func(r *Reading, i int64) {
		r.C.Live = 60 * mib
		r.Malloc = Malloc{Known: true, Arenas: 31}
		r.more(1100 * mib)
	}, AboutMallocFree, []string{"C holds", "60.0 MiB in use", "free inside malloc in 31 arenas", "To do: call libc.Trim"}},
	{"malloc keeps it, in bounded arenas", func(r *Reading, i int64) {
		r.Malloc = Malloc{Known: true, Arenas: 2, Bounded: true}
		r.more(300 * mib)
	}, AboutMallocFree, []string{"libc.Trim"}},
	{"malloc keeps it, and nobody knows in how many arenas", func(r *Reading, i int64) {
		r.more(300 * mib)
	}, AboutMallocFree, []string{"To do: call libc.Trim, which"}},
	{"malloc keeps it, in huge pages", func(r *Reading, i int64) {
		r.Mappings = &Mappings{All: Sum{Resident: 140 * mib}, List: []Sum{{Resident: 120 * mib, Huge: 96 * mib, Count: 1, is: isMalloc}, {Resident: 20 * mib, is: isProgram}}}
	}, AboutMallocFree, []string{"100 MiB free inside malloc in 1 arenas; 96.0 MiB are in huge pages", "libc.Trim", "glibc.malloc.hugetlb=0"}},
	{"huge pages in a program of which nobody counts C", func(r *Reading, i int64) {
		r.C, r.Mappings = C{}, &Mappings{All: Sum{Resident: 60 * mib}, List: []Sum{{Resident: 40 * mib, Huge: 36 * mib, Count: 1, is: isMalloc}, {Resident: 20 * mib, is: isProgram}}}
	}, AboutNothing, []string{"is in malloc; 36.0 MiB are in huge pages"}},
	{"a server that is far from its limit, and gives back by itself", func(r *Reading, i int64) {
		r.Malloc = Malloc{Known: true, Arenas: 31, Gives: true}
		r.Pace.Limit = 2000 * mib
		r.more(300 * mib)
	}, AboutNothing, []string{"free in"}},
	{"a server that is far from its limit, in which pace counts little", func(r *Reading, i int64) {
		r.Malloc = Malloc{Known: true, Arenas: 2}
		r.Pace.Limit = 800 * mib
		r.more(200 * mib)
	}, AboutNothing, []string{"free in"}},
	{"a server that is near its limit, and gives back by itself", func(r *Reading, i int64) {
		r.Malloc = Malloc{Known: true, Arenas: 31, Gives: true}
		r.Pace.Limit = 2000 * mib
		r.Cgroup = Cgroup{Known: true, Limit: 600 * mib, Charged: 500 * mib}
		r.more(300 * mib)
	}, AboutMallocFree, []string{"go back by themselves"}},
	{"pools with small sizes", func(r *Reading, i int64) {
		r.Pools = []Holder{{"images", 78 * mib, 1000}}
		r.C.Live = 250 * mib
		r.more(230 * mib)
	}, AboutSizes, []string{"pools declare 78.0 MiB", "malloc holds 250 MiB", "sizes are too small"}},
	{"pools without sizes", func(r *Reading, i int64) {
		r.Pools = []Holder{{"images", 1000 * 4096, 1000}}
		r.C.Live = 250 * mib
		r.more(230 * mib)
	}, AboutSizes, []string{"1000 resources without a size"}},
	{"pools without sizes, most of whose owners were released after the mappings were read", func(r *Reading, i int64) {
		r.Pools = []Holder{{"images", 500 * 4096, 500}}
		r.C.Live = 3 * mib
		r.Mappings = &Mappings{All: Sum{Resident: 140 * mib}, List: []Sum{{Resident: 120 * mib, Count: 1, is: isBlock}, {Resident: 20 * mib, is: isProgram}}}
	}, AboutNothing, nil},
	{"healthy, with pools beside a cache in C of which nobody has told", func(r *Reading, i int64) {
		declared := (60 + i%3*30) * mib
		r.Pools = []Holder{{"images", declared, declared / mib}}
		r.C.Live = 140*mib + declared
		r.more(120*mib + declared)
	}, AboutNothing, []string{"C in use"}},
	{"pools with small sizes, whose owners come and go", func(r *Reading, i int64) {
		declared := (60 + i%3*30) * mib
		r.Pools = []Holder{{"images", declared, declared / mib}}
		r.C.Live = 3 * declared
		r.more(3 * declared)
	}, AboutSizes, []string{"sizes are too small"}},
	{"a pool whose owners stay", func(r *Reading, i int64) {
		r.Pools = []Holder{{"images", i * 30 * mib, i * 30}, {"fonts", 10 * mib, 7}}
		r.C.Live += 10*mib + i*30*mib
		r.more(10*mib + i*30*mib)
	}, AboutPoolGrows, []string{"pool images", "270 owners"}},
	{"a heap of cheap that is not freed", func(r *Reading, i int64) {
		r.Heaps = []Holder{{"sessions", i * 30 * mib, i}, {"default", 3 * mib, 7}}
		r.Cheap.InUse = i*30*mib + 3*mib
		r.more(r.Cheap.InUse)
	}, AboutHeapGrows, []string{"heap sessions", "WriteHeap"}},
	{"goroutines that wait", func(r *Reading, i int64) {
		r.Go.Goroutines, r.Go.Stacks = 40_000, 160*mib
		r.more(160 * mib)
	}, AboutRoutines, []string{"40000 goroutines"}},
	{"a Go map that grows", func(r *Reading, i int64) {
		r.Go.Live += i * 20 * mib
		r.Go.Objects = r.Go.Live * 3 / 2
		r.more(i * 30 * mib)
	}, AboutGoGrows, []string{"220 MiB reachable and growing"}},
	{"a Go heap that was large", func(r *Reading, i int64) {
		r.Go.Idle = 900 * mib
		r.more(900 * mib)
	}, AboutGoIdle, []string{"900 MiB of the Go heap are free", "no leak"}},
	{"GOGC=off", func(r *Reading, i int64) {
		r.Go.Objects, r.Go.Percent = 900*mib, -1
		r.more(900 * mib)
	}, AboutGoGarbage, []string{"GOGC is off"}},
	{"idle heaps of cheap", func(r *Reading, i int64) {
		r.Cheap.Idle = 300 * mib
		r.more(300 * mib)
	}, AboutCheapIdle, []string{"a Heap of its own"}},
	{"healthy: heaps and malloc that are filled again and again", func(r *Reading, i int64) {
		r.Cheap.Idle = i % 2 * 300 * mib
		r.more(300 * mib)
		r.C.Live += (1 - i%2) * 300 * mib
	}, AboutNothing, nil},
	{"page cache in a container", func(r *Reading, i int64) {
		r.Cgroup = Cgroup{Known: true, Charged: 900 * mib, Limit: 1024 * mib, Cache: 780 * mib, Anonymous: 112 * mib}
	}, AboutPageCache, []string{"page cache, not a leak"}},
	{"a leak in C in a container that is full of page cache", func(r *Reading, i int64) {
		r.C.Live += i * 20 * mib
		r.more(i * 20 * mib)
		r.Cgroup = Cgroup{Known: true, Charged: 1000 * mib, Limit: 1024 * mib, Cache: (880 - i*20) * mib, Anonymous: (112 + i*20) * mib}
	}, AboutCGrows, []string{"C: 200 MiB in use and growing"}},
	{"files in memory", func(r *Reading, i int64) {
		r.Cgroup = Cgroup{Known: true, Charged: 900 * mib, Limit: 1024 * mib, Shared: 780 * mib, Anonymous: 112 * mib}
	}, AboutSharedFiles, []string{"/dev/shm"}},
	{"other processes of the container", func(r *Reading, i int64) {
		r.Cgroup = Cgroup{Known: true, Charged: 900 * mib, Limit: 1024 * mib, Anonymous: 880 * mib}
	}, AboutOthers, []string{"other processes"}},
	{"threads with large stacks", func(r *Reading, i int64) {
		r.Kernel.Threads = 700
		r.Mappings = &Mappings{All: Sum{Resident: 200 * mib}, List: []Sum{{Resident: 20 * mib, is: isProgram}, {Resident: 180 * mib, is: isThread}}}
		r.Threads = []Threads{{"libx.so", 600, 0, 150 * mib}, {"Go", 100, 90, 30 * mib}}
	}, AboutThreads, []string{"700 threads, most of them begun by libx.so, have 180 MiB", "goroutines call libx.so at a time"}},
	{"idle threads of OpenMP", func(r *Reading, i int64) {
		r.Threads = []Threads{{"libgomp.so.1", 448, 440, 4 * mib}, {"Go", 200, 190, mib}}
		r.Go.Outside = 100
	}, AboutThreads, []string{"448 threads were begun by libgomp.so.1, 440 of them idle, with 4.00 MiB of stacks; the kernel has 7.00 MiB for them", "OMP_NUM_THREADS"}},
	{"thousands of threads, whose mappings are too many for a look", func(r *Reading, i int64) {
		r.Threads = []Threads{{By: "Go", Count: 20}, {By: "C", Count: 4000}}
	}, AboutThreads, []string{"4000 threads were begun by C; the kernel has 62.5 MiB for them", "goroutines call C at a time"}},
	{"healthy, with many threads that have work, or a machine with many processors", func(r *Reading, i int64) {
		r.Kernel.CPUs = 64
		r.Threads = []Threads{{"libgomp.so.1", 448, 448, 4 * mib}, {"Go", 700, 690, 9 * mib}}
		r.Go.Outside = 600
	}, AboutNothing, nil},
	{"wasm that grows", func(r *Reading, i int64) {
		r.Mappings = &Mappings{All: Sum{Resident: (20 + 30*i) * mib}, List: []Sum{{Resident: 20 * mib, is: isProgram}, {Resident: 30 * i * mib, is: isSandbox}}}
	}, AboutMappingGrows, []string{"wasm", "growing"}},
	{"a mapped file", func(r *Reading, i int64) {
		r.Mappings = &Mappings{All: Sum{Resident: 320 * mib}, List: []Sum{{Resident: 20 * mib, is: isProgram}, {Name: "words.db", Resident: 300 * mib, is: isFile}}}
	}, AboutNothing, []string{"files that are mapped", "page cache"}},
	{"large blocks of malloc whose headers may not be read", func(r *Reading, i int64) {
		r.C = C{}
		r.Mappings = &Mappings{All: Sum{Resident: (20 + 30*i) * mib}, Unread: true, List: []Sum{
			{Resident: 30 * i * mib, large: 30 * i * mib, is: isAnonymous}, {Resident: 20 * mib, is: isProgram},
		}}
	}, AboutMappingGrows, []string{"or in blocks of malloc", "growing"}},
	{"a Go heap that is larger and larger, seen from outside", func(r *Reading, i int64) {
		r.Go, r.C = Go{}, C{}
		r.Mappings = &Mappings{All: Sum{Resident: (40 + 30*i) * mib}, List: []Sum{{Resident: (20 + 30*i) * mib, Count: 1, is: isGoHeap}, {Resident: 20 * mib, is: isProgram}}}
	}, AboutGoGrows, []string{"the Go heap has 290 MiB, and had 20.0 MiB 1m30s before: of reachable objects, garbage or stacks of goroutines"}},
	{"a mapped file that is read", func(r *Reading, i int64) {
		r.Mappings = &Mappings{All: Sum{Resident: (20 + 30*i) * mib}, List: []Sum{{Resident: 20 * mib, is: isProgram}, {Name: "words.db", Resident: 30 * i * mib, is: isFile}}}
	}, AboutNothing, []string{"files that are mapped", "page cache"}},
	{"a mapped file that is read, and a smaller leak in C", func(r *Reading, i int64) {
		r.C.Live = i * 20 * mib
		r.Mappings = &Mappings{All: Sum{Resident: (20 + 50*i) * mib}, List: []Sum{
			{Name: "words.db", Resident: 30 * i * mib, is: isFile}, {Resident: 20 * i * mib, Count: 1, is: isMalloc}, {Resident: 20 * mib, is: isProgram},
		}}
	}, AboutCGrows, []string{"C: 180 MiB in use and growing"}},
	{"a Go map that grows, with few collections", func(r *Reading, i int64) {
		r.Go.Live += (i + 1) / 2 * 40 * mib
		r.Go.Objects = r.Go.Live * 3 / 2
		r.more(i * 30 * mib)
	}, AboutGoGrows, []string{"reachable and growing"}},
	{"a Go heap that has grown twice", func(r *Reading, i int64) {
		r.Go.Live += (i + 1) / 4 * 40 * mib
		r.Go.Objects = r.Go.Live * 3 / 2
		r.more((i + 1) / 4 * 60 * mib)
	}, AboutNothing, nil},
	{"another system", func(r *Reading, i int64) { r.Kernel = Kernel{} }, AboutUnknown, nil},
}

// TestSteady has one reading, before which a Watcher has looked at stacks. Their growth is a fault if it is as large as that
// of all readings has to be, and is named in any case.
func TestSteady(t *testing.T) {
	t.Parallel()
	for grown, want := range map[int64]string{
		60: "C: 200 MiB ± 3.00 MiB in use and growing by 70.0 MiB ± 5.00 MiB in 1m0s, the most in main.find (app) by 60.0 MiB ± 4.00 MiB in 1m0s, and less in 1 other place",
		5:  "nothing stands out; of 305 MiB the most, 200 MiB, is C in use, about 18.0 MiB of it by libsqlite3.so.0; C grows slowly, the most in main.find (app) by 5.00 MiB ± 4.00 MiB in 1m0s, and less in 1 other place",
	} {
		r := healthy()
		r.C.Live, r.C.Error = 200*mib, 3*mib
		r.more(180 * mib)
		r.C.Growing = Growing{Steady: true, Over: time.Minute, Sites: []Site{
			{Library: "app", Grown: grown * mib, GrownError: 4 * mib, Stack: "main.find\n"}, {Library: "app", Grown: 10 * mib, GrownError: 3 * mib, Stack: "main.other\n"},
		}}
		if v := Judge(r, nil); v.Sentence != want || v.Fault != (grown == 60) {
			t.Errorf("%v, want %s", v, want)
		}
	}
}

// TestNoise has a heap whose reachable part goes up and down at random, in many programs.
func TestNoise(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(3, 4))
	accused, looks := 0, 0
	for range 60 {
		var past History
		for i := range int64(60) {
			r := healthy()
			r.Time = time.Unix(1e9+10*i, 0)
			r.Go.Live += random.Int64N(40 * mib)
			r.Go.Objects = r.Go.Live * 3 / 2
			if v := Judge(r, &past); v.Fault {
				accused++
			}
			looks++
			past.Add(r.Point())
		}
	}
	if accused > looks/500 {
		t.Errorf("%d of %d verdicts on healthy programs are wrong", accused, looks)
	}
}

// judgePlanted returns the last verdict.
func judgePlanted(p *planted) Verdict {
	var past History
	var v Verdict
	start := time.Unix(1e9, 0)
	for i := range int64(10) {
		r := healthy()
		r.Time = start.Add(time.Duration(i) * 10 * time.Second)
		if p.change != nil {
			p.change(r, i)
		}
		v = Judge(r, &past)
		if p.change == nil {
			break
		}
		past.Add(r.Point())
	}
	return v
}

// TestPlanted has programs with one thing that is wrong, and healthy ones.
func TestPlanted(t *testing.T) {
	t.Parallel()
	for _, p := range plantedPrograms {
		v := judgePlanted(&p)
		if v.About != p.about || v.Fault != (p.about != AboutNothing && p.about != AboutUnknown && p.about != AboutPageCache) {
			t.Errorf("%s: %+v, want %s", p.name, v, p.about)
		}
		for _, s := range p.says {
			if !strings.Contains(v.String(), s) {
				t.Errorf("%s: %q is not in %q", p.name, s, v)
			}
		}
		t.Logf("%s: %v", p.name, v)
	}
}

// TestHistory keeps the whole time in a bounded number of points.
func TestHistory(t *testing.T) {
	t.Parallel()
	var h History
	start := time.Unix(1e9, 0)
	for i := range 20_000 {
		h.Add(Point{time: start.Add(time.Duration(i) * time.Second), live: int64(i) << 20})
	}
	n := len(h.points)
	if n > mostPoints || n < mostPoints/4 || h.points[0].time != start || h.points[n-1].time.Before(start.Add(15_000*time.Second)) {
		t.Errorf("%d points, from %v to %v", n, h.points[0].time, h.points[n-1].time)
	}
	for i := 1; i < n; i++ {
		if !h.points[i].time.After(h.points[i-1].time) {
			t.Errorf("point %d is not after the one before it", i)
		}
	}
	now := Point{time: start.Add(20_000 * time.Second), live: 20_000 << 20}
	if g, ok := h.grown(h.until(&now), leastGrowth, func(p *Point) int64 { return p.live }); !ok || g.By != 20_000<<20 || g.Over != 20_000*time.Second {
		t.Errorf("growth is %+v, %v", g, ok)
	}
	if g, ok := h.grown(h.until(&now), leastGrowth, func(p *Point) int64 { return p.routine }); ok {
		t.Errorf("what does not grow has grown by %+v", g)
	}
}

// TestFunctions reads stacks of C and Go.
func TestFunctions(t *testing.T) {
	t.Parallel()
	for stack, want := range map[string]string{
		"sqlite3Malloc\nlib+0x12\ngithub.com/mattn/go-sqlite3._Cfunc_step\n\tx:1\ngithub.com/mattn/go-sqlite3.(*Rows).Next\n\ty:2\ndatabase/sql.next\nmain.find\n\tz:3\nmain.main\n": "go-sqlite3.(*Rows).Next, called by main.find",
		"main._Cfunc_x\nmain.grow\nmain.main\n":                           "main.grow, called by main.main",
		"main.f\n\t/a/b.go:3\nmain.f\n\t/a/b.go:9\nmain.g\n\t/a/c.go:4\n": "main.f b.go:3, called by main.g",
		"only_c\n\tx.c:1\nstart\n":                                        "only_c",
		"":                                                                "",
	} {
		if got := functions(stack, 2); got != want {
			t.Errorf("%q: %q, want %q", stack, got, want)
		}
	}
}

// TestBusyRecording has the points of recordings on a busy machine. Of one there are many while memory rises: a Go heap that
// is full after half the time, and then free memory of malloc. Two have few: all is free when the last one is made, and was until
// then, or was not.
func TestBusyRecording(t *testing.T) {
	began := time.Now()
	var past *History
	reading := func(ms int, goHeap, inUse, free, most int64) *Reading {
		r := &Reading{Time: began.Add(time.Duration(ms) * time.Millisecond), C: C{Known: true, Live: inUse * mib, Most: most * mib}}
		r.Mappings = &Mappings{All: Sum{Resident: (goHeap + inUse + free) * mib}, List: []Sum{
			{Resident: (inUse + free) * mib, Count: 16, is: isMalloc}, {Resident: goHeap * mib, is: isGoHeap},
		}}
		past.Add(r.Point())
		return r
	}
	record := func() { past = &History{Apart: 100 * time.Millisecond, Watched: 2 * time.Second} }
	record()
	for i, heap := range []int64{0, 2, 3, 6, 15, 24, 32, 41, 46, 53, 59, 60, 62, 70} {
		reading(350*i, heap, 0, 0, 0)
	}
	reading(6391, 70, 29, 0, 29)
	reading(7721, 70, 36, 170, 36)
	reading(7915, 70, 5, 236, 36)
	reading(8124, 70, 1, 242, 5)
	if v := Judge(reading(8541, 70, 1, 242, 1), past); v.About != AboutMallocFree || v.Bytes != 170*mib {
		t.Errorf("%+v", v)
	}
	for most, want := range map[int64]About{1: AboutMallocFree, 150: AboutNothing} {
		record()
		reading(0, 1, 0, 0, 0)
		reading(900, 1, 160, 0, 160)
		if v := Judge(reading(5200, 1, 1, 159, most), past); v.About != want {
			t.Errorf("of which C had %d MiB in use: %+v", most, v)
		}
	}
}

// TestHeld has small blocks, for which malloc has taken more than was asked for. That is not free.
func TestHeld(t *testing.T) {
	for held, free := range map[int64]int64{0: 240 * mib, 280 * mib: 30 * mib} {
		r := &Reading{C: C{Known: true, Live: 70 * mib, Held: held}, Mappings: &Mappings{All: Sum{Resident: 310 * mib}, List: []Sum{{Resident: 310 * mib, Count: 1, is: isMalloc}}}}
		if table := r.Table(); table.Of(MallocFree) != free || table.Of(CInUse) != 310*mib-free {
			t.Errorf("%d held: %+v", held, table)
		}
	}
}
