//go:build amd64 || arm64

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/cheapgo/cheap/internal/page/figure"
	"github.com/cheapgo/cheap/internal/watch/procfs"
	"github.com/cheapgo/cheap/internal/watch/resident"
)

// A parts watches what the resident memory of the program is for. It looks from outside, so of Go it knows
// the size of the heap only.
type parts struct {
	pid      int
	program  string
	isGo     bool
	children *children         // nil without -children
	live     func() resident.C // what is counted of the C heap
	inUse    func() []float64  // of each stack; see File.InUse
	mapped   func() []float64  // likewise

	asked    chan chan struct{} // for a look at once; see lookNow
	began    func() bool        // the library has begun
	moment   func()             // called at each look at the resident bytes, or nil
	library  string             // a file that the program has mapped from then on
	timeline timeline           // watch changes the moments, look the points, each with mu
	history  resident.History   // only look changes it, with mu
	forked   map[string]bool    // the children of the last look, by process; only look uses it

	mu      sync.Mutex        // guards all that follows
	last    *resident.Reading // the last one
	peak    *resident.Reading // when the most was resident
	before  int64             // the bytes that statm said last: it is looked at more often
	atLast  int64             // the least of the last two
	most    int64             // what C had in use at most since the last point of history
	next    string            // the program that took the place of this one, by exec, or ""
	started []string          // programs that it has started
}

const (
	partsEvery = 100 * time.Millisecond

	// A program may end, or take most of its memory, in its first moments.
	partsAtFirst, partsFirst = time.Second, 10 * time.Millisecond

	// Reading the list of mappings may take one part in partsShare of the time of a processor.
	partsShare = 10

	// partsApart is how far looks are from each other, if nothing else asks for one.
	partsApart = 2 * time.Second

	// leastRecorded is how long a program has run when growth is told.
	leastRecorded = 2 * time.Second
)

// watch watches until over is closed. The resident bytes, and what C has in use, cost a microsecond. The list of mappings takes
// longer, up to a second on a busy machine, so looks at it do not delay what is noted meanwhile.
func (p *parts) watch(over <-chan struct{}) {
	p.history = resident.History{Apart: partsEvery, Watched: leastRecorded}
	wanted, ended := make(chan struct{}), make(chan struct{})
	go func() { defer close(ended); p.looks(wanted, over) }()
	defer func() { <-ended }()
	ticks := time.NewTicker(partsFirst)
	defer ticks.Stop()
	usual := time.After(partsAtFirst)
	statm := procfs.Open(fmt.Sprintf("/proc/%d/statm", p.pid))
	for {
		now := statm.Read(func(text []byte) int64 {
			all, _ := procfs.Resident(text, int64(os.Getpagesize()))
			return all
		})
		c := p.live()
		at := time.Since(p.timeline.began)
		p.mu.Lock()
		peak := int64(0)
		if p.peak != nil {
			peak = p.peak.Mappings.All.Resident
		}
		if now > 0 {
			p.timeline.seen = at
			if p.next == "" {
				p.atLast, p.before = min(now, p.before), now
			}
		}
		p.most = max(p.most, c.Live, c.Held)
		late := p.last == nil || time.Since(p.last.Time) > partsApart
		p.mu.Unlock()
		due := now > 0 && p.timeline.due()
		if now > 0 && p.moment != nil {
			p.moment()
		}
		if now > 0 && (now > peak+peak/10 || late || due) {
			select {
			case wanted <- struct{}{}:
			default: // one is made
			}
		}
		if due {
			m := timelineMoment{at, p.inUse(), p.mapped(), now}
			p.mu.Lock()
			p.timeline.addMoment(m)
			p.mu.Unlock()
		}
		select {
		case <-over:
			return
		case <-usual:
			ticks.Reset(partsEvery)
		case <-ticks.C:
		}
	}
}

// looks looks when it is asked for, and when it is wanted, unless the last look was expensive, until over is closed. It is wanted
// when a tenth more is resident than ever before, for the page, or, for growth, when two seconds have passed.
func (p *parts) looks(wanted, over <-chan struct{}) {
	runtime.LockOSThread() // its time is that of the looks
	defer runtime.UnlockOSThread()
	var last time.Time
	var took time.Duration
	for {
		select {
		case <-over:
			return
		case done := <-p.asked:
			p.look()
			close(done)
		case <-wanted:
			if time.Since(last) >= partsShare*took {
				before := processorTime()
				last = time.Now()
				p.look()
				took = processorTime() - before // on a busy machine the clock says little
			}
		}
	}
}

// processorTime returns what this thread has used.
func processorTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_THREAD, &u) // cannot fail for this thread
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// recorded returns the timeline as it is now.
func (p *parts) recorded() timeline {
	p.mu.Lock()
	defer p.mu.Unlock()
	t := p.timeline
	t.points, t.moments = slices.Clone(t.points), slices.Clone(t.moments)
	return t
}

// lookNow has watch look, unless that has ended.
func (p *parts) lookNow(over <-chan struct{}) {
	done := make(chan struct{})
	select {
	case p.asked <- done:
		<-done
	case <-over:
	}
}

// look reads the list of mappings.
func (p *parts) look() {
	if p.next != "" {
		return // what is there is of another program
	}
	began := p.began()
	m := resident.MappingsOf(p.pid, p.program, p.isGo)
	if m == nil {
		return // the program has ended
	}
	if began && !slices.ContainsFunc(m.List, func(s resident.Sum) bool { return s.Name == p.library }) {
		next, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", p.pid))
		if err != nil {
			return // it has ended meanwhile
		}
		p.mu.Lock()
		p.next = next
		p.mu.Unlock()
		return
	}
	p.lookForPrograms()
	r := &resident.Reading{Time: time.Now(), Mappings: m, Threads: m.Threads, C: p.live()}
	if status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.pid)); err == nil {
		r.Kernel.Threads = procfs.Count(status, "Threads")
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	r.C.Most = p.most
	p.timeline.addPoint(r)
	if p.history.Add(r.Point()) {
		p.most = 0
	}
	p.last = r
	if p.peak == nil || m.All.Resident > p.peak.Mappings.All.Resident {
		p.peak = r
	}
}

// What is known of growth by places at the end.
type grew struct {
	sentence string // about the place of malloc that has grown the most, or ""
	by       int64
	all      bool   // all that C has in use has grown, whatever its places have
	freed    string // what freedAtEnd says
	peak     int64  // what C had in use at most
	most     string // the place with the most in use, or ""
	mapped   string // the place that has mapped the most without malloc, or ""
	mappedBy int64  // how much that is
}

// verdict is about the whole recording: first what has grown until the end, then what is wrong at the end, or was when the
// most was resident. ok is false if nothing was seen.
func (p *parts) verdict(g grew) (v resident.Verdict, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.live()
	live, deviation, known := c.Live, c.Error, c.Known
	seen, early := int64(0), true // what the last look saw, and whether the program ended before growth can be told
	if n := len(p.timeline.moments); n > 0 {
		early = p.timeline.moments[n-1].at < leastRecorded
	}
	if p.last != nil {
		end := *p.last
		end.C, end.C.Most = c, p.most
		v, seen = resident.Judge(&end, &p.history), p.last.Mappings.All.Resident
		if !v.Fault {
			if most := resident.Judge(p.peak, &p.history); most.Fault && !most.Grows() { // it may have been freed since
				v = most
			}
		}
	}
	switch {
	case v.About != resident.AboutCGrows || !known:
	case live < p.last.C.Live/2: // it was freed behind the last look
		v, seen = resident.Verdict{}, 0
	case g.sentence == "" && !g.all: // stacks are looked at more often, and say that it has stopped
		v = resident.Verdict{About: resident.AboutNothing, Sentence: fmt.Sprintf("nothing stands out; C has %s in use", byteCount(live)), Bytes: live}
	}
	switch {
	case g.sentence != "" && (!v.Grows() || v.About == resident.AboutCGrows || g.by > v.Bytes*2/3): // a place says more
		return resident.Verdict{
			About: resident.AboutCGrows, Fault: true, Sentence: g.sentence, Bytes: g.by,
			Do: "see what this place keeps: it is a leak, or a cache that is not full yet",
		}, true
	case g.freed != "" && (!v.Fault || v.About == resident.AboutMallocFree): // which came to be as the program ended
		v = resident.Verdict{About: resident.AboutUnknown, Sentence: g.freed, Bytes: g.peak, Do: "if the program should not have kept that much, look at this place: memory that is freed as a program ends may have leaked until then"}
	case v.About == resident.AboutMappingGrows && g.mappedBy >= v.Bytes/4:
		v.Sentence += ", the most by " + g.mapped
	case v.About == resident.AboutMappingGrows:
		v.Sentence += "; no call of mmap of the C library has mapped it: Go code has (syscall.Mmap), or a library by system calls of its own"
	case !v.Fault && known && live+2*deviation > leastUnseen && live > p.atLast/2 && (early || live > seen+seen/4):
		v = resident.Verdict{About: resident.AboutNothing, Sentence: fmt.Sprintf("C had %s ± %s in use at the end", byteCount(live), byteCount(deviation)), Bytes: live, Do: "see the profile of module cmem: what is kept until the end on purpose is not forgotten"}
		if g.most != "" {
			v.Sentence += ", the most from " + g.most
		}
		if early || p.last == nil {
			v.Sentence += "; the program ended too early to tell whether it grows"
		} else {
			v.Sentence += fmt.Sprintf("; %s more than at the last look, at %v: the program ended too early after that to tell whether it grows",
				byteCount(live-p.last.C.Live), p.last.Time.Sub(p.timeline.began).Round(100*time.Millisecond))
		}
	case v.Sentence == "" && p.last != nil, !v.Fault && p.atLast > leastUnseen && p.atLast > seen+seen/4 && g.peak > (p.atLast-seen)/2:
		v = resident.Verdict{About: resident.AboutNothing, Bytes: g.peak}
		v.Sentence = fmt.Sprintf("nothing stands out; C had %s in use at most, and %s at the end", byteCount(g.peak), byteCount(live))
	case !v.Fault && p.atLast > leastUnseen && p.atLast > seen+seen/4:
		v = resident.Verdict{About: resident.AboutUnknown, Bytes: p.atLast}
		v.Sentence = fmt.Sprintf("it cannot be told what %s were for: at the last look %s were resident", byteCount(p.atLast), byteCount(seen))
		if g.mappedBy > (p.atLast-seen)/2 {
			v.Sentence += fmt.Sprintf("; %s were mapped without malloc, by %s", byteCount(g.mappedBy), g.mapped)
		}
	}
	switch rest := p.unrecorded(); {
	case len(rest) == 0 || v.Fault || v.Sentence == "":
	case p.next != "":
		v = resident.Verdict{About: resident.AboutUnknown, Sentence: rest[0]}
	default:
		v.Sentence = rest[0] + "; " + strings.TrimPrefix(v.Sentence, "nothing stands out; ")
	}
	return v, v.Sentence != ""
}

// leastUnseen is from how many bytes on the verdict is about what was not looked at.
const leastUnseen = 16 << 20

// lookForPrograms notes which programs run that this one has started. Those that end between two looks are missed.
func (p *parts) lookForPrograms() {
	forked := map[string]bool{}
	defer func() { p.forked = forked }()
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", p.pid)) // none in some kernels
	for _, list := range lists {
		text, _ := os.ReadFile(list) // the thread may have ended
		for _, pid := range strings.Fields(string(text)) {
			program, err := os.Readlink("/proc/" + pid + "/exe")
			if err != nil {
				continue
			}
			if program == p.program && !p.forked[pid] { // before exec, or the child of a fork: the next look knows
				forked[pid] = true
				continue
			}
			forked[pid] = true
			p.mu.Lock()
			if !slices.Contains(p.started, program) {
				p.started = append(p.started, program)
			}
			p.mu.Unlock()
		}
	}
}

// mostStarted is how many programs the report names.
const mostStarted = 4

// leavesOut is unrecorded for a caller that does not hold p.mu.
func (p *parts) leavesOut() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.unrecorded()
}

// unrecorded says in sentences what the recording leaves out. The caller holds p.mu.
func (p *parts) unrecorded() (all []string) {
	if p.next != "" && !p.children.has(p.next) {
		all = append(all, fmt.Sprintf("the program became %s, by exec; what came then is not recorded", figure.Printable(p.next)))
	}
	if started := slices.DeleteFunc(slices.Clone(p.started), p.children.has); len(started) > 0 {
		var names []string
		n := len(started)
		for _, s := range started[:min(n, mostStarted)] {
			names = append(names, figure.Printable(filepath.Base(s)))
		}
		if n > mostStarted {
			names = append(names, figure.Plural(n-mostStarted, "other program"))
		}
		why := "; what a program starts is not recorded"
		if p.children != nil {
			why = "; it could not be recorded"
		}
		all = append(all, "the program has started "+strings.Join(names, ", ")+why)
	}
	return all
}

// mostParts is how many parts the report names.
const mostParts = 6

// reportVerdict writes the verdict, and what to do. The verdicts speak of the profile of module cmem; here that is
// called profile.
func reportVerdict(v resident.Verdict, profile string, line func(label, format string, args ...any)) {
	line("verdict", "%s", figure.Printable(v.Sentence))
	if strings.HasPrefix(v.Do, "import module cmem") { // this command is in its place
		v.Do = "see the profile of module cmem, which has what was allocated since the recording began"
	}
	if v.Do != "" {
		line("to do", "%s", figure.Printable(strings.ReplaceAll(v.Do, "the profile of module cmem", profile)))
	}
}

// report writes what was resident at most, as the kernel says it, and what that was for when it was seen to be the
// most.
func (p *parts) report(line func(label, format string, args ...any), most, peak int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.peak == nil {
		return
	}
	table := p.peak.Table()
	if most == 0 && table.Resident < peak && p.last.C.Live < peak/2 { // else there are pages that C has not touched
		line("resident", "not known: the program ended soon after the last look, when it had %s", byteCount(table.Resident))
		return
	}
	line("resident", "%s at most; when it was %s:", byteCount(max(most, table.Resident)), byteCount(table.Resident))
	for _, part := range table.Largest(mostParts) {
		line("", "%10s  %s", byteCount(part.Bytes), figure.Printable(part.Name))
	}
}
