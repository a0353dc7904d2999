package page

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
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
	"github.com/cheapgo/cheap/own"
	"github.com/cheapgo/cheap/pace"
)

// TestInspectPage looks at the page of package inspect, which is not the page of this package,
// while four goroutines allocate. This is where a browser is.
func TestInspectPage(t *testing.T) {
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
	updates := func() int { return evaluate[int](b, `Number(document.body.dataset.updates)`) }
	waitFor := func(n int) {
		t.Helper()
		for deadline := time.Now().Add(time.Minute); updates() < n; time.Sleep(50 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("the page was updated %d times in a minute, want %d", updates(), n)
			}
		}
	}
	waitFor(1)
	first := evaluate[string](b, `document.querySelector('[data-table=heaps] tbody').textContent`)
	waitFor(4)
	if now := evaluate[string](b, `document.querySelector('[data-table=heaps] tbody').textContent`); now == first {
		t.Error("the table of heaps did not change while goroutines allocate")
	}
	if n := evaluate[int](b, `document.querySelectorAll('#chart polyline').length`); n != 4 {
		t.Errorf("the chart has %d lines, want 4", n)
	}
	if n := evaluate[int](b, `Math.min(...[...document.querySelectorAll('#chart polyline')].map(l => l.points.numberOfItems))`); n < 4 {
		t.Errorf("a line has %d points after 4 updates", n)
	}
	checkAdvice(b, "decoder <i>")
	for _, info := range own.Pools() {
		info.SetLeakLevel(own.LeaksAll)
	}
	for _, d := range devices {
		b.become(d)
		b.screenshot("inspect-" + d.name)
		if wide := evaluate[int](b, `document.documentElement.scrollWidth - innerWidth`); wide > 0 {
			t.Errorf("%s: the page is %d pixels wider than the window", d.name, wide)
		}
	}

	stop()
	evaluate[bool](b, `(async () => { document.getElementById('trim').click(); return true; })()`)
	for deadline := time.Now().Add(time.Minute); evaluate[string](b, `document.getElementById('trimmed').textContent`) == ""; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the button does nothing")
		}
	}
	waitFor(updates() + 1)
	evaluate[bool](b, `(document.getElementById('pause').click(), true)`)
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

// agree compares a table of the page with its JSON and its text.
func agree(b *tab, address, table string) {
	b.t.Helper()
	shown := evaluate[string](b, fmt.Sprintf(`JSON.stringify([...document.querySelector('[data-table=%s]').tBodies[0].rows].map(r =>
		[...r.cells].filter(c => !c.classList.contains('meter')).map(c => c.dataset.value ?? c.textContent).join(' ')))`, table))
	var onPage, inJSON []string
	if err := json.Unmarshal([]byte(shown), &onPage); err != nil {
		b.t.Fatal(err)
	}
	var report inspect.Figures
	if err := json.Unmarshal(get(b, address+table+".json"), &report); err != nil {
		b.t.Fatal(err)
	}
	for _, r := range report.Tables[0].Rows {
		line := strings.Join(r.Labels, " ")
		for _, v := range r.Values {
			line += fmt.Sprintf(" %v", json.Number(strings.TrimSpace(string(mustJSON(b, v)))))
		}
		inJSON = append(inJSON, line)
	}
	inText := strings.Split(strings.TrimSpace(string(get(b, address+table+".txt"))), "\n")[2:]
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

func mustJSON(b *tab, v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		b.t.Fatal(err)
	}
	return text
}

func get(b *tab, address string) []byte {
	b.t.Helper()
	answer, err := http.Get(address)
	if err != nil {
		b.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		b.t.Fatalf("%s: %s, %v", address, answer.Status, err)
	}
	return text
}

// allocate starts four goroutines that allocate, in a heap and in a pool, until stop is called.
// The blocks that they leave stay.
func allocate(t *testing.T) (stop func()) {
	h, err := cheap.NewHeap(cheap.HeapOptions{Name: "images", Limit: 256 << 20})
	if err != nil {
		t.Fatal(err)
	}
	pool := own.NewPool(own.Options{Name: "Image", Numbers: true, Release: func(any, []uintptr) error { return nil }})
	account := pace.NewAccount(pace.AccountOptions{Name: "decoder", Limit: 64 << 20})
	if err := account.Add(50 << 20); err != nil {
		t.Fatal(err)
	}
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
					time.Sleep(time.Millisecond)
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
			// What is forgotten is released by now, and not while figures are compared.
			for deadline := time.Now().Add(time.Minute); pool.Stats().Live > 0; time.Sleep(time.Millisecond) {
				if time.Now().After(deadline) {
					t.Errorf("%d owners are left", pool.Stats().Live)
					return
				}
				runtime.GC()
			}
		})
	}
	t.Cleanup(func() {
		stop()
		if err := h.DestroyAll(); err != nil {
			t.Error(err)
		}
		account.Close()
	})
	return stop
}
