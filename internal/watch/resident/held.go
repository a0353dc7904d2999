package resident

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/cheapgo/cheap/internal/watch/census"
)

// faults is rule 4.
func (j *judge) faults() (list []Verdict) {
	for _, rule := range []func() (Verdict, bool){
		j.mallocFree, j.tooSmall, j.goIdle, j.goGarbage, j.goStacks, j.threadStacks, j.idleThreads, j.cheapIdle, j.swapped, j.keeper,
	} {
		if v, ok := rule(); ok {
			list = append(list, v)
		}
	}
	return list
}

// lasting returns the bytes of a kind that were there all the time lately: in the last quarter of the time of a recording, or
// for lately. What is filled again and again is not free.
func (j *judge) lasting(k Kind) int64 {
	n, points := j.now.parts[k], j.past.points
	since := j.r.Time.Add(-lately)
	if m := len(points); j.past.Watched > 0 && m > 0 {
		since = points[m-1].time.Add(-points[m-1].time.Sub(points[0].time) / 4)
	}
	for _, p := range from(points, since) {
		n = min(n, p.parts[k])
	}
	return n
}

const lately = 30 * time.Second

// trim is what gives back what malloc has free, as far as anything does.
const trim = "call libc.Trim, which gives whole free pages back; what stays lies between blocks in use, whose makers the profile of module cmem names"

// mallocFree: malloc has much that is free. Without a list of mappings, stacks of threads and variables
// of libraries are in the part as well, so some of it is not counted.
func (j *judge) mallocFree() (v Verdict, ok bool) {
	n := j.lasting(MallocFree)
	if !j.t.Mapped {
		n -= 4<<20 + j.r.Kernel.Threads*(64<<10)
	}
	gives := j.r.Malloc.Gives || j.r.Malloc.Known && j.r.Pace.Limit > 0 // package pace does near its limit
	if n < j.much || n < j.t.whole(CInUse)/2 || gives && j.isFar() {
		return v, false
	}
	used := j.t.whole(CInUse)
	arenas := j.r.Malloc.Arenas
	if arenas == 0 && j.t.Mapped {
		arenas = j.r.Mappings.Arenas + 1
	}
	v = Verdict{About: AboutMallocFree, Bytes: n, Sentence: fmt.Sprintf("C holds %s: %s in use, %s free inside malloc", text(n+used), text(used), text(n))}
	if arenas > 0 {
		v.Sentence += fmt.Sprintf(" in %d arenas", arenas)
	}
	switch many := arenas > 2 && !j.r.Malloc.Bounded; {
	case j.r.Malloc.Gives:
		v.Do = "see the profile of module cmem: whole free pages go back by themselves, and what stays lies between blocks in use, whose makers it names"
	case many && !j.t.Mapped: // most of it may be in the main arena
		v.Do = trim + "; the page of package inspect, which reads the mappings, says whether to bound the arenas"
	case many && 2*j.r.Mappings.named("malloc: [heap]") > j.r.Mappings.of(isMalloc).Resident:
		v.Sentence += ", most of it in the main arena"
		v.Do = trim + "; the number of the other arenas does not matter"
	case many:
		v.Do = trim + "; if threads allocate at different times, bound the arenas (import github.com/cheapgo/cheap/libc/arenas, or MALLOC_ARENA_MAX=2 in the environment)"
	default:
		v.Do = trim
	}
	if s := j.huge(isMalloc, n); s != "" {
		v.Sentence += s
		v.Do = "call libc.Trim, which gives whole free pages of 4 KiB back; the kernel makes huge pages of the rest again, unless GLIBC_TUNABLES=glibc.malloc.hugetlb=0 is in the environment, or main has called prctl with PR_SET_THP_DISABLE"
	}
	return v, true
}

// huge says how much of some mappings is in huge pages, if that is more than half of n bytes.
func (j *judge) huge(is mapping, n int64) string {
	if j.t.Mapped {
		if huge := j.r.Mappings.of(is).Huge; huge > n/2 {
			return fmt.Sprintf("; %s are in huge pages, each of which is resident as a whole for one block in use", text(huge))
		}
	}
	return ""
}

// isFar reports whether there is a limit, of package pace or of the container, and half of it is free.
func (j *judge) isFar() bool {
	c := &j.r.Cgroup
	return (j.r.Pace.Limit > 0 || c.Limit > 0) && (j.r.Pace.Limit == 0 || j.whole < j.r.Pace.Limit/2) && (c.Limit == 0 || c.Charged-c.Cache < c.Limit/2)
}

// tooSmall: pools declare much less than C has. Other code may have allocated the difference. So what
// is declared has to be a quarter of it at least, unless no size was declared at all, and the points must
// not say that sizes fit.
func (j *judge) tooSmall() (v Verdict, ok bool) {
	d, noSizes := j.r.Declared(&j.t), false
	for _, p := range j.r.Pools {
		noSizes = noSizes || p.Count > 0 && p.Bytes == p.Count*census.DefaultSize
	}
	if !d.TooSmall() || d.C-d.Pools < j.much {
		return v, false
	}
	if d.Pools < d.C/4 && !(noSizes && d.Pools >= d.C/64) || j.sizesFit() {
		return v, false
	}
	v = j.sizes(d.C - d.Pools)
	v.Do += ", if the profile of module cmem does not show that others have the rest, such as a cache in C"
	return v, true
}

// sizesFit reports whether the points say that sizes are right: between those with the fewest and with the
// most bytes declared, C has not changed by twice as much. Then others hold what is not declared.
func (j *judge) sizesFit() bool {
	declared := func(p *Point) (n int64) {
		for name, h := range p.holders {
			if strings.HasPrefix(name, "pool ") {
				n += h.Bytes
			}
		}
		return n
	}
	least, most := &j.all[0], &j.all[0]
	for i := range j.all {
		p := &j.all[i]
		if declared(p) < declared(least) {
			least = p
		}
		if declared(p) > declared(most) {
			most = p
		}
	}
	c := func(p *Point) int64 { return p.parts[CInUse] + p.parts[MallocAll] + p.parts[Unseparated] }
	by := declared(most) - declared(least)
	return by >= leastGrowth && by >= declared(most)/8 && c(most)-c(least) < 2*by
}

// sizes is the verdict that sizes are too small.
func (j *judge) sizes(n int64) Verdict {
	var declared, count int64
	for _, p := range j.r.Pools {
		declared, count = declared+p.Bytes, count+p.Count
	}
	v := Verdict{About: AboutSizes, Bytes: n, Do: "set Options.Size, or the size of Own, to what C allocates for one"}
	v.Sentence = fmt.Sprintf("pools declare %s for %d resources, malloc holds %s: sizes are too small", text(declared), count, text(j.cHeld()))
	if count > 0 && declared == count*census.DefaultSize {
		v.Sentence = fmt.Sprintf("pools have %d resources without a size, which count as %s, and malloc holds %s: sizes are too small", count, text(declared), text(j.cHeld()))
	}
	return v
}

// goIdle: more is free in the Go heap than the collector lets it grow to.
func (j *judge) goIdle() (v Verdict, ok bool) {
	n := j.t.whole(GoIdle)
	if n < j.much || n < j.r.goal() {
		return v, false
	}
	return Verdict{
		About: AboutGoIdle, Bytes: n, Sentence: fmt.Sprintf("%s of the Go heap are free, and %s in use: it was larger before", text(n), text(j.t.whole(GoInUse))),
		Do: "nothing, it is no leak: the runtime returns it within minutes, debug.FreeOSMemory at once; GOMEMLIMIT bounds it",
	}, true
}

// goal is about how large the collector lets the heap grow.
func (r *Reading) goal() int64 {
	if r.Go.Percent < 0 {
		return math.MaxInt64 / 2
	}
	return r.Go.Live + r.Go.Live*int64(r.Go.Percent)/100
}

// goGarbage: the heap is mostly garbage, because GOGC is off or high.
func (j *judge) goGarbage() (v Verdict, ok bool) {
	n := j.t.whole(GoInUse) - j.r.Go.Live
	if p := j.r.Go.Percent; p >= 0 && p <= 200 || n < j.much || n < 2*j.r.Go.Live {
		return v, false
	}
	setting := "GOGC is off"
	if j.r.Go.Percent >= 0 {
		setting = fmt.Sprintf("GOGC is %d", j.r.Go.Percent)
	}
	return Verdict{
		About: AboutGoGarbage, Bytes: n,
		Sentence: fmt.Sprintf("of %s in the Go heap the last collection found %s reachable, and %s", text(j.t.whole(GoInUse)), text(j.r.Go.Live), setting),
		Do:       "lower GOGC, or set GOMEMLIMIT",
	}, true
}

func (j *judge) goStacks() (v Verdict, ok bool) {
	n := j.t.whole(GoStacks)
	return Verdict{
		About: AboutRoutines, Bytes: n, Sentence: fmt.Sprintf("%d goroutines have %s of stacks", j.r.Go.Goroutines, text(n)),
		Do: "see in the goroutine profile of net/http/pprof where they wait",
	}, n >= j.much
}

func (j *judge) threadStacks() (v Verdict, ok bool) {
	n := j.t.whole(ThreadStacks)
	return j.threads(n, ""), n >= j.much
}

// threads is the verdict about stacks of threads.
func (j *judge) threads(n int64, growing string) Verdict {
	count, most := "threads", Threads{By: "Go"}
	if j.r.Kernel.Threads > 0 {
		count = fmt.Sprint(j.r.Kernel.Threads, " threads")
	}
	for _, t := range j.r.Threads {
		if t.Stacks > most.Stacks {
			most = t
		}
	}
	if most.Count > 0 {
		count += fmt.Sprintf(", most of them begun by %s,", most.By)
	}
	return Verdict{
		About: AboutThreads, Bytes: n, Sentence: fmt.Sprintf("%s have %s of stacks%s", count, text(j.t.whole(ThreadStacks)), growing),
		Do: bound(most.By),
	}
}

const (
	// So many threads are a fault if they sleep, are more than eight for each processor, and have this share of the whole.
	leastIdle, idleShare = 100, 16

	// So many are in any case. Go ends a program with 10,000 threads of its own.
	mostThreads = 1000

	// kernelStack is the stack that the kernel has for each thread. It is charged to the container, and not resident.
	kernelStack = 16 << 10
)

// idleThreads: a library, or Go, has begun many threads that sleep, or a thousand. Those of Go may sleep in C, where somebody needs them.
func (j *judge) idleThreads() (v Verdict, ok bool) {
	for _, t := range j.r.Threads {
		n := t.Idle
		if t.By == "Go" {
			n -= j.r.Go.Outside
		}
		if t.By == "Go" && j.isOther() || t.Count < mostThreads && n < max(leastIdle, 8*j.r.Kernel.CPUs) {
			continue
		}
		if held := t.Stacks + t.Count*kernelStack; held > max(v.Bytes, j.whole/idleShare) {
			v, ok = Verdict{About: AboutThreads, Bytes: held, Do: bound(t.By)}, true
			known := ""
			if t.Stacks > 0 {
				known = fmt.Sprintf(", %d of them idle, with %s of stacks", max(n, 0), text(t.Stacks))
			}
			v.Sentence = fmt.Sprintf("%d threads were begun by %s%s; the kernel has %s for them", t.Count, t.By, known, text(t.Count*kernelStack))
		}
	}
	return v, ok
}

// bound says how to have fewer threads of somebody.
func bound(by string) string {
	switch {
	case by == "Go":
		return "bound how many goroutines call C, or read files, at a time: Go keeps a thread for each that has blocked there at once"
	case strings.Contains(by, "omp"):
		return "set OMP_NUM_THREADS, or OMP_THREAD_LIMIT where the library sets the number, and bound how many goroutines call it at a time: OpenMP keeps a team of threads for each thread that has called it"
	}
	if strings.HasPrefix(by, "the program") || by == "unknown" {
		by = "C"
	}
	return "bound how many goroutines call " + by + " at a time, or how many threads it begins"
}

func (j *judge) cheapIdle() (v Verdict, ok bool) {
	n := j.lasting(CheapIdle)
	return Verdict{
		About: AboutCheapIdle, Bytes: n, Sentence: fmt.Sprintf("heaps of cheap hold %s: %s in use, %s free", text(n+j.t.whole(CheapInUse)), text(j.t.whole(CheapInUse)), text(n)),
		Do: "allocate what stays for long from a Heap of its own: free blocks between blocks in use do not go back (see the table classes), and all else does within a second or two",
	}, n >= j.much
}

// swapped: much was swapped out, so the resident memory says little.
func (j *judge) swapped() (v Verdict, ok bool) {
	n := j.t.Swap
	where := ""
	var most int64
	for _, p := range j.t.Parts {
		if p.Swap > most {
			where, most = ", the most of it "+kindTable[p.Kind].noun, p.Swap
		}
	}
	return Verdict{
		About: AboutSwap, Bytes: n, Sentence: fmt.Sprintf("%s are resident, and %s swapped out%s: memory that nobody touches, as a leak is", text(j.t.Resident), text(n), where),
		Do: "count resident and swapped bytes together",
	}, n >= j.much
}

// keeper: a cache gives nothing when it is asked.
func (j *judge) keeper() (v Verdict, ok bool) {
	for _, k := range j.r.Pace.Keepers {
		n := max(k.Held, k.Asked-k.Freed, 1)
		if ok && n <= v.Bytes {
			continue
		}
		v, ok = Verdict{About: AboutCache, Bytes: n, Do: "have its function of pace.OnPressure free what it is asked for, and have Share.Held say what it has, so that it is not asked when it has nothing"}, true
		v.Sentence = fmt.Sprintf("the cache %q frees nothing when room is short: it was asked for %s in all, and %s became free", k.Name, text(k.Asked), text(k.Freed))
		if k.Slow {
			v.Sentence = fmt.Sprintf("the function of the cache %q, which is to free memory, has run for more than a second", k.Name)
			v.Do = "see its stack in the goroutine profile: it must not wait for a goroutine that waits for room"
		} else if k.Held >= 0 {
			v.Sentence += fmt.Sprintf("; it holds %s", text(k.Held))
		}
	}
	return v, ok
}
