package explain

import (
	"strings"
	"testing"

	"github.com/cheapgo/cheap/internal/test/testcall"
)

// TestAnswer has reports with advice, with advice whose gain is open, with none, and without samples.
func TestAnswer(t *testing.T) {
	shares := []Share{{Name: C, Share: 0.2}, {Name: Crossing, Share: 0.3}, {Name: Rest, Share: 0.5}}
	rest := []Share{{Name: "Go code", Share: 0.26}, {Name: "scheduler", Share: 0.24}}
	crossing := "The largest share, 30% of the processor time, is the way to C and back; "
	for _, test := range []struct {
		r    Report
		want string
	}{
		{Report{}, ""},
		{Report{Mechanisms: make([]Share, len(mechanismNames))}, ""},
		{Report{Mechanisms: []Share{shares[0], shares[1], {}, {}, {}, {}, shares[2]}, Rest: rest}, crossing + "this command knows no change that would save a point."},
		{Report{Mechanisms: []Share{shares[0], shares[1], {}, {}, {}, {}, shares[2]}, Advice: []Advice{{Site: "f", Now: 0.3, Expected: 0.1}}},
			crossing + "a change would save most at f: 30% now, then about 10%."},
		{Report{Mechanisms: []Share{shares[0], shares[1], {}, {}, {}, {}, shares[2]}, Advice: []Advice{{Site: "f", Now: 0.3, Expected: 0.3, Open: true}}},
			crossing + "worth a look is f, 30%."},
		{Report{Mechanisms: []Share{{}, {}, {}, {}, {}, {}, {Name: Rest, Share: 1}}, Rest: []Share{{Name: "Go code", Share: 1}}},
			"The largest share, 100% of the processor time, is Go code; this command knows no change that would save a point."},
	} {
		if got := test.r.Answer(); got != test.want {
			t.Errorf("got %q, want %q", got, test.want)
		}
	}
}

// TestTooFew looks for the warning in the text and the page, and for its absence with enough samples.
func TestTooFew(t *testing.T) {
	few, many := pageReport(), pageReport()
	many.Samples = enough
	for _, test := range []struct {
		r    *Report
		warn bool
	}{{few, true}, {many, false}} {
		var text, page strings.Builder
		testcall.Must(t, test.r.Text(&text))
		testcall.Must(t, test.r.Page(&page, ""))
		for name, b := range map[string]string{"text": text.String(), "page": page.String()} {
			if got := strings.Contains(b, "Too few samples: there are 110, and from 336 on"); got != test.warn {
				t.Errorf("the %s warns: %v, want %v", name, got, test.warn)
			}
			if !strings.Contains(b, "The largest share, ") {
				t.Errorf("the %s has no answer", name)
			}
		}
		if !strings.HasPrefix(text.String(), "The largest share, ") {
			t.Error("the text does not begin with the answer")
		}
	}
}
