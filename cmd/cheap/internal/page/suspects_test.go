package page

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cheapgo/cheap/inspect"
	"github.com/cheapgo/cheap/own"
)

// A decoder is a resource with an owner.
type decoder struct{ n own.Number[int] }

//go:noinline
func newDecoder(t *testing.T, p *own.Pool) *decoder {
	d := new(decoder)
	if err := d.n.Own(p, 1, 1000); err != nil {
		t.Error(err)
	}
	return d
}

// makeSuspects makes owners in three places. In one all are kept, half of them with a label; in
// one each is closed, and in one none.
func makeSuspects(t *testing.T, p *own.Pool) (kept []*decoder) {
	done := make(chan bool)
	go func() { // whose stack refers to none of them later
		defer close(done)
		for i := range 10 {
			d := newDecoder(t, p)
			if i%2 == 0 {
				d.n.SetLabel(fmt.Sprintf("the %q label", "odd"))
			}
			kept = append(kept, d)
		}
		for range 50 {
			_ = newDecoder(t, p).n.Close() // Release returns no error
		}
		for range 20 {
			newDecoder(t, p)
		}
	}()
	<-done
	return kept
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

// A suspect is what the page, the JSON and the text have in common.
type suspect struct {
	Pool, Label, Live, Bytes, Collected, Stack string
	Missing                                    bool // a Close
}

// checkSuspects has the page collect, and compares what it shows then with the JSON and the text.
func checkSuspects(b *tab, address string) {
	t := b.t
	t.Helper()
	evaluate[bool](b, `(document.getElementById('collect').click(), true)`)
	for deadline := time.Now().Add(time.Minute); evaluate[string](b, `document.getElementById('collected').textContent`) == ""; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the button that collects does nothing")
		}
	}
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
	if err := json.Unmarshal([]byte(shown), &onPage); err != nil {
		t.Fatal(err)
	}
	var figures inspect.SuspectFigures
	if err := json.Unmarshal(get(b, address+"suspects.json"), &figures); err != nil {
		t.Fatal(err)
	}
	var inJSON []suspect
	for _, s := range figures.Suspects {
		inJSON = append(inJSON, suspect{s.Pool, s.Label, fmt.Sprint(s.Live), fmt.Sprint(s.Bytes), fmt.Sprint(s.Collected), s.Stack, s.MissingClose})
	}
	inText := readSuspects(t, string(get(b, address+"suspects.txt")))
	if len(onPage) == 0 || !slices.Equal(onPage, inJSON) || !slices.Equal(onPage, inText) {
		t.Errorf("the page has\n%+v\nthe JSON\n%+v\nthe text\n%+v", onPage, inJSON, inText)
	}

	// What was planted is there. The first round was before stacks were recorded.
	missing, open := 0, 0
	for _, s := range onPage {
		switch {
		case s.Pool != "decoder <i>":
		case s.Missing && s.Live == "0" && s.Collected == "20" && strings.Contains(s.Stack, "makeSuspects"):
			missing++
		case s.Live == "5" && s.Bytes == "5000":
			open++
		}
	}
	if missing != 1 || open != 4 {
		t.Errorf("%d stacks without Close and %d groups of 5 owners, want 1 and 4:\n%+v", missing, open, onPage)
	}

	// A stack that was opened stays open when the figures are read again.
	evaluate[bool](b, `(document.querySelector('[data-table=suspects] details').open = true, document.getElementById('collected').textContent = '', true)`)
	time.Sleep(200 * time.Millisecond) // the event of the element comes later
	evaluate[bool](b, `(document.getElementById('collect').click(), true)`)
	for deadline := time.Now().Add(time.Minute); evaluate[string](b, `document.getElementById('collected').textContent`) == ""; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the button that collects does nothing the second time")
		}
	}
	if n := evaluate[int](b, `document.querySelectorAll('[data-table=suspects] details[open]').length`); n != 1 {
		t.Errorf("%d stacks are open after the second read, want 1", n)
	}
	if first := evaluate[string](b, `document.querySelector('[data-table=suspects] summary').textContent`); !strings.HasPrefix(first, "page.newDecoder ← page.makeSuspects") {
		t.Errorf("the first suspect was made by %q", first)
	}
	b.become(devices[len(devices)-1])
	b.screenshot("inspect-suspects")
}

var suspectText = regexp.MustCompile(`^(.*): ([\d,]+) open, ([\d,]+) bytes(?:, labeled ("(?:[^"\\]|\\.)*"))?`)

// readSuspects reads the text.
func readSuspects(t *testing.T, text string) (all []suspect) {
	t.Helper()
	for i, block := range strings.Split(strings.TrimRight(text, "\n"), "\n\n") {
		if i == 0 {
			continue // the sums
		}
		m := suspectText.FindStringSubmatch(block)
		if m == nil {
			t.Fatalf("no suspect: %q", block)
		}
		plain := func(n string) string { return strings.ReplaceAll(n, ",", "") }
		s := suspect{Pool: m[1], Live: plain(m[2]), Bytes: plain(m[3]), Collected: "0", Missing: strings.Contains(block, ": a Close is missing")}
		if m[4] != "" {
			if err := json.Unmarshal([]byte(m[4]), &s.Label); err != nil {
				t.Fatal(err)
			}
		}
		if c := regexp.MustCompile(`([\d,]+) released by the collector`).FindStringSubmatch(block); c != nil {
			s.Collected = plain(c[1])
		}
		if _, rest, ok := strings.Cut(block, "made by\n"); ok {
			s.Stack, _, _ = strings.Cut(rest, "one of them was last used by")
			s.Stack = strings.TrimRight(s.Stack, "\n") + "\n"
		}
		all = append(all, s)
	}
	return all
}
