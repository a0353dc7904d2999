//go:build browser

package browser

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"

	"github.com/cheapgo/cheap/internal/figure"
	"github.com/cheapgo/cheap/internal/result"
	"github.com/cheapgo/cheap/internal/result/resulttest"
	"github.com/cheapgo/cheap/lab/internal/tables"
)

// TestBench checks pages of `cheap bench`.
func TestBench(t *testing.T) {
	b := startBrowser(t)
	for _, tt := range []struct {
		name string
		test func(*tab)
	}{
		{"answer", testAnswer},
		{"devices", testDevices},
		{"audit", testAuditFinds},
		{"legend", testLegend},
		{"axis", testAxis},
		{"tooltip", testTooltip},
		{"few", testFew},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b.t = t
			b.forget()
			tt.test(b)
			if list := b.complaints(); len(list) > 0 {
				t.Errorf("the browser complains:\n%s", strings.Join(list, "\n"))
			}
		})
	}
}

// testDevices checks a page on every device, with screenshots.
func testDevices(b *tab) {
	r := resulttest.Report()
	for _, d := range devices {
		b.become(d)
		b.open(r)
		b.frames()
		b.check(d.name, r)
		b.screenshot(d.name)
	}
}

// stored is the report in docs, with what the laboratory says of its tables.
func stored(t *testing.T) *result.Report {
	text, err := os.ReadFile("../../docs/report.json")
	if err != nil {
		t.Fatal(err)
	}
	r := new(result.Report)
	if err := json.Unmarshal(text, &r.Rows); err != nil {
		t.Fatal(err)
	}
	r.Machine = *r.Rows[0].Machine
	for i := range r.Rows {
		r.Rows[i].Doubts = result.Doubts(&r.Rows[i], r.Machine.Cores)
	}
	for _, of := range tables.All() {
		if len(r.RowsOf(of.Name)) > 0 {
			r.Tables = append(r.Tables, of.Table)
		}
	}
	return r
}

// testAnswer opens the page of the stored report. The cards are on the first screen, with the figures of
// what they claim; behind them is one warning, and then the tables, folded. Two screens have the chart
// of the first claim. Nothing that is seen is the id of a row.
func testAnswer(b *tab) {
	r := stored(b.t)
	if r.Doubtful() == "" {
		b.t.Fatal("the stored report has no doubtful time, and its page no warning")
	}
	for _, d := range devices {
		b.become(d)
		b.open(r)
		b.frames()
		page := evaluate[struct {
			Order                       []string
			Cards, Sides, Lines         int
			Height, CardsEnd, ChartsEnd float64
			Folded                      bool
			Ids                         []string
			Names                       string
		}](b, `(() => {
			const end = e => e.getBoundingClientRect().bottom + scrollY;
			const cards = [...document.querySelectorAll('.short li')], warning = document.querySelector('.warning');
			const lines = document.createRange();
			lines.selectNodeContents(warning);
			const chart = document.querySelector('[data-chart=release]');
			const ids = new Set([...document.querySelectorAll('.part tbody code')].map(e => e.textContent.split('/')[1]).filter(id => id.includes('-')));
			const words = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), seen = [];
			while (words.nextNode()) {
				const e = words.currentNode.parentElement;
				if (!e.closest('script, style, noscript') && e.checkVisibility()) seen.push(words.currentNode.textContent.trim());
			}
			return {
				order: [...document.querySelectorAll('.short, .warning, section')].map(e => e.id || e.className),
				cards: cards.length, sides: document.querySelectorAll('.short .side').length, lines: lines.getClientRects().length,
				height: innerHeight, cardsEnd: end(cards.at(-1)), chartsEnd: end(chart),
				folded: [...document.querySelectorAll('.part')].every(p => p.querySelector('figure + details:not([open]) table')),
				ids: seen.filter(text => ids.has(text)),
				names: [...chart.querySelectorAll('svg text')].map(e => e.textContent).join('; '),
			};
		})()`)
		want := "short warning release resident allocators live strings "
		if got := strings.Join(page.Order, " "); !strings.HasPrefix(got, want) || len(page.Order) != len(r.Tables)+2 {
			b.t.Errorf("%s: the order is %s, want %s and the others", d.name, got, want)
		}
		if page.Cards != 5 || page.Sides != 10 || page.CardsEnd > page.Height {
			b.t.Errorf("%s: %d cards with %d figures end at %.0f; the screen has %.0f", d.name, page.Cards, page.Sides, page.CardsEnd, page.Height)
		}
		if page.Lines != 1 && d.width > 1000 {
			b.t.Errorf("%s: the warning has %d lines", d.name, page.Lines)
		}
		if page.ChartsEnd > 2*page.Height || !strings.Contains(page.Names, "runtime.AddCleanup") || !strings.Contains(page.Names, "own.Pool, forgotten") {
			b.t.Errorf("%s: the chart of the first claim ends at %.0f, two screens at %.0f; it has %s", d.name, page.ChartsEnd, 2*page.Height, page.Names)
		}
		if !page.Folded || len(page.Ids) > 0 {
			b.t.Errorf("%s: tables are folded under their charts: %v; ids are seen: %q", d.name, page.Folded, page.Ids)
		}
		b.check(d.name, r)
		b.screenshot("stored-" + d.name)
	}
	b.open(r)
	run(b, chromedp.Click(`.short a[href="#release"]`))
	b.wait("the card has led to its table", `location.hash === '#release' && Math.abs(document.getElementById('release').getBoundingClientRect().top) < 50`)
	run(b, chromedp.Click(`#release .part summary`))
	b.wait("the figures are seen", `document.querySelector('#release table').checkVisibility()`)
}

// order puts tables in the order of the page.
func order(tables []result.Table) []result.Table {
	first := []string{"release", "resident", "allocators", "live", "strings"}
	return slices.SortedStableFunc(slices.Values(tables), func(a, b result.Table) int {
		place := func(t result.Table) int { return (slices.Index(first, t.Name) + len(first) + 1) % (len(first) + 1) }
		return place(a) - place(b)
	})
}

// unfold opens what is folded.
func (b *tab) unfold() {
	b.t.Helper()
	evaluate[any](b, `document.querySelectorAll('details').forEach(d => { d.open = true; })`)
	b.frames()
}

// check checks everything on the page, as it opens and unfolded.
func (b *tab) check(name string, r *result.Report) {
	b.t.Helper()
	folded := b.audit()
	b.unfold()
	a := b.audit()
	for _, p := range slices.Concat(folded.Problems, a.Problems) {
		b.t.Errorf("%s: %s", name, p)
	}
	if a.Texts < 4*len(r.Rows) {
		b.t.Errorf("%s: %d texts for %d rows", name, a.Texts, len(r.Rows))
	}
	var want []string
	for _, of := range order(r.Tables) {
		for i, part := range result.Sections(r.RowsOf(of.Name)) {
			id := of.Name
			if i > 0 {
				id = fmt.Sprintf("%s-%d", of.Name, i+1)
			}
			published := 0
			for _, row := range part.Rows {
				published += len(row.Published)
			}
			drawn := published
			if of.Chart == result.Bytes || of.Chart == result.Held {
				drawn = 0
			}
			want = append(want, fmt.Sprintf("%s: %d rows and %d published figures; drawn: %d and %d", id, len(part.Rows), published, len(part.Rows), drawn))
		}
	}
	var got []string
	for i := 0; i < len(a.Charts); {
		first := a.Charts[i]
		drawn, published := 0, 0
		for ; i < len(a.Charts) && a.Charts[i].Part == first.Part; i++ {
			c := a.Charts[i]
			drawn, published = drawn+c.Measured, published+c.Published
			if c.Words == 0 {
				b.t.Errorf("%s: chart %s has no words", name, c.ID)
			}
		}
		got = append(got, fmt.Sprintf("%s: %d rows and %d published figures; drawn: %d and %d", first.Part, first.Rows, first.PublishedRows, drawn, published))
	}
	if !slices.Equal(got, want) {
		b.t.Errorf("%s: the charts are\n%s\nwant\n%s", name, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// testAuditFinds spoils pages, and checks that the audit finds it.
func testAuditFinds(b *tab) {
	for _, tt := range []struct{ name, script, want string }{
		{"text over text", `document.querySelector('h2').style.marginBottom = '-1.5rem'`, "lies over"},
		{"a mark that is gone", `document.querySelector('[data-chart=release] svg path[fill="' + getComputedStyle(document.documentElement).getPropertyValue('--bar').trim() + '"]').remove()`, "nothing is drawn"},
		{"a mark over words", `(() => {
			const box = document.querySelector('[data-chart=release]');
			const word = [...box.querySelectorAll('svg text')].find(e => e.textContent === 'by hand');
			const color = getComputedStyle(document.documentElement).getPropertyValue('--ours').trim();
			const from = word.getBoundingClientRect(), to = box.querySelector('svg path[fill="' + color + '"]').getBoundingClientRect();
			word.style.translate = (to.left - from.left) + 'px ' + (to.top - from.top) + 'px';
		})()`, "the mark of"},
		{"a page that is too wide", `document.body.style.width = '5000px'; document.body.style.maxWidth = 'none'`, "wide"},
	} {
		b.become(devices[2])
		b.open(resulttest.Report())
		evaluate[any](b, tt.script)
		found := b.audit().Problems
		if !slices.ContainsFunc(found, func(p string) bool { return strings.Contains(p, tt.want) }) {
			b.t.Errorf("%s: the audit found %q", tt.name, found)
		}
	}
	if list := b.complaints(); len(list) > 0 {
		b.t.Errorf("the browser complains before it has a reason:\n%s", strings.Join(list, "\n"))
	}
	evaluate[any](b, `console.error('spoiled'); fetch('https://example.com/').catch(() => 0)`)
	b.hears("spoiled", "Content Security Policy")
	b.forget()
}

// testAxis looks at the charts of bars and dots: the axis of a long chart has the same labels above and
// below, and a bar is as long as its figure, from 0 on.
func testAxis(b *tab) {
	b.become(devices[2])
	b.open(resulttest.Report())
	for id, long := range map[string]bool{"calls": false, "release": true, "release-2": false, "resident": false, "traces": false} {
		above := evaluate[[]string](b, `(() => {
			const box = document.querySelector('[data-chart=`+id+`]'), frame = box.getBoundingClientRect();
			const texts = [...box.querySelectorAll('svg text')].filter(e => /^[\d.]+( \S+)?$/.test(e.textContent));
			const side = f => texts.filter(e => f(e.getBoundingClientRect())).map(e => e.textContent).join(' ');
			return [side(r => r.bottom < frame.top + 28), side(r => r.top > frame.bottom - 28)];
		})()`)
		if (above[0] != "") != long || above[1] == "" || long && above[0] != above[1] {
			b.t.Errorf("the labels of %s are %q above and %q below", id, above[0], above[1])
		}
	}
	lengths := evaluate[[]float64](b, `(() => {
		const box = document.querySelector('[data-chart=release]');
		const points = JSON.parse(document.getElementById('charts').textContent).find(c => c.id === 'release').points;
		const color = getComputedStyle(document.documentElement).getPropertyValue('--bar').trim();
		const bars = [...box.querySelectorAll('svg path[fill="' + color + '"]')].map(e => e.getBoundingClientRect().width);
		const others = points.filter(p => !p.ours);
		return others.map((p, i) => bars[i] / p.ns / (bars[0] / others[0].ns));
	})()`)
	if len(lengths) < 5 {
		b.t.Errorf("%d bars", len(lengths))
	}
	for i, l := range lengths {
		if l < 0.97 || l > 1.03 {
			b.t.Errorf("bar %d is %.2f times as long as its figure", i, l)
		}
	}
}

// A click on an entry of a legend removes its marks, and another click brings them
// back.
func testLegend(b *tab) {
	b.become(devices[2])
	b.open(resulttest.Report())
	const button = `[data-legend=size] button:nth-of-type(1)`
	drawn := func() int {
		return evaluate[int](b, `document.querySelectorAll('[data-chart^="size."] svg path').length`)
	}
	pressed := func() string {
		return evaluate[string](b, `document.querySelector('`+button+`').ariaPressed`)
	}
	click := func() {
		run(b, chromedp.Click(button))
		b.frames()
	}
	all := drawn()
	published := 0 // in all charts that share the legend
	for _, row := range resulttest.Report().RowsOf("size") {
		published += len(row.Published)
	}
	click()
	if n := drawn(); n != all-published || published < 10 || pressed() != "false" {
		b.t.Errorf("a click leaves %d of %d shapes, pressed %s", n, all, pressed())
	}
	click()
	if n := drawn(); n != all || pressed() != "true" {
		b.t.Errorf("two clicks leave %d of %d shapes, pressed %s", n, all, pressed())
	}
}

// The tooltip of a mark has the row's name and all of its figures, as text.
func testTooltip(b *tab) {
	b.become(devices[2])
	r := resulttest.Report()
	r.Rows[0].Row = `<img src=x onerror=console.error(1)>`
	b.open(r)
	at := evaluate[[]float64](b, `(() => {
		const box = document.querySelector('[data-chart=calls]');
		box.scrollIntoView();
		const color = getComputedStyle(document.documentElement).getPropertyValue('--bar').trim();
		const r = box.querySelector('svg path[fill="' + color + '"]').getBoundingClientRect();
		return [(r.left + r.right) / 2, (r.top + r.bottom) / 2];
	})()`)
	run(b, chromedp.MouseEvent(input.DispatchMouseEventTypeMouseMoved, at[0], at[1]))
	b.wait("there is a tooltip", `document.querySelector('.tip')?.textContent`)
	text := run(b, chromedp.TextContent(".tip"))
	for _, want := range []string{r.Rows[0].Row, strings.ReplaceAll(figure.Duration(r.Rows[0].NsPerOp), " ", "\u00a0"), "Hansen 2023, 1 core: 0.271"} {
		if !strings.Contains(text, want) {
			b.t.Errorf("the tooltip says %q, which has no %q", text, want)
		}
	}
}

// testFew checks reports that have few rows, or none.
func testFew(b *tab) {
	b.become(devices[0])
	one := resulttest.Report()
	one.Tables, one.Rows = one.Tables[1:2], one.Rows[len(one.Rows)-1:]
	one.Rows[0].Table = one.Tables[0].Name
	one.Partial = true
	b.open(one)
	b.frames()
	b.check("one row", one)
	none := &result.Report{Machine: one.Machine}
	b.open(none)
	if a := b.audit(); len(a.Problems) > 0 || len(a.Charts) > 0 || a.Texts == 0 {
		b.t.Errorf("an empty report: %+v", a)
	}
	// Times of nothing, and what does not fit beside the others.
	odd := resulttest.Report()
	odd.Rows[0].NsPerOp, odd.Rows[0].CI95Low, odd.Rows[0].CI95High = 0, 0, 0
	odd.Rows[1].NsPerOp, odd.Rows[1].CI95Low, odd.Rows[1].CI95High = 3e9, 2e9, 4e9
	b.open(odd)
	b.frames()
	b.check("odd times", odd)
}
