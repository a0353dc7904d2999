//go:build browser

package browser

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"github.com/cheapgo/cheap/internal/page/pagejson"
	"github.com/cheapgo/cheap/internal/test/testcall"
	"github.com/cheapgo/cheap/internal/test/testwait"
	"github.com/cheapgo/cheap/own"
)

// A decoder is a resource with an owner.
type decoder struct{ n own.Number[int] }

//go:noinline
func newDecoder(t *testing.T, p *own.Pool) *decoder {
	d := new(decoder)
	testcall.Want(t, d.n.Own(p, 1, 1000))
	return d
}

// makeSuspects makes owners in three places. In one all are kept, half of them with a label; in
// one each is closed, and in one none. Inlined, its function would have another name.
//
//go:noinline
func makeSuspects(t *testing.T, p *own.Pool) (kept []*decoder) {
	testcall.Aside(func() { // whose stack refers to none of them later
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
	})
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

// A suspect is what the page and the JSON have in common.
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

// suspectsOf reads the suspects of the page at an address.
func suspectsOf(t *testing.T, address string) (all []suspect) {
	t.Helper()
	var figures pagejson.SuspectFigures
	testcall.Must(t, json.Unmarshal(get(t, address+"suspects.json"), &figures))
	for _, s := range figures.Suspects {
		all = append(all, suspect{s.Pool, s.Label, fmt.Sprint(s.Live), fmt.Sprint(s.Bytes), fmt.Sprint(s.Collected), s.Stack, s.MissingClose})
	}
	return all
}

func get(t *testing.T, address string) []byte {
	t.Helper()
	answer, err := http.Get(address)
	testcall.Must(t, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s, %v", address, answer.Status, err)
	}
	return text
}
