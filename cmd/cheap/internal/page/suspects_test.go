package page

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/cheapgo/cheap/inspect"
	"github.com/cheapgo/cheap/internal/testwait"
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

// untilLive collects until a pool has no more than so many owners, so that its figures stay as they
// are.
func untilLive(t *testing.T, p *own.Pool, most int) {
	t.Helper()
	testwait.Until(t, fmt.Sprint("a pool has ", most, " owners"), func() bool {
		runtime.GC()
		return p.Stats().Live <= int64(most)
	})
}

// TestSuspects compares the JSON of suspects with their text, by which the page of package inspect
// is tested where a browser is.
func TestSuspects(t *testing.T) {
	const name = "suspected <i>"
	p := own.NewPool(own.Options{Name: name, Numbers: true, Release: func(any, []uintptr) error { return nil }})
	p.SetLeakLevel(own.LeaksAll)
	kept := makeSuspects(t, p)
	untilLive(t, p, len(kept))
	server := httptest.NewServer(inspect.Handler(inspect.Options{}))
	defer server.Close()
	inJSON, inText := suspectsOf(t, server.URL+"/")
	if !slices.Equal(inJSON, inText) {
		t.Errorf("the JSON has\n%+v\nthe text\n%+v", inJSON, inText)
	}
	if missing, open := planted(inJSON, name); missing != 1 || open != 2 {
		t.Errorf("%d stacks without Close and %d groups of 5 owners, want 1 and 2:\n%+v", missing, open, inJSON)
	}
	runtime.KeepAlive(kept)
}

// A suspect is what the page, the JSON and the text have in common.
type suspect struct {
	Pool, Label, Live, Bytes, Collected, Stack string
	Missing                                    bool // a Close
}

// planted counts what makeSuspects has left in a pool: stacks without Close, and groups of owners
// with a label or without.
func planted(all []suspect, pool string) (missing, open int) {
	for _, s := range all {
		switch {
		case s.Pool != pool:
		case s.Missing && s.Live == "0" && s.Collected == "20" && strings.Contains(s.Stack, "makeSuspects"):
			missing++
		case s.Live == "5" && s.Bytes == "5000":
			open++
		}
	}
	return missing, open
}

// suspectsOf reads the suspects of the page at an address in both forms.
func suspectsOf(t *testing.T, address string) (inJSON, inText []suspect) {
	t.Helper()
	var figures inspect.SuspectFigures
	if err := json.Unmarshal(get(t, address+"suspects.json"), &figures); err != nil {
		t.Fatal(err)
	}
	for _, s := range figures.Suspects {
		inJSON = append(inJSON, suspect{s.Pool, s.Label, fmt.Sprint(s.Live), fmt.Sprint(s.Bytes), fmt.Sprint(s.Collected), s.Stack, s.MissingClose})
	}
	return inJSON, readSuspects(t, string(get(t, address+"suspects.txt")))
}

func get(t *testing.T, address string) []byte {
	t.Helper()
	answer, err := http.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s, %v", address, answer.Status, err)
	}
	return text
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
