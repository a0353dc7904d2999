//go:build browser

package browser

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/pprof/profile"
)

// stacks are those of a program with all mechanisms, the leaf first, and how many samples they have.
// A function whose name begins with c_ is of C. Behind the name is the line.
var stacks = map[string]int64{
	"runtime.reentersyscall runtime.entersyscall runtime.cgocall:3 main._Cfunc_work main.f:5 main.main": 30,
	"c_work runtime.cgocall:3 main._Cfunc_work main.f:5 main.main":                                      30,
	"runtime.cgocallbackg runtime.cgocall:7 main._Cfunc_work main.f:5 main.main":                        10,
	"runtime.mallocgc runtime.newobject example.com/a/b.(*T[...]).Method main.main":                     10,
	"runtime.lock2 main.</script><b> main.main":                                                         10,
	"runtime.addspecial runtime.AddCleanup main.object:4 main.main":                                     10,
	"runtime.gcDrain runtime.gcBgMarkWorker":                                                            10,
}

// writeProfile writes a CPU profile of the stacks to a file.
func writeProfile(t *testing.T, file string) {
	t.Helper()
	p := &profile.Profile{
		SampleType:    []*profile.ValueType{{Type: "samples", Unit: "count"}, {Type: "cpu", Unit: "nanoseconds"}},
		DurationNanos: int64(time.Second),
	}
	locations := map[string]*profile.Location{}
	for stack, count := range stacks {
		s := &profile.Sample{Value: []int64{count, count * int64(10*time.Millisecond)}}
		for f := range strings.FieldsSeq(stack) {
			if locations[f] == nil {
				fn := &profile.Function{ID: uint64(len(p.Function) + 1), Name: f, Filename: "file.go"}
				line := int64(1)
				if at := strings.LastIndexByte(f, ':'); at > 0 {
					fn.Name, line = f[:at], int64(f[at+1]-'0')
				}
				if strings.HasPrefix(f, "c_") {
					fn.Filename = "libc.so"
				}
				p.Function = append(p.Function, fn)
				locations[f] = &profile.Location{ID: uint64(len(p.Location) + 1), Line: []profile.Line{{Function: fn, Line: line}}}
				p.Location = append(p.Location, locations[f])
			}
			s.Location = append(s.Location, locations[f])
		}
		p.Sample = append(p.Sample, s)
	}
	to, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Write(to); err != nil {
		t.Fatal(err)
	}
	if err := to.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestExplain opens the page of `cheap explain`, enlarges a function and goes back. The page must not
// complain, and must not ask for anything.
func TestExplain(t *testing.T) {
	b := startBrowser(t)
	folder := t.TempDir()
	writeProfile(t, filepath.Join(folder, "cpu.pprof"))
	runCheap(t, folder, "explain", "-html=report.html", "cpu.pprof")
	b.openFile(filepath.Join(folder, "report.html"))
	for _, d := range devices {
		b.become(d)
		b.screenshot("explain-" + d.name)
	}
	const words = `[...document.querySelectorAll('#flame svg text')].map(t => t.textContent).join(' ')`
	if got := evaluate[string](b, words); !strings.Contains(got, "all") || !strings.Contains(got, "C.work") || !strings.Contains(got, "main.f") {
		t.Errorf("the flame graph has the words %q", got)
	}
	const click = `(() => {
		const text = [...document.querySelectorAll('#flame svg text')].find(t => t.textContent === 'main.f');
		text.scrollIntoView({block: 'center'});
		const r = text.getBoundingClientRect();
		for (const type of ['mousemove', 'mousedown', 'mouseup', 'click']) {
			document.elementFromPoint(r.x + 2, r.y + 2).dispatchEvent(new MouseEvent(type,
				{bubbles: true, clientX: r.x + 2, clientY: r.y + 2, view: window}));
		}
		return String(document.getElementById('flame-reset').hidden) + ' ' + document.getElementById('flame-text').textContent;
	})()`
	if got := evaluate[string](b, click); got != "false main.f, 64% of the processor time" {
		t.Errorf("after a click: %q", got)
	}
	// Its name is main.object, of which there is as much as the fonts of the machine leave room for.
	if got := evaluate[string](b, words); strings.Contains(got, "main.o") {
		t.Errorf("the enlarged graph has the words %q", got)
	}
	if got := evaluate[string](b, `document.getElementById('flame-reset').click(), `+words); !strings.Contains(got, "main.o") {
		t.Errorf("the whole graph has the words %q", got)
	}
	if list := b.complaints(); len(list) > 0 {
		t.Errorf("the browser complains:\n%s", strings.Join(list, "\n"))
	}
}
