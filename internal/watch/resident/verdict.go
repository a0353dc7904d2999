package resident

import (
	"fmt"
	"strings"

	"github.com/cheapgo/cheap/internal/page/figure"
)

// A Verdict says what holds the memory, and what to do.
type Verdict struct {
	About    About
	Fault    bool   // something is wrong, as far as can be told. Else the sentence says what holds the most
	Sentence string // such as "C holds 1.2 GiB: 60 MiB in use, 1.1 GiB free inside malloc"
	Do       string // what to do, or where to look
	Bytes    int64  // what it is about
}

// String returns the sentence, and what to do.
func (v Verdict) String() string {
	if v.Do == "" {
		return v.Sentence + "."
	}
	return v.Sentence + ". To do: " + v.Do + "."
}

// Grows reports whether a verdict is that something grows, and what.
func (v Verdict) Grows() bool { return strings.HasSuffix(string(v.About), "_grows") }

// About is what a verdict is about. The texts are labels of metrics, and do not change.
type About string

// The verdicts. Those about growth are always a fault.
const (
	AboutNothing      About = "nothing"       // nothing stands out
	AboutUnknown      About = "unknown"       // it cannot be told
	AboutCGrows       About = "c_grows"       // blocks of malloc in use
	AboutPoolGrows    About = "pool_grows"    // owners that are open
	AboutHeapGrows    About = "heap_grows"    // blocks of a heap of cheap
	AboutGoGrows      About = "go_grows"      // reachable Go objects
	AboutRoutines     About = "goroutines"    // their stacks
	AboutThreads      About = "threads"       // their stacks
	AboutMappingGrows About = "mapping_grows" // what is mapped without malloc
	AboutMallocFree   About = "malloc_free"   // free inside malloc
	AboutSizes        About = "sizes"         // the sizes that pools declare are too small
	AboutGoIdle       About = "go_idle"       // free in the Go heap
	AboutGoGarbage    About = "go_garbage"    // garbage in the Go heap, by a high GOGC
	AboutCheapIdle    About = "cheap_idle"    // free in heaps of cheap
	AboutSwap         About = "swap"          // swapped out, so resident memory looks small
	AboutPageCache    About = "page_cache"    // the cgroup is charged for files
	AboutSharedFiles  About = "shared_files"  // the cgroup is charged for files in memory
	AboutKernel       About = "kernel_memory" // the cgroup is charged for memory of the kernel
	AboutOthers       About = "others"        // other processes of the cgroup
	AboutCache        About = "cache"         // a cache that gives nothing when package pace asks it
)

// A judge looks at a reading and the points before it.
type judge struct {
	r     *Reading
	t     Table
	now   Point
	past  *History
	all   []Point // those before now, and now
	whole int64   // resident and swapped out
	much  int64   // from here on a part may be a fault
}

// leastFault is the least number of bytes that are a fault.
const leastFault = 16 << 20

// Judge says what is wrong, or what holds the most. past has the points of earlier readings, and may
// be nil. The first rule that holds is the verdict:
//
//  1. The kernel does not say what is resident.
//  2. The cgroup has a limit, half of which is charged; of the charge half is neither resident nor swapped
//     out in the process, and three quarters of that are one thing: files in memory, the kernel's, or other
//     processes'. The page cache is the verdict after rule 4: each container that reads or writes files is
//     full of it after a while, and it hides neither growth nor a fault.
//  3. Something grows steadily: see points.go. Of several, the one that has grown the most.
//  4. A part that should be small is a quarter of the whole, and 16 MiB: see held.go. Of several, the
//     largest. A hundred idle threads may be less.
//  5. Half of the whole is of nobody.
//  6. Nothing stands out; what is named holds the most.
func Judge(r *Reading, past *History) Verdict {
	if past == nil {
		past = new(History)
	}
	j := &judge{r: r, t: r.Table(), past: past}
	j.now = r.point(&j.t)
	j.all = past.until(&j.now)
	if j.t.Resident == 0 {
		return Verdict{About: AboutUnknown, Sentence: "this system does not say what is resident"}
	}
	j.whole = j.t.Resident + j.t.Swap
	j.much = max(j.whole/4, leastFault)
	outside, isOutside := j.outside()
	if isOutside && outside.Fault {
		return outside
	}
	for _, list := range [][]Verdict{j.grows(), j.faults()} {
		var most Verdict
		for _, v := range list {
			if v.Bytes > most.Bytes {
				most = v
			}
		}
		if most.About != "" {
			most.Fault = true
			if n := j.t.whole(GoInUse); j.isOther() && n > most.Bytes && most.About == AboutMallocFree {
				most.Sentence += fmt.Sprintf("; the Go heap has %s", text(n))
			}
			return most
		}
	}
	if isOutside {
		return outside
	}
	return j.largest()
}

// outside is rule 2.
func (j *judge) outside() (v Verdict, ok bool) {
	c := &j.r.Cgroup
	outside := c.Charged - j.t.Resident
	if !c.Known || c.Limit == 0 || c.Charged < c.Limit/2 || outside < c.Charged/2 || outside < leastFault {
		return v, false
	}
	mine := j.r.Kernel.Anonymous
	if j.t.Mapped {
		mine = j.r.Mappings.All.Anonymous
	}
	charged := fmt.Sprintf("the container is charged %s of %s, and %s of that are resident in this process", text(c.Charged), text(c.Limit), text(j.t.Resident))
	for _, w := range []struct {
		n        int64
		v        About
		what, do string
	}{
		{c.Cache, AboutPageCache, "are page cache, not a leak", "nothing; the kernel drops it when memory is short"},
		{c.Shared - j.r.Kernel.Shared, AboutSharedFiles, "are files in memory", "look into /dev/shm and what else is mounted as tmpfs: files there are memory until they are removed"},
		{c.Kernel, AboutKernel, "are memory of the kernel", "look for many open files, sockets, pipes or small files: slabtop shows which"},
		{c.Anonymous - mine, AboutOthers, "are other processes of the container", "see ps aux --sort=-rss in the container"},
	} {
		if w.n >= outside/4*3 {
			fault := w.v != AboutPageCache
			return Verdict{w.v, fault, fmt.Sprintf("%s; %s %s", charged, text(w.n), w.what), w.do, w.n}, true
		}
	}
	return v, false
}

// largest are rules 5 and 6.
func (j *judge) largest() Verdict {
	var most Kind
	byKind := func(k Kind) int64 { return j.t.whole(k) }
	for k := range kinds {
		if byKind(k) > byKind(most) {
			most = k
		}
	}
	n := byKind(most)
	v := Verdict{About: AboutNothing, Bytes: n, Do: kindTable[most].lookAt}
	v.Sentence = fmt.Sprintf("nothing stands out; of %s the most, %s, is %s", text(j.whole), text(n), j.noun(most)+j.fileName(most))
	switch {
	case most == Rest && n > j.whole/2:
		v.About, v.Sentence, v.Do = AboutUnknown, fmt.Sprintf("it cannot be told what %s of %s are for", text(n), text(j.whole)), "see the table mappings"
	case most == GoInUse && j.isOther() && n > j.whole/2 && n >= leastFault:
		v.Sentence = fmt.Sprintf("of %s the most, %s, is the Go heap: objects, garbage, free memory and stacks of goroutines, which are not told apart from outside", text(j.whole), text(n))
		v.Do = "see the profiles heap and goroutine of net/http/pprof, if it is too much"
	case most == Unseparated && n > max(j.whole/2, leastFault):
		v.Sentence = fmt.Sprintf("%s of %s are neither Go's nor cheap's", text(n), text(j.whole))
	case most == MallocAll:
		v.Sentence += j.huge(isMalloc, max(n, leastFault))
	case most == CInUse && j.untouched() != "":
		v.Sentence += fmt.Sprintf(", where %s are allocated, most of it not written to", text(j.r.C.Live))
	case most == CInUse && len(j.r.C.Libraries) > 0:
		l := j.r.C.Libraries[0]
		v.Sentence += fmt.Sprintf(", about %s of it by %s", text(l.Bytes), l.Name)
	}
	if place := j.r.C.place(Growth{}); j.r.C.Steady { // too little for a fault
		v.Sentence += "; C grows slowly, the most in " + place
	} else if len(j.all) < leastPoints && j.past.Watched == 0 && (most == CInUse || most == MallocAll || most == Unseparated || most == GoInUse) {
		v.Sentence += "; whether it grows can be told after some more looks"
	}
	return v
}

// noun says what a kind is in a sentence.
func (j *judge) noun(k Kind) string {
	switch {
	case k == Mapped && j.unread():
		return "in large mappings, or in blocks of malloc, whose headers were not all read"
	case k == GoInUse && j.isOther():
		return "the Go heap, of which only the size is seen from outside"
	}
	return kindTable[k].noun
}

// unread reports whether blocks of malloc may be among the large mappings.
func (j *judge) unread() bool { return j.t.Mapped && j.r.Mappings.Unread }

// text writes a number of bytes.
func text(n int64) string {
	if n < 1<<10 {
		return fmt.Sprintf("%d B", n)
	}
	return figure.Bytes(float64(n))
}

// functions returns up to n functions of a stack that say where in the program it is: first the
// innermost one of Go code that is no call of cgo, with its line, then those of package main. Without Go code it is the
// innermost one of C.
func functions(stack string, n int) string {
	var list []string
	first, isFirst, before := "", false, ""
	for line := range strings.Lines(stack) {
		line = strings.TrimSuffix(line, "\n")
		if file := line[strings.LastIndexByte(line, '/')+1:]; line == "" || strings.HasPrefix(line, "\t") {
			if isFirst && strings.Contains(file, ".go:") {
				list[0] += " " + strings.TrimPrefix(file, "\t")
			}
			isFirst = false
			continue
		}
		name := line[strings.LastIndexByte(line, '/')+1:]
		if first == "" {
			first = name
		}
		goName := strings.Contains(name, ".") && !strings.Contains(name, "._Cfunc_") && !strings.HasPrefix(name, "runtime.") && !strings.Contains(name, "+0x")
		if goName && name != before && len(list) < n && (len(list) == 0 || strings.HasPrefix(line, "main.")) { // no closure or recursion
			list, before, isFirst = append(list, name), name, len(list) == 0
		}
	}
	if len(list) == 0 {
		return first
	}
	return strings.Join(list, ", called by ")
}
