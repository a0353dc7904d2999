package inspect

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/cheapgo/cheap/internal/page/pagejson"
	"github.com/cheapgo/cheap/internal/test/testcall"
	"github.com/cheapgo/cheap/own"
)

// TestSuspectsInText compares the JSON of suspects with their text.
func TestSuspectsInText(t *testing.T) {
	const name = "suspected <i>"
	p := newPool(t, name, own.LeaksAll)
	kept := forgetSome(t, p)
	for range 5 {
		o := openConn(t, p)
		o.SetLabel(`the "odd" label`)
		kept = append(kept, o)
	}
	testcall.Must(t, Collect(context.Background()))
	h := Handler(Options{})
	var figures pagejson.SuspectFigures
	testcall.Must(t, json.Unmarshal(ask(h, "GET", "suspects.json", nil).Body.Bytes(), &figures))
	var inJSON []shownSuspect
	missing, odd := 0, 0
	for _, s := range figures.Suspects {
		one := shownSuspect{s.Pool, s.Label, fmt.Sprint(s.Live), fmt.Sprint(s.Bytes), fmt.Sprint(s.Collected), s.Stack, s.MissingClose}
		inJSON = append(inJSON, one)
		switch {
		case s.Pool != name:
		case one.Missing && one.Collected == "100":
			missing++
		case one.Label != "" && one.Live == "5" && one.Bytes == "5000":
			odd++
		}
	}
	if missing != 1 || odd != 1 {
		t.Errorf("%d stacks without Close and %d groups of 5 owners, want one of each:\n%+v", missing, odd, inJSON)
	}
	if inText := readSuspects(t, ask(h, "GET", "suspects.txt", nil).Body.String()); !slices.Equal(inJSON, inText) {
		t.Errorf("the JSON has\n%+v\nthe text\n%+v", inJSON, inText)
	}
	runtime.KeepAlive(kept)
}

// A shownSuspect is what the JSON and the text have in common.
type shownSuspect struct {
	Pool, Label, Live, Bytes, Collected, Stack string
	Missing                                    bool // a Close
}

var suspectText = regexp.MustCompile(`^(.*): ([\d,]+) open, ([\d,]+) bytes(?:, labeled ("(?:[^"\\]|\\.)*"))?`)

// readSuspects reads the text.
func readSuspects(t *testing.T, text string) (all []shownSuspect) {
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
		s := shownSuspect{Pool: m[1], Live: plain(m[2]), Bytes: plain(m[3]), Collected: "0", Missing: strings.Contains(block, ": a Close is missing")}
		if m[4] != "" {
			testcall.Must(t, json.Unmarshal([]byte(m[4]), &s.Label))
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
