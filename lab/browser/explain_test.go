//go:build browser

package browser

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/pprof/profile"

	"github.com/cheapgo/cheap/internal/test/testcall"
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

// writeProfile writes a CPU profile of the stacks to a file, each so many times.
func writeProfile(t *testing.T, file string, times int64) {
	t.Helper()
	p := &profile.Profile{
		SampleType:    []*profile.ValueType{{Type: "samples", Unit: "count"}, {Type: "cpu", Unit: "nanoseconds"}},
		DurationNanos: int64(time.Second),
	}
	locations := map[string]*profile.Location{}
	for stack, count := range stacks {
		count *= times
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
	testcall.Must(t, err)
	testcall.Must(t, p.Write(to))
	testcall.Must(t, to.Close())
}

// TestExplain opens pages of `cheap explain`. The first screen has the answer, and a warning if the
// samples are too few; tables fit. In one page a function is enlarged and made small again. A page must
// not complain, and must not ask for anything.
func TestExplain(t *testing.T) {
	b := startBrowser(t)
	folder := t.TempDir()
	for times, warns := range map[int64]string{
		4: "",
		1: "Too few samples: there are 110, and from 336 on a share of 30% is off by at most about 5 points. Profile for longer: 336 samples are 3.4s of processor time.",
	} {
		name := filepath.Join(folder, fmt.Sprintf("report-%d.html", times))
		writeProfile(t, filepath.Join(folder, "cpu.pprof"), times)
		runCheap(t, folder, "explain", "-html="+name, "cpu.pprof")
		b.openFile(name)
		for _, d := range devices {
			b.become(d)
			b.frames()
			page := evaluate[struct {
				Answer, Warning, Order string
				End, Height            float64
				Wide                   []string
			}](b, `(() => {
				const answer = document.querySelector('h1 + .answer'), warning = document.querySelector('.answer + .warning');
				return {
					answer: answer.textContent, warning: warning ? warning.textContent : '',
					order: [...document.querySelectorAll('h2')].map(h => h.id).join(' '),
					end: Math.max(...['.answer', '.bar', '.keys'].map(s => document.querySelector(s).getBoundingClientRect().bottom)),
					height: innerHeight,
					wide: [...document.querySelectorAll('section table, section p, section ul, .answer')].filter(e => {
						const frame = (e.closest('section') || document.body).getBoundingClientRect(), r = e.getBoundingClientRect();
						return r.right > frame.right || e.scrollWidth > e.clientWidth + 1;
					}).map(e => e.tagName + ' ' + e.textContent.slice(0, 40)),
				};
			})()`)
			if !strings.HasPrefix(page.Answer, "The largest share, ") || page.End > page.Height {
				t.Errorf("%s: the answer is %q; the shares end at %.0f of %.0f", d.name, page.Answer, page.End, page.Height)
			}
			if page.Warning != warns {
				t.Errorf("%s: %d times the samples: the warning is %q, want %q", d.name, times, page.Warning, warns)
			}
			if want := "shares advice graph sites"; page.Order != want || len(page.Wide) > 0 {
				t.Errorf("%s: the order is %s, want %s; too wide: %q", d.name, page.Order, want, page.Wide)
			}
			for _, p := range b.audit().Problems {
				if !strings.HasSuffix(p, "… is cut") { // a name of the flame graph
					t.Errorf("%s: %s", d.name, p)
				}
			}
			b.screenshot(fmt.Sprintf("explain-%d-%s", times, d.name))
		}
		if list := b.complaints(); len(list) > 0 {
			t.Errorf("the browser complains:\n%s", strings.Join(list, "\n"))
		}
		b.forget()
	}
	b.openFile(filepath.Join(folder, "report-1.html"))
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
