package inspect

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/pprof/profile"

	"github.com/cheapgo/cheap/internal/test/testcall"
	"github.com/cheapgo/cheap/internal/watch/census"
)

// A growingHeap is a C heap of which one stack has a MiB more at each look.
type growingHeap struct {
	cHeap
	looks *int64
}

func (h growingHeap) WriteProfile(w io.Writer, _ time.Duration, _ <-chan struct{}) error {
	*h.looks++
	f := &profile.Function{ID: 1, Name: "main.</script>leak"}
	g := &profile.Function{ID: 2, Name: "[thread decoder]"}
	inner := &profile.Location{ID: 1, Line: []profile.Line{{Function: f}}}
	other := &profile.Location{ID: 3, Line: []profile.Line{{Function: f, Line: 7}}}
	outer := &profile.Location{ID: 2, Line: []profile.Line{{Function: g}}}
	p := &profile.Profile{
		SampleType: []*profile.ValueType{{Type: "alloc_objects", Unit: "count"}, {Type: "alloc_space", Unit: "bytes"}, {Type: "inuse_objects", Unit: "count"}, {Type: "inuse_space", Unit: "bytes"}},
		Period:     1 << 19, PeriodType: &profile.ValueType{Type: "space", Unit: "bytes"},
		Function: []*profile.Function{f, g}, Location: []*profile.Location{inner, outer, other},
		Sample: []*profile.Sample{
			{Location: []*profile.Location{inner, outer}, Value: []int64{9, 9 << 20, *h.looks, *h.looks << 20}, Label: map[string][]string{"library": {"liba.so"}, "route": {"/a"}}},
			{Location: []*profile.Location{other, outer}, Value: []int64{1, 1 << 20, 1, 1 << 20}, Label: map[string][]string{"library": {"liba.so"}, "route": {"/a"}}},
		},
	}
	return p.Write(w)
}

// TestCPage asks for c.html twice. The second page has both moments. The stacks of two lines of a function are one:
// labels and names are the same.
func TestCPage(t *testing.T) {
	var looks int64
	was := census.SetCHeap(growingHeap{cHeap{counts: &census.CCounts{Mallocs: 1234, Frees: 5}}, &looks})
	t.Cleanup(func() { census.SetCHeap(was) })
	h := Handler(Options{Title: "a<b>"})
	ask(h, "GET", "c.html", nil)
	w := ask(h, "GET", "c.html", nil)
	if w.Code != http.StatusOK || w.Header().Get("Content-Type") != "text/html; charset=utf-8" {
		t.Fatalf("%d, %v", w.Code, w.Header())
	}
	page := w.Body.String()
	for _, want := range []string{"a&lt;b&gt;", "1,234 times", "2 are known", `<option value="g">`, `<option value="end">in use now</option>`} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not have %q", want)
		}
	}
	if strings.Contains(page, `<option value="peak">`) {
		t.Error("the page offers a peak, which is not known")
	}
	text := regexp.MustCompile(`(?s)<script type="application/json" id="data">(.*?)</script>`).FindStringSubmatch(page)
	if text == nil {
		t.Fatal("the page has no data")
	}
	var data struct {
		Names  []string
		Times  []float64
		Stacks []struct {
			F    []int
			L, T int
			G    int
			V, A []int64
		}
	}
	testcall.Must(t, json.Unmarshal([]byte(text[1]), &data))
	if len(data.Stacks) != 1 || len(data.Times) != 2 {
		t.Fatalf("%d stacks at %v", len(data.Stacks), data.Times)
	}
	s := data.Stacks[0]
	got := fmt.Sprint(data.Names[s.F[0]], data.Names[s.F[1]], " ", data.Names[s.L], data.Names[s.T], data.Names[s.G], s.V[:2], s.A)
	if want := "[thread decoder]main.</script>leak liba.sodecoderroute=/a[10485760 3145728] [2097152 3145728]"; got != want {
		t.Errorf("the stack is %s, want %s", got, want)
	}
}

// TestMoments keeps the first moment, the last one, and at most mostMoments.
func TestMoments(t *testing.T) {
	var m moments
	began := time.Now()
	for i := range 1000 {
		list := m.add(moment{time: began.Add(time.Duration(i) * time.Second)})
		if n := len(list); n > mostMoments || !list[0].time.Equal(began) || !list[n-1].time.Equal(began.Add(time.Duration(i)*time.Second)) {
			t.Fatalf("after %d: %d moments, from %v to %v", i, n, list[0].time.Sub(began), list[n-1].time.Sub(began))
		}
	}
}
