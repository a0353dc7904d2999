package resident

import (
	"cmp"
	"runtime"
	"runtime/metrics"
	"slices"
	"sync"
	"time"

	"github.com/cheapgo/cheap/internal/mem/account"
	"github.com/cheapgo/cheap/internal/mem/osmem"
	"github.com/cheapgo/cheap/internal/mem/span"
	"github.com/cheapgo/cheap/internal/watch/census"
	"github.com/cheapgo/cheap/internal/watch/procfs"
)

// A Watcher reads the figures of the process, and keeps the points by which growth is told. It starts nothing by
// itself; package inspect calls it as long as a page is mounted. Its methods may be called from any goroutine; calls
// wait for each other.
type Watcher struct {
	mu      sync.Mutex // guards all that follows
	history [2]History // of all readings, without their mappings; and of those with mappings, which have other parts
	groups  *cgroups
	opened  time.Time // when groups was opened
	samples []metrics.Sample

	full   Verdict   // the last one of a reading with mappings
	fullAt time.Time // when that was read

	stacks tracker
	look   looked

	threads []Threads // of the last list of mappings

	pace func() Pace // see SetPace
}

// looked is what is known of looks inside malloc.
type looked struct {
	malloc Malloc
	at     time.Time
	took   time.Duration
}

// A tracker looks for stacks of C that grow. It is the only one of the process, so whoever shows what grows shows
// the same.
type tracker struct {
	every          time.Duration                             // see SetInterval
	end            func() (steady, lately []census.CSuspect) // ends an interval; nil before the first look
	ends           []time.Time                               // of the last Intervals intervals, after the beginning of the first
	steady, lately []Site                                    // as the last end has shown
	named          bool                                      // the last verdict is that C grows
}

// Process is the Watcher of the process. Tests replace it.
var Process = new(Watcher)

// Options say what a reading is to have beside what costs nothing.
type Options struct {
	// Mappings are those of ReadMappings, if the caller has read them.
	Mappings *Mappings

	// Cheap and Heaps are what the caller has read of heaps. Without them all that heaps hold counts as
	// in use.
	Cheap *Cheap
	Heaps []Holder

	// Sites says that the libraries of module cmem are wanted, and that it may end an interval: 0.1 ms for each
	// thousand stacks, and in each interval some 0.3 ms.
	Sites bool

	// Since is what Collections has returned before the caller has read anything, or 0. If a collection has run
	// since then, Judge returns nil and keeps nothing: some figures are from before its releases, and some from
	// after them.
	Since uint64

	// Look allows a look inside malloc, if looks have taken less than one percent of the time so far. A look
	// takes the locks of malloc: 0.4 ms with 2 threads, 100 ms with many arenas and free blocks. Without it the
	// numbers of the last look are taken.
	Look bool
}

// Read returns a reading of the process. It does not stop the world.
func (w *Watcher) Read(o Options) *Reading {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.read(o)
}

// Judge returns a reading of the process and the verdict on it, and keeps a point of it.
func (w *Watcher) Judge(o Options) (*Reading, Verdict) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.judge(o)
}

// TryJudge is Judge, unless another goroutine reads: then it returns nil. It may be called under any lock.
func (w *Watcher) TryJudge(o Options) (*Reading, Verdict) {
	if !w.mu.TryLock() {
		return nil, Verdict{}
	}
	defer w.mu.Unlock()
	return w.judge(o)
}

func (w *Watcher) judge(o Options) (*Reading, Verdict) {
	r := w.read(o)
	if o.Since != 0 && o.Since != Collections() {
		return nil, Verdict{}
	}
	plain := *r
	plain.Mappings = nil
	v := Judge(&plain, &w.history[0])
	w.history[0].Add(plain.Point())
	if r.Mappings != nil {
		// Growth is seen earlier without mappings, because there are more such readings; what is wrong otherwise is
		// seen better with them. That malloc grows needs mappings, or module cmem.
		if full := Judge(r, &w.history[1]); full.Grows() || !v.Grows() || v.About == AboutCGrows && !r.C.Known {
			v = full
		}
		w.history[1].Add(r.Point())
		w.full, w.fullAt = v, r.Time
	} else if r.Time.Sub(w.fullAt) < w.stacks.interval()*3/2 && (w.full.Fault || !v.Fault) {
		v = w.full // all callers get the same verdict, and that with mappings knows more
	}
	w.stacks.named = v.About == AboutCGrows
	return r, v
}

func (w *Watcher) read(o Options) *Reading {
	r := &Reading{Time: time.Now(), Mappings: o.Mappings, Kernel: readKernel(), Go: w.readGo(), Heaps: o.Heaps}
	if o.Cheap != nil {
		r.Cheap = *o.Cheap
	} else {
		r.Cheap = Cheap{
			InUse: max(0, account.Process.Held()-account.Process.HeldDeclared()), Idle: int64(span.Idle()),
			Records: census.ReadStore() + osmem.ReadCounts().Mapped,
		}
	}
	if o.Mappings != nil {
		w.threads = o.Mappings.Threads
	}
	r.Threads = w.threads
	if n := r.Go.Threads; len(r.Threads) == 1 && r.Threads[0].By == "Go" && n > 0 && r.Threads[0].Count > n+2 {
		r.Threads = nil // libc is not glibc, and nothing says who has begun the others
	}
	if r.Threads == nil && r.Go.Threads > 0 && r.Kernel.Threads > 0 { // or the list is too long
		r.Threads = merge([]Threads{{By: "Go", Count: r.Go.Threads}}, Threads{By: "C", Count: max(0, r.Kernel.Threads-r.Go.Threads)})
	}
	w.readHolders(r)
	w.readC(r, o.Sites)
	w.readMalloc(r, o.Look)
	const reopen = time.Minute // a process may be moved to another cgroup
	if w.groups == nil || r.Time.Sub(w.opened) > reopen {
		w.groups, w.opened = openCgroups("/"), r.Time
	}
	r.Cgroup = w.groups.read()
	if w.pace != nil {
		r.Pace = w.pace()
	}
	return r
}

// SetPace is called by package pace when it is initialized, with a function that returns what it knows.
func (w *Watcher) SetPace(read func() Pace) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pace = read
}

// status is opened once: the open file stays that of this process.
var status = sync.OnceValue(func() *procfs.File { return procfs.Open("/proc/self/status") })

// readKernel reads what the kernel says of the process as a whole.
func readKernel() (k Kernel) {
	status().Read(func(text []byte) int64 {
		n := func(name string) int64 { n, _ := procfs.Bytes(text, name); return n }
		k = Kernel{Anonymous: n("RssAnon"), File: n("RssFile"), Shared: n("RssShmem"), Swap: n("VmSwap"), Resident: n("VmRSS"), Threads: procfs.Count(text, "Threads")}
		return 0
	})
	k.CPUs = int64(runtime.NumCPU())
	if sum := k.Anonymous + k.File + k.Shared; sum > 0 {
		k.Resident = sum
	} else if k.Resident > 0 { // Linux before 4.5
		_, k.File = procfs.Self()
		k.File = min(k.File, k.Resident)
		k.Anonymous = k.Resident - k.File
	}
	return k
}

// The metrics of the runtime that a reading has.
const (
	memoryTotal = iota
	memoryReleased
	heapObjects
	heapUnused
	heapFree
	heapStacks
	osStacks
	heapLive
	gogcPercent
	goroutines
	outside
	goThreads
	metricCount
)

var metricNames = [metricCount]string{
	memoryTotal: "/memory/classes/total:bytes", memoryReleased: "/memory/classes/heap/released:bytes",
	heapObjects: "/memory/classes/heap/objects:bytes", heapUnused: "/memory/classes/heap/unused:bytes", heapFree: "/memory/classes/heap/free:bytes",
	heapStacks: "/memory/classes/heap/stacks:bytes", osStacks: "/memory/classes/os-stacks:bytes",
	heapLive: "/gc/heap/live:bytes", gogcPercent: "/gc/gogc:percent", goroutines: "/sched/goroutines:goroutines",
	outside:   "/sched/goroutines/not-in-go:goroutines",
	goThreads: "/sched/threads/total:threads",
}

// Collections returns how often the collector has run, and one more.
func Collections() uint64 {
	s := []metrics.Sample{{Name: "/gc/cycles/total:gc-cycles"}}
	if metrics.Read(s); s[0].Value.Kind() != metrics.KindUint64 {
		return 1
	}
	return s[0].Value.Uint64() + 1
}

// readGo reads what Go has of the system and did not give back.
func (w *Watcher) readGo() Go {
	if w.samples == nil {
		w.samples = make([]metrics.Sample, metricCount)
		for i, name := range metricNames {
			w.samples[i].Name = name
		}
	}
	metrics.Read(w.samples)
	n := func(i int) int64 {
		if v := w.samples[i].Value; v.Kind() == metrics.KindUint64 {
			return int64(v.Uint64())
		}
		return 0 // not in this version of Go
	}
	g := Go{Objects: n(heapObjects), Idle: n(heapUnused) + n(heapFree), Stacks: n(heapStacks) + n(osStacks), Live: n(heapLive), Goroutines: n(goroutines), Outside: n(outside), Threads: n(goThreads)}
	g.Runtime = max(0, n(memoryTotal)-n(memoryReleased)-g.Objects-g.Idle-g.Stacks)
	if g.Percent = int(n(gogcPercent)); g.Percent > 1<<31-1 || g.Percent < 0 {
		g.Percent = -1 // off, which the metric shows as the largest number
	}
	return g
}

// mostHolders is how many pools, and how many heaps, a reading has.
const mostHolders = 100

// countedElsewhere are the accounts of module cmem, whose bytes are in Reading.C, and those of package own,
// whose bytes are those of its pools.
var countedElsewhere = []string{"C heap", "own", "own, C heap"}

// readHolders reads the pools, the accounts of package pace, and, if the caller has not, the heaps.
func (w *Watcher) readHolders(r *Reading) {
	for _, p := range census.ReadPools(nil) {
		if p.Live > 0 {
			r.Pools = append(r.Pools, Holder{p.Name, p.Bytes, p.Live})
		}
	}
	haveHeaps := r.Heaps != nil
	for _, a := range account.Process.All() {
		blocks, _, ok := a.TryLive()
		switch {
		case !ok && !haveHeaps:
			r.Heaps = append(r.Heaps, Holder{a.Name(), a.Held(), 0})
		case ok && a.Held() > 0 && !slices.Contains(countedElsewhere, a.Name()):
			r.Pools = append(r.Pools, Holder{a.Name(), a.Held(), blocks})
		}
	}
	for _, list := range []*[]Holder{&r.Pools, &r.Heaps} {
		slices.SortStableFunc(*list, func(x, y Holder) int { return cmp.Compare(y.Bytes, x.Bytes) })
		*list = (*list)[:min(len(*list), mostHolders)]
	}
}

// A stack counts as growing if it has grown in so many intervals of module cmem in a row.
const Intervals = 6

// usualInterval is how long an interval is, unless SetInterval says something else.
const usualInterval = 10 * time.Second

// SetInterval sets how long an interval is. Of several calls the shortest interval counts.
func (w *Watcher) SetInterval(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stacks.every == 0 || d < w.stacks.every {
		w.stacks.every = d
	}
}

// Growing returns the stacks that grow, or, where the verdict is that C does, those that have grown lately. ended is
// when the last interval ended. left is the time until it can be told which stacks grow, or 0.
func (w *Watcher) Growing() (g Growing, ended time.Time, left time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	t := &w.stacks
	if len(t.ends) > 0 {
		ended = t.ends[len(t.ends)-1]
	}
	if g = t.growing(); !g.Steady && !t.named {
		g = Growing{Over: Intervals * t.interval()}
	}
	return g, ended, time.Duration(min(Intervals, Intervals+1-len(t.ends))) * t.interval()
}

func (t *tracker) interval() time.Duration { return cmp.Or(t.every, usualInterval) }

// look ends an interval if one is over, or nearly.
func (t *tracker) look(heap census.CHeap, now time.Time) {
	switch n := len(t.ends); {
	case t.end == nil:
		t.end = heap.Watch(Intervals)
	case now.Sub(t.ends[n-1]) < t.interval()*9/10:
		return
	case n > Intervals:
		t.ends = t.ends[1:]
	}
	t.ends = append(t.ends, now)
	steady, lately := t.end()
	t.steady, t.lately = sitesOf(steady), sitesOf(lately)
}

// growing returns what the last end has shown.
func (t *tracker) growing() Growing {
	since := func(intervals int) time.Duration {
		n := len(t.ends)
		return t.ends[n-1].Sub(t.ends[max(0, n-1-intervals)])
	}
	switch {
	case len(t.steady) > 0:
		return Growing{t.steady, since(Intervals), true}
	case len(t.lately) > 0:
		return Growing{t.lately, since(2), false}
	}
	return Growing{}
}

func sitesOf(list []census.CSuspect) (all []Site) {
	for _, s := range list {
		all = append(all, Site{s.Library, s.Live, s.Grown, s.Error, s.Stack})
	}
	slices.SortStableFunc(all, func(x, y Site) int { return cmp.Compare(y.Grown, x.Grown) })
	return all
}

// readC reads what module cmem counts.
func (w *Watcher) readC(r *Reading, sites bool) {
	heap := census.C()
	if heap == nil || heap.Off() != "" {
		return
	}
	c := heap.Read()
	r.C = C{Known: true, Live: c.Live, Held: c.Held, Error: c.LiveError}
	if sites {
		for _, l := range heap.Libraries(nil) {
			r.C.Libraries = append(r.C.Libraries, Holder{l.Name, l.Live, l.Blocks})
		}
		slices.SortStableFunc(r.C.Libraries, func(x, y Holder) int { return cmp.Compare(y.Bytes, x.Bytes) })
		w.stacks.look(heap, r.Time)
	}
	r.C.Growing = w.stacks.growing()
}

// lookShare is the share of the time in which somebody may look inside malloc: one in so many.
const lookShare = 100

// readMalloc looks inside malloc if it may, or takes what the last look has shown.
func (w *Watcher) readMalloc(r *Reading, may bool) {
	m := account.Process.Malloc()
	if m == nil {
		return
	}
	l := &w.look
	if may && (l.at.IsZero() || r.Time.Sub(l.at) >= lookShare*l.took) {
		begin := time.Now()
		used, free, ok := m.Read()
		l.note(Malloc{Known: ok, InUse: used, Free: free}, time.Since(begin))
	}
	r.Malloc = l.malloc
	r.Malloc.Bounded, r.Malloc.Gives = account.Process.ArenasBounded(), account.Process.GivesBack()
	r.Malloc.Age = r.Time.Sub(l.at)
}

// note notes a look inside malloc.
func (l *looked) note(m Malloc, took time.Duration) {
	m.Longest = max(l.malloc.Longest, took)
	if m.Arenas == 0 {
		m.Arenas = l.malloc.Arenas
	}
	l.malloc, l.at, l.took = m, time.Now(), took
}

// Note is told of a look inside malloc that somebody else has had.
func (w *Watcher) Note(used, free int64, took time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.look.note(Malloc{Known: true, InUse: used, Free: free}, took)
}

// ReadArenas looks at each arena of malloc, because somebody has asked for it. It returns nil if they are not
// known. took is at most how long threads that allocate have waited.
func (w *Watcher) ReadArenas() (arenas []account.Arena, took time.Duration) {
	m, ok := account.Process.Malloc().(account.ArenaReader)
	if !ok {
		return nil, 0
	}
	begin := time.Now()
	arenas = m.ReadArenas()
	took = time.Since(begin)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.look.malloc.Longest = max(w.look.malloc.Longest, took)
	if len(arenas) > 0 {
		w.look.malloc.Arenas = int64(len(arenas))
	}
	return arenas, took
}
