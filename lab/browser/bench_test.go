//go:build browser

package browser

import (
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/cheapgo/cheap/internal/page/result"
	"github.com/cheapgo/cheap/internal/page/result/resulttest"
	"github.com/cheapgo/cheap/lab/internal/measure"
	"github.com/cheapgo/cheap/lab/internal/tables"
)

// stored is the report in docs, with what the laboratory says of its tables.
func stored(t *testing.T) *result.Report {
	r := resulttest.Stored(t, "../../docs/reference/report.json")
	for i := range r.Tables {
		at := slices.IndexFunc(tables.All(), func(of measure.Table) bool { return of.Name == r.Tables[i].Name })
		r.Tables[i] = tables.All()[at].Table
	}
	return r
}

// TestBench opens the page of the stored report on every device: the headline is on the first screen, and
// each figure has a mark in a chart.
func TestBench(t *testing.T) {
	b := startBrowser(t)
	r := stored(t)
	page := benchPage(t, r)
	for _, d := range devices {
		b.become(d)
		b.openFile(page)
		b.frames()
		b.check(d.name, len(r.Rows))
		if end := evaluate[float64](b, `document.querySelector('.short').getBoundingClientRect().bottom - innerHeight`); end > 0 {
			t.Errorf("%s: the headline ends %.0f pixels below the screen", d.name, end)
		}
		b.screenshot("stored-" + d.name)
	}
	run(b, chromedp.Click(`.short a[href="#release"]`))
	b.wait("the finding has led to its table", `location.hash === '#release' && Math.abs(document.getElementById('release').getBoundingClientRect().top) < 50`)
}

// check looks at everything on the page, as it opens and unfolded.
func (b *tab) check(name string, marks int) {
	b.t.Helper()
	for _, p := range b.audit().Problems {
		b.t.Errorf("%s: %s", name, p)
	}
	evaluate[any](b, `document.querySelectorAll('details').forEach(d => { d.open = true; })`)
	b.frames()
	for _, p := range b.audit().Problems {
		b.t.Errorf("%s, unfolded: %s", name, p)
	}
	drawn := evaluate[int](b, `[...document.querySelectorAll('.chart')].reduce((n, box) => n + echarts.getInstanceByDom(box).getOption().series.
		filter(s => box.querySelector('svg path')).reduce((n, s) => n + (s.symbol === 'diamond' ? 0 : s.data.length), 0), 0)`)
	if drawn != marks {
		b.t.Errorf("%s: %d figures are drawn of %d", name, drawn, marks)
	}
	if list := b.complaints(); len(list) > 0 {
		b.t.Errorf("%s: the browser complains:\n%s", name, strings.Join(list, "\n"))
	}
}

// TestBenchNames has names that would be HTML, a time of nothing, and no row at all. The text at a bar
// has the name of its row, as text.
func TestBenchNames(t *testing.T) {
	b := startBrowser(t)
	const name = `<img src=x onerror=console.error(1)>`
	r := &result.Report{
		Tables: []result.Table{{Name: "calls", Title: name, About: name, Sources: []result.Source{{Name: name}}}},
		Rows: []result.Row{
			{Table: "calls", Row: name, Procs: 1, NsPerOp: 3e9, Note: name, Published: []result.Published{{Ns: 40, Source: name}}},
			{Table: "calls", Row: "nothing", Procs: 1},
		},
	}
	b.become(devices[2])
	b.openFile(benchPage(t, r))
	b.frames()
	b.check("names", 2)
	evaluate[any](b, `echarts.getInstanceByDom(document.querySelector('.chart')).dispatchAction({type: 'showTip', seriesIndex: 0, dataIndex: 0})`)
	b.wait("there is a tooltip", `[...document.querySelectorAll('.chart span')].some(e => e.textContent === 'measured here, `+name+`: 3.00 s')`)
	b.openFile(benchPage(t, new(result.Report)))
	b.frames()
	b.check("no row", 0)
}

// TestAudit spoils a page, and checks that the audit finds it.
func TestAudit(t *testing.T) {
	b := startBrowser(t)
	b.become(devices[2])
	page := benchPage(t, stored(t))
	for script, want := range map[string]string{
		`document.querySelector('h2').style.marginBottom = '-1.5rem'`:                               "lies over",
		`document.body.style.width = '5000px'; document.body.style.maxWidth = 'none'`:               "wide",
		`document.querySelector('.chart svg text').style.translate = '-3000px 0'`:                   "beside the page",
		`document.querySelector('h2').textContent = 'what it costs to give C memory back, and so…'`: "is cut",
	} {
		b.openFile(page)
		b.frames()
		evaluate[any](b, script)
		if found := strings.Join(b.audit().Problems, "\n"); !strings.Contains(found, want) {
			t.Errorf("%s: the audit found %q", script, found)
		}
	}
	evaluate[any](b, `console.error('spoiled'); fetch('https://example.com/').catch(() => 0)`)
	b.hears("spoiled", "Content Security Policy")
}
