package page

import (
	"image"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"

	"github.com/cheapgo/cheap/cmd/cheap/internal/result"
	"github.com/cheapgo/cheap/cmd/cheap/internal/result/resulttest"
)

// TestBrowser checks pages in a browser.
func TestBrowser(t *testing.T) {
	b := startBrowser(t)
	for _, tt := range []struct {
		name string
		test func(*tab)
	}{
		{"devices", testDevices},
		{"change", testChange},
		{"audit", testAuditFinds},
		{"legend", testLegend},
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
		b.checkPicture(d, b.check(d.name, r))
	}
}

// testChange checks a page whose window changes.
func testChange(b *tab) {
	r := resulttest.Report()
	b.become(devices[3])
	b.open(r)
	for _, d := range []device{devices[0], {"tablet", 800, "dark"}, {"small phone", 320, "light"}, devices[2]} {
		b.become(d)
		b.check("changed to "+d.name, r)
	}
}

// check checks everything on the page.
func (b *tab) check(name string, r *result.Report) audit {
	b.t.Helper()
	a := b.audit()
	for _, p := range a.Problems {
		b.t.Errorf("%s: %s", name, p)
	}
	if a.Texts < 4*len(r.Rows) {
		b.t.Errorf("%s: %d texts for %d rows", name, a.Texts, len(r.Rows))
	}
	if len(a.Charts) != len(r.Tables) {
		b.t.Fatalf("%s: %d charts for %d tables", name, len(a.Charts), len(r.Tables))
	}
	for i, c := range a.Charts {
		rows, published := countRows(r, r.Tables[i].Name)
		if c.ID != r.Tables[i].Name || c.Rows != rows || c.PublishedRows != published {
			b.t.Errorf("%s: table %s has %d rows and %d published figures, want %s with %d and %d",
				name, c.ID, c.Rows, c.PublishedRows, r.Tables[i].Name, rows, published)
		}
		if c.Measured != rows || c.Published != published {
			b.t.Errorf("%s: chart %s shows %d rows and %d published figures, want %d and %d",
				name, c.ID, c.Measured, c.Published, rows, published)
		}
		if c.Words == 0 {
			b.t.Errorf("%s: chart %s has no words", name, c.ID)
		}
	}
	return a
}

// checkPicture checks a screenshot.
func (b *tab) checkPicture(d device, a audit) {
	b.t.Helper()
	img := b.screenshot(d.name)
	if w := img.Bounds().Dx(); w != d.width {
		b.t.Errorf("%s: the screenshot is %d wide", d.name, w)
	}
	for _, c := range a.Charts {
		box := image.Rect(c.Left, c.Top, c.Left+c.Width, c.Top+c.Height)
		if painted(img, box) < 0.01 {
			b.t.Errorf("%s: chart %s at %v is blank", d.name, c.ID, box)
		}
	}
	if dark := luminance(img, 1, 1) < 0.5; dark != (d.scheme == "dark") {
		b.t.Errorf("%s: the background is not %s", d.name, d.scheme)
	}
}

func countRows(r *result.Report, table string) (rows, published int) {
	for _, row := range r.Rows {
		if row.Table == table {
			rows++
			published += len(row.Published)
		}
	}
	return rows, published
}

// painted returns the share of pixels that are not of the colour of most.
func painted(img image.Image, box image.Rectangle) float64 {
	colors := make(map[[3]uint32]int)
	box = box.Intersect(img.Bounds())
	for y := box.Min.Y; y < box.Max.Y; y += 2 {
		for x := box.Min.X; x < box.Max.X; x += 2 {
			r, g, b, _ := img.At(x, y).RGBA()
			colors[[3]uint32{r, g, b}]++
		}
	}
	most, all := 0, 0
	for _, n := range colors {
		most, all = max(most, n), all+n
	}
	if all == 0 {
		return 0
	}
	return 1 - float64(most)/float64(all)
}

func luminance(img image.Image, x, y int) float64 {
	r, g, b, _ := img.At(x, y).RGBA()
	return (0.2126*float64(r) + 0.7152*float64(g) + 0.0722*float64(b)) / 0xffff
}

// testAuditFinds spoils pages, and checks that the audit finds it.
func testAuditFinds(b *tab) {
	for _, tt := range []struct{ name, script, want string }{
		{"text over text", `document.querySelector('h2').style.marginBottom = '-1.5rem'`, "lies over"},
		{"a mark that is gone", `document.querySelector('[data-chart=release] svg path[fill="' + getComputedStyle(document.documentElement).getPropertyValue('--bar').trim() + '"]').remove()`, "nothing is drawn"},
		{"a mark over words", `document.querySelector('[data-chart=release] svg text').setAttribute('style', 'transform: translate(240px, 22px)')`, "the mark of"},
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
	if list := strings.Join(b.complaints(), "\n"); !strings.Contains(list, "spoiled") || !strings.Contains(list, "Content Security Policy") {
		b.t.Errorf("the browser did not complain:\n%s", list)
	}
	b.forget()
}

// A click on an entry of a legend removes its marks, and another click brings them
// back.
func testLegend(b *tab) {
	b.become(devices[2])
	b.open(resulttest.Report())
	const button = `[data-legend=scaling] button:nth-of-type(3)`
	drawn := func() int {
		return evaluate[int](b, `document.querySelectorAll('[data-chart=scaling] svg path').length`)
	}
	pressed := func() string {
		return evaluate[string](b, `document.querySelector('`+button+`').ariaPressed`)
	}
	click := func() {
		run(b, chromedp.Click(button))
		b.frames()
	}
	all := drawn()
	click()
	if n := drawn(); n >= all || pressed() != "false" {
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
	text := run(b, chromedp.TextContent(".tip"))
	for _, want := range []string{r.Rows[0].Row, measured(r.Rows[0].NsPerOp), "Hansen 2023, 1 core: 0.271"} {
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
