//go:build browser

package browser

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/chromedp/chromedp"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/inspect"
	"github.com/cheapgo/cheap/internal/page/pagejson"
	"github.com/cheapgo/cheap/internal/test/testcall"
	"github.com/cheapgo/cheap/own"
	"github.com/cheapgo/cheap/pace"
)

// TestInspect looks at the page of package inspect while four goroutines allocate.
func TestInspect(t *testing.T) {
	b := startBrowser(t)
	was := cheap.SetDecay(-1) // nothing changes behind the back of the test
	defer cheap.SetDecay(was)
	suspicious := own.NewPool(own.Options{Name: "decoder <i>", Numbers: true, Release: func(any, []uintptr) error { return nil }})
	kept := makeSuspects(t, suspicious)
	stop := allocate(t)
	mux := http.NewServeMux()
	mux.Handle("/debug/cheap/", inspect.Handler(inspect.Options{Title: "inspected <b>"}))
	server := httptest.NewServer(mux)
	defer server.Close()
	address := server.URL + "/debug/cheap/"

	run(b, chromedp.Navigate(address))
	waitFor := func(n int) {
		t.Helper()
		b.wait(fmt.Sprintf("the page was updated %d times", n), fmt.Sprintf(`Number(document.body.dataset.updates) >= %d`, n))
	}
	waitFor(1)
	const heaps = `document.querySelector('[data-table=heaps] tbody').textContent`
	evaluate[string](b, `window.first = `+heaps)
	b.wait("the table of heaps changes while goroutines allocate", heaps+` !== window.first`)
	waitFor(4)
	checkOverview(b)
	checkAdvice(b, "decoder <i>")
	own.SetLeakLevel("*", own.LeaksAll)
	for _, d := range devices {
		b.become(d)
		b.screenshot("inspect-" + d.name)
		checkFits(b, d)
	}

	// From now on the page reads only when it is told to, and nothing changes between two reads.
	evaluate[bool](b, `(document.getElementById('pause').click(), true)`)
	b.wait("the last update has ended", `!document.body.dataset.asking`)
	stop()
	untilLive(t, suspicious, len(kept))
	evaluate[bool](b, `(document.getElementById('trim').click(), true)`)
	b.wait("the button that trims has updated the page", `!document.getElementById('trim').disabled`)
	if got := evaluate[string](b, `document.getElementById('trimmed').textContent`); got != "Idle memory was given back." {
		t.Errorf("the button that trims says %q", got)
	}
	for _, table := range []string{"heaps", "classes", "accounts", "pools"} {
		agree(b, address, table)
	}
	kept = append(kept, makeSuspects(t, suspicious)...) // after the last collection
	checkSuspects(b, address)
	runtime.KeepAlive(kept)
	if got := evaluate[string](b, `document.title`); got != "inspected <b>: memory outside the Go heap" {
		t.Errorf("the title is %q", got)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, said := range b.said {
		t.Errorf("the console was told: %s", said)
	}
	for _, u := range b.requests {
		if !strings.HasPrefix(u, address) && !strings.HasPrefix(u, "data:") {
			t.Errorf("the page asked for %s", u)
		}
	}
}

// checkOverview looks for what the first screen answers: a sentence, the parts as a bar and over time, and
// suspects with their lines.
func checkOverview(b *tab) {
	b.t.Helper()
	var o struct {
		Sentence, Sum   string
		Since           string
		Bar, Areas      int
		Points          int // of the smallest area
		Width           float64
		Legend, Largest []string
		Links           int
	}
	text := evaluate[string](b, `JSON.stringify({
		sentence: document.getElementById('sentence').textContent,
		sum: document.getElementById('sum').textContent,
		since: document.getElementById('since').textContent,
		bar: document.querySelectorAll('#bar rect').length,
		width: [...document.querySelectorAll('#bar rect')].reduce((n, r) => n + r.width.baseVal.value, 0),
		areas: document.querySelectorAll('#chart polygon').length,
		points: Math.min(...[...document.querySelectorAll('#chart polygon')].map(l => l.points.numberOfItems)),
		legend: [...document.querySelectorAll('#legend > span')].map(e => e.textContent),
		largest: [...document.querySelectorAll('#largest > li')].map(e => e.textContent),
		links: document.querySelectorAll('nav a').length,
	})`)
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		b.t.Fatal(err)
	}
	if !strings.HasSuffix(o.Sentence, ".") || o.Sentence == "It is being read." || !strings.HasPrefix(o.Sum, "Resident ") {
		b.t.Errorf("the page says %q, %q", o.Sentence, o.Sum)
	}
	if o.Bar < 5 || o.Width < 900 || o.Areas < 3 || o.Points < 2*4 || len(o.Legend) < 2 {
		b.t.Errorf("after 4 updates the bar, the chart and the legend are %+v", o)
	}
	if o.Links < 5 || o.Links > 8 {
		b.t.Errorf("the page has %d ways to its parts", o.Links)
	}
	if !strings.HasPrefix(o.Since, "Resident memory: ") || !strings.Contains(o.Since, " in ") {
		b.t.Errorf("above the chart stands %q, and not what has changed", o.Since)
	}
	then := evaluate[string](b, `(() => {
		const box = document.getElementById('chart'), {left, top, width} = box.getBoundingClientRect();
		box.dispatchEvent(new PointerEvent('pointermove', {clientX: left + width / 2, clientY: top + 50}));
		const text = document.getElementById('since').textContent;
		box.dispatchEvent(new PointerEvent('pointerleave'));
		return text;
	})()`)
	if !regexp.MustCompile(`^\d\d:\d\d:\d\d: resident \d.*B; .+B; .+B; .+B$`).MatchString(then) {
		b.t.Errorf("a pointer in the chart has the page say %q", then)
	}
	if len(o.Largest) < 2 { // a line for each pool: stacks are not recorded yet
		b.t.Errorf("the largest suspects are %q", o.Largest)
	}
	for _, to := range evaluate[[]string](b, `[...document.querySelectorAll('nav a, #largest a')].map(a => a.getAttribute('href'))`) {
		if !evaluate[bool](b, `document.querySelector('`+to+`') !== null`) {
			b.t.Errorf("there is no %s", to)
		}
	}
}

// checkFits looks whether the first screen is one, and whether something is cut.
func checkFits(b *tab, d device) {
	b.t.Helper()
	if wide := evaluate[int](b, `document.documentElement.scrollWidth - innerWidth`); wide > 0 {
		b.t.Errorf("%s: the page is %d pixels wider than the window", d.name, wide)
	}
	for _, cut := range evaluate[[]string](b, `[...document.querySelectorAll('.scroll, #sum, #largest, #legend, #warnings, nav')].filter(e => e.scrollWidth > e.clientWidth).map(e => e.id || e.getAttribute('aria-label'))`) {
		b.t.Errorf("%s: %s is cut", d.name, cut)
	}
	screen := 844
	if d.width > 1000 {
		screen = 800
	}
	if end := evaluate[float64](b, `scrollY + document.getElementById('largest').lastElementChild.getBoundingClientRect().bottom`); end > float64(screen) {
		b.t.Errorf("%s: the suspects end at %v, and the screen at %d", d.name, end, screen)
	}
}

// agree compares a table of the page with its JSON and its text.
func agree(b *tab, address, table string) {
	b.t.Helper()
	shown := evaluate[string](b, fmt.Sprintf(`JSON.stringify([...document.querySelector('[data-table=%s]').tBodies[0].rows].map(r =>
		[...r.cells].filter(c => !c.classList.contains('meter')).map(c => c.dataset.value ?? c.textContent).join(' ')))`, table))
	var onPage, inJSON []string
	if err := json.Unmarshal([]byte(shown), &onPage); err != nil {
		b.t.Fatal(err)
	}
	var report pagejson.Figures
	if err := json.Unmarshal(get(b.t, address+table+".json"), &report); err != nil {
		b.t.Fatal(err)
	}
	for _, r := range report.Tables[0].Rows {
		line := strings.Join(r.Labels, " ")
		for _, v := range r.Values {
			text, err := json.Marshal(v)
			if err != nil {
				b.t.Fatal(err)
			}
			line += " " + string(text)
		}
		inJSON = append(inJSON, line)
	}
	inText := strings.Split(strings.TrimSpace(string(get(b.t, address+table+".txt"))), "\n")[2:]
	for i, line := range inText {
		inText[i] = strings.Join(strings.Fields(line), " ")
	}
	for _, list := range [][]string{onPage, inJSON, inText} {
		slices.Sort(list)
	}
	if !slices.Equal(onPage, inJSON) || !slices.Equal(onPage, inText) || len(onPage) == 0 {
		b.t.Errorf("%s: the page has\n%s\nthe JSON\n%s\nthe text\n%s", table, strings.Join(onPage, "\n"), strings.Join(inJSON, "\n"), strings.Join(inText, "\n"))
	}
}

// allocate starts four goroutines that allocate, in a heap and in a pool, until stop is called.
// The blocks that they leave stay.
func allocate(t *testing.T) (stop func()) {
	h, err := cheap.NewHeap(cheap.HeapOptions{Name: "images", Limit: 256 << 20})
	testcall.Must(t, err)
	pool := own.NewPool(own.Options{Name: "Image", Numbers: true, Release: func(any, []uintptr) error { return nil }})
	account := pace.NewAccount(pace.AccountOptions{Name: "decoder", Limit: 64 << 20})
	testcall.Must(t, account.Add(50<<20))
	var done atomic.Bool
	var work sync.WaitGroup
	kept := make([][]*struct{ n own.Number[int] }, 4)
	for g := range 4 {
		work.Go(func() {
			var ring [512]unsafe.Pointer
			for i := 0; !done.Load(); i++ {
				p := &ring[i*31%len(ring)]
				h.Free(*p)
				*p = h.Malloc(1 + i*7919%(20<<10))
				if i%50 == 0 {
					x := new(struct{ n own.Number[int] })
					if err := x.n.Own(pool, i, 1000); err != nil {
						t.Error(err)
						return
					}
					if len(kept[g]) < 1000 {
						kept[g] = append(kept[g], x)
					}
					time.Sleep(time.Millisecond) // the browser needs a processor, too
				}
			}
		})
	}
	var once sync.Once
	stop = func() {
		once.Do(func() {
			done.Store(true)
			work.Wait()
			clear(kept)
			untilLive(t, pool, 0) // and not while figures are compared
		})
	}
	t.Cleanup(func() {
		stop()
		testcall.Want(t, h.DestroyAll())
		account.Close()
	})
	return stop
}

// checkAdvice looks for the sentence that says how stacks are recorded. It names the pools that
// record none.
func checkAdvice(b *tab, pool string) {
	b.t.Helper()
	text := evaluate[string](b, `document.getElementById('advice').hidden ? '' : document.getElementById('advice').textContent`)
	for _, want := range []string{pool, "inspect.EnableLeaks()", "CHEAP_LEAKS=sampled"} {
		if !strings.Contains(text, want) {
			b.t.Errorf("a pool records no stacks, and the page says %q, without %q", text, want)
		}
	}
}

// checkSuspects has the page collect, and compares what it shows then with the JSON.
func checkSuspects(b *tab, address string) {
	t := b.t
	t.Helper()
	collect := func() {
		t.Helper()
		evaluate[bool](b, `(document.getElementById('collect').click(), true)`)
		b.wait("the button that collects has updated the page", `!document.getElementById('collect').disabled`)
		if got := evaluate[string](b, `document.getElementById('collected').textContent`); !strings.HasPrefix(got, "Collected at ") {
			t.Errorf("the button that collects says %q", got)
		}
	}
	collect()
	if !evaluate[bool](b, `document.getElementById('advice').hidden`) {
		t.Error("all pools record stacks, and the page says what to do about it")
	}
	shown := evaluate[string](b, `JSON.stringify([...document.querySelector('[data-table=suspects]').tBodies[0].rows].map(r => {
		const [pool, label, live, bytes, collected, stack] = r.cells;
		return {
			Pool: pool.textContent, Label: label.textContent,
			Live: live.dataset.value, Bytes: bytes.dataset.value, Collected: collected.dataset.value,
			Stack: stack.querySelector('pre')?.textContent ?? '', Missing: stack.querySelector('.missing') !== null,
		};
	}))`)
	var onPage []suspect
	testcall.Must(t, json.Unmarshal([]byte(shown), &onPage))
	if inJSON := suspectsOf(t, address); len(onPage) == 0 || !slices.Equal(onPage, inJSON) {
		t.Errorf("the page has\n%+v\nthe JSON\n%+v", onPage, inJSON)
	}
	// The first round was before stacks were recorded.
	if missing, open := planted(onPage, "decoder <i>"); missing != 1 || open != 4 {
		t.Errorf("%d stacks without Close and %d groups of 5 owners, want 1 and 4:\n%+v", missing, open, onPage)
	}

	// A stack that was opened stays open when the figures are read again.
	evaluate[bool](b, `new Promise(done => {
		const whole = document.querySelector('[data-table=suspects] details');
		whole.addEventListener('toggle', () => done(true)); // after that of the page
		whole.open = true;
	})`)
	collect()
	if n := evaluate[int](b, `document.querySelectorAll('[data-table=suspects] details[open]').length`); n != 1 {
		t.Errorf("%d stacks are open after the second read, want 1", n)
	}
	if first := evaluate[string](b, `document.querySelector('[data-table=suspects] summary').textContent`); !strings.HasPrefix(first, "browser.newDecoder ← browser.makeSuspects") {
		t.Errorf("the first suspect was made by %q", first)
	}
	b.become(devices[len(devices)-1])
	b.screenshot("inspect-suspects")
}
