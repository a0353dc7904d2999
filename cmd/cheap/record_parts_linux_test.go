//go:build amd64 || arm64

package main

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/pprof/profile"

	"github.com/cheapgo/cheap/internal/page/heappage"
	"github.com/cheapgo/cheap/internal/test/testcall"
	"github.com/cheapgo/cheap/internal/test/testwait"
	"github.com/cheapgo/cheap/internal/watch/resident"
)

// TestParts looks at this process, and at one that has ended.
func TestParts(t *testing.T) {
	t.Parallel()
	held := make([]byte, 64<<20)
	for i := 0; i < len(held); i += 1 << 10 {
		held[i] = 1
	}
	program, err := os.Executable()
	testcall.Must(t, err)
	p := &parts{pid: os.Getpid(), program: program, isGo: true, live: func() resident.C { return resident.C{Known: true, Live: 1 << 20} }, began: func() bool { return false }}
	p.look()
	runtime.KeepAlive(held)
	var b strings.Builder
	line := func(label, format string, args ...any) {
		fmt.Fprintf(&b, "%s|%s\n", label, fmt.Sprintf(format, args...))
	}
	v, _ := p.verdict(grew{})
	reportVerdict(v, "the profile", line)
	p.report(line, 999<<20, 0)
	p.report(line, 0, 1<<40) // C had more than was resident at any look
	for _, want := range []string{"resident|not known: the program ended soon after the last look, when it had ", "resident|999 MiB at most; when it was ", "  Go heap\n", "  the program\n", "verdict|", "is the Go heap"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the report has no %q:\n%s", want, &b)
		}
	}
	if table := p.peak.Table(); table.Resident < 64<<20 {
		t.Errorf("%+v", table)
	}

	gone := exec.Command("true")
	if err := gone.Run(); err != nil {
		return // there is no such program
	}
	over := make(chan struct{})
	close(over)
	p = &parts{pid: gone.Process.Pid, live: p.live}
	p.watch(over)
	b.Reset()
	p.report(line, 1<<20, 0)
	if v, ok := p.verdict(grew{}); ok || b.Len() > 0 || p.timeline.seen > 0 {
		t.Errorf("of a program that has ended: %v\n%s", v, &b)
	}
}

// TestPartsSlowLook has a look that goes on until three moments were noted: it does not delay them.
func TestPartsSlowLook(t *testing.T) {
	t.Parallel()
	const moments = 3
	noted, over, ended := make(chan struct{}), make(chan struct{}), make(chan struct{})
	var n atomic.Int64
	p := &parts{
		pid: os.Getpid(), asked: make(chan chan struct{}), timeline: timeline{began: time.Now()},
		inUse:  func() []float64 { return nil },
		mapped: func() []float64 { n.Add(1); return nil },
		live:   func() resident.C { return resident.C{} },
		began:  func() bool { <-noted; return false },
	}
	go func() { defer close(ended); p.watch(over) }()
	testwait.Until(t, "there are moments beside a look", func() bool { return n.Load() >= moments })
	close(noted)
	close(over)
	<-ended
	if last := p.timeline.moments[len(p.timeline.moments)-1].at; p.timeline.seen < last {
		t.Errorf("this process was seen until %v, and has a moment at %v", p.timeline.seen, last)
	}
}

// TestPartsEarly has programs that end with C memory of which the last look saw nearly all, or a third: one in its first
// moment, and two that run for long. One has grown until the last look, and freed all then.
func TestPartsEarly(t *testing.T) {
	t.Parallel()
	const mib = 1 << 20
	began := time.Now()
	for _, c := range []struct {
		after      time.Duration
		live       int64
		want, line string
	}{
		{50 * time.Millisecond, 20, "C had 20.0 MiB ± 1.00 MiB in use at the end, the most from main.short; the program ended too early to tell whether it grows", ""},
		{50 * time.Millisecond, 15, "C had 15.0 MiB ± 1.00 MiB in use at the end, ", ""},               // may be 17
		{time.Minute, 20, "nothing stands out; of 17.0 MiB the most, ", "resident 17.0 MiB at most; "}, // pages that C has not touched
		{time.Minute, 60, "C had 60.0 MiB ± 1.00 MiB in use at the end, the most from main.short; 41.0 MiB more than at the last look, at 1m0s: the program ended too early after that to tell whether it grows", "resident not known: "},
	} {
		p := &parts{live: func() resident.C { return resident.C{Known: true, Live: c.live * mib, Error: mib} }, timeline: timeline{began: began, moments: []timelineMoment{{at: c.after}}}, atLast: 18 * mib}
		p.last = &resident.Reading{Time: began.Add(c.after), C: resident.C{Known: true, Live: 19 * mib}, Mappings: &resident.Mappings{All: resident.Sum{Resident: 17 * mib}}}
		p.peak = p.last
		if v, ok := p.verdict(grew{most: "main.short"}); !ok || !strings.HasPrefix(v.Sentence, c.want) {
			t.Errorf("after %v: %v, want %s", c.after, v, c.want)
		}
		var b strings.Builder
		p.report(func(label, format string, args ...any) { fmt.Fprintf(&b, label+" "+format+"\n", args...) }, 0, c.live*mib)
		if !strings.HasPrefix(b.String(), c.line) {
			t.Errorf("after %v: %s", c.after, &b)
		}
	}
	p := &parts{live: func() resident.C { return resident.C{Known: true} }, history: resident.History{Apart: partsEvery, Watched: leastRecorded}}
	for i := range int64(10) {
		p.last = &resident.Reading{Time: began.Add(time.Duration(i) * time.Second), C: resident.C{Known: true, Live: i * 40 * mib}, Mappings: new(resident.Classifier).Sum(strings.NewReader(fmt.Sprintf("10000-100000000 rw-p 0 00:00 0 [anon: glibc: malloc]\nRss: %d kB\nAnonymous: %[1]d kB\n", 4096+i*40<<10)))}
		p.history.Add(p.last.Point())
	}
	p.peak = p.last
	if v, _ := p.verdict(grew{peak: 360 * mib}); v.Sentence != "nothing stands out; C had 360 MiB in use at most, and 0 bytes at the end" {
		t.Errorf("all was freed at the end: %v", v)
	}
}

// TestFreedAtEnd has a program in which one place has grown and another not, and that frees all in its last moment, or but a part
// of the first place, or before.
func TestFreedAtEnd(t *testing.T) {
	const mib, moments = 1 << 20, 40
	for name, c := range map[string]struct {
		freed, left int // from which moment on, and how much stays
		want        string
	}{
		"in the last moment": {moments - 1, 0, "nothing stands out at the end; 1.0 s before it C had 86.0 MiB in use, the most from main.leak a.go:7, which had risen by 76.0 MiB ± 6.16 MiB from the start on"},
		"in two":             {moments - 2, 4, "nothing stands out at the end; 2.0 s before it C had 84.0 MiB in use, the most from main.leak a.go:7, which had risen by 74.0 MiB ± 6.08 MiB from the start on"},
		"before":             {moments - 5, 0, ""},
		"not all":            {moments - 1, 60, ""},
	} {
		var samples []*profile.Sample
		at := make([][]int64, 2)
		all, times := make([]int64, moments), make([]heappage.Moment, moments)
		for i, function := range []string{"main.leak", "main.cache"} {
			samples = append(samples, &profile.Sample{Value: []int64{1 << 20, 0, 1 << 20, 0}, Location: []*profile.Location{{Line: []profile.Line{{Line: 7, Function: &profile.Function{Name: function, Filename: "a.go"}}}}}})
			for k := range moments {
				n := int64(10)
				switch {
				case k >= c.freed && k+2 > moments:
					n = int64(c.left * (1 - i))
				case k >= c.freed:
					n = int64(c.left)
				case i == 0:
					n = 2 * int64(k)
				}
				at[i] = append(at[i], n*mib)
				all[k] += n * mib
				times[k].At = time.Duration(k) * time.Second
			}
		}
		if got := freedAtEnd(samples, at, all, times, "", 512<<10); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	p := &parts{live: func() resident.C { return resident.C{Known: true} }}
	if v, ok := p.verdict(grew{freed: "x"}); !ok || v.Fault || v.Sentence != "x" {
		t.Errorf("the verdict is %v", v)
	}
}

// TestSlowLeak wants the size of a leak that shows of a verdict that names nothing, and of no other.
func TestSlowLeak(t *testing.T) {
	for _, c := range []struct {
		about resident.About
		rate  int
		want  string
	}{
		{resident.AboutNothing, 512 << 10, "look; a slow leak shows when about 10.0 MiB of it are in use: record longer, or with a smaller -rate"},
		{resident.AboutNothing, 1, "look"},
		{resident.AboutCGrows, 512 << 10, "look"},
	} {
		v := resident.Verdict{About: c.about, Sentence: "x", Do: "look"}
		if addSlowLeak(&v, c.rate); v.Do != c.want {
			t.Errorf("%q, want %q", v.Do, c.want)
		}
	}
}
