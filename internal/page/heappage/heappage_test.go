package heappage

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/cheapgo/cheap/internal/test/testcall"
)

// recording has a program with names that are no HTML.
func recording() *Recording {
	return &Recording{
		Program: "a<b>", Verdict: "C grows: <script>alert(1)</script>.", Do: "See f.", Facts: []string{"One & two."}, Rate: "Exact.",
		Places:  []Place{{Name: "main.f<T> f.go:1", By: "lib.New", Bytes: 3 << 20}},
		Series:  []Series{{"C", 1}, {"free", 4}, {"Go", 0}},
		Points:  []Point{{0, []int64{2, 0, 1}}, {time.Second, []int64{5 << 20, 1 << 20, 3}}},
		Moments: []Moment{{0}, {time.Second}, {2 * time.Second}},
		Stacks: []Stack{
			{Frames: []string{"main.main", "example.com/lib._Cfunc_new", "_cgo_7cb2599bc71d_Cfunc_new", "</script><script>alert(2)</script>", "operator<"}, Library: "lib&.so", Thread: "threads of Go", Labels: "route=/a", Allocated: 10, InUse: 6, Peak: 8, At: []int64{8, 6}},
			{Frames: []string{"main.main"}, Library: "other.so", Thread: "decoder", Allocated: 7, InUse: 0, Peak: 7, At: []int64{0, 7, 0}},
		},
	}
}

func written(t *testing.T, r *Recording) string {
	t.Helper()
	var b bytes.Buffer
	testcall.Must(t, r.Write(&b))
	return b.String()
}

// dataText returns what the script of a page gets.
func dataText(t *testing.T, page string) string {
	t.Helper()
	text := regexp.MustCompile(`(?s)<script type="application/json" id="data">(.*?)</script>`).FindStringSubmatch(page)
	if text == nil {
		t.Fatal("the page has no data")
	}
	return text[1]
}

// TestWrite writes a page twice. Names are text, nothing is loaded, and the data are those of the recording.
func TestWrite(t *testing.T) {
	r := recording()
	page := written(t, r)
	if again := written(t, r); again != page {
		t.Error("the page is another one the second time")
	}
	if n := strings.Count(page, "<script"); n != 3 {
		t.Errorf("%d scripts, want 3", n)
	}
	markup := regexp.MustCompile(`(?s)<(script|style)\b.*?</(script|style)>`).ReplaceAllString(page, "")
	if loads := regexp.MustCompile(`(?i)<(?:img|iframe|object|embed|script|base)\b|\bsrc=|url\(|@import`).FindAllString(markup, -1); loads != nil {
		t.Errorf("the page loads %q", loads)
	}
	for _, link := range regexp.MustCompile(`<link[^>]*>`).FindAllString(markup, -1) {
		if link != `<link rel="icon" href="data:,">` {
			t.Errorf("the page has %s", link)
		}
	}
	for _, want := range []string{"a&lt;b&gt;", "C grows: &lt;script&gt;alert(1)&lt;/script&gt;.", "One &amp; two.", "main.f&lt;T&gt; f.go:1", "3.00 MiB", "lib.New", `<option value="g">label</option>`} {
		if !strings.Contains(markup, want) {
			t.Errorf("the page does not have %q", want)
		}
	}
	text := dataText(t, page)
	var d data
	testcall.Must(t, json.Unmarshal([]byte(text), &d))
	got := fmt.Sprint(d.Times, d.Points, d.Series)
	if want := "[0 1 2] [0 1] [[2 5242880] [0 1048576] [1 3]]"; got != want {
		t.Errorf("the data are %s, want %s", got, want)
	}
	var stacks []string
	for _, s := range d.Stacks {
		var frames []string
		for _, f := range s.Frames {
			frames = append(frames, d.Names[f])
		}
		stacks = append(stacks, fmt.Sprint(frames, d.Names[s.Library], d.Names[s.Thread], d.Names[s.Labels], s.Values, s.At))
	}
	if got, want := strings.Join(stacks, "; "), "[main.main </script><script>alert(2)</script> operator<]lib&.sothreads of Goroute=/a[10 6 8] [0 8 6]; [main.main]other.sodecoderno label[7 0 7] [0 7 0]"; strings.ReplaceAll(got, " ", "") != strings.ReplaceAll(want, " ", "") {
		t.Errorf("the stacks are %s, want %s", got, want)
	}
}

// TestEmpty writes a page of a program that has allocated nothing.
func TestEmpty(t *testing.T) {
	page := written(t, &Recording{Program: "p"})
	if text := dataText(t, page); strings.Contains(page, `value="g"`) || strings.Contains(text, "null") || !strings.Contains(text, `"stacks":[]`) {
		t.Errorf("the page of nothing has %s", text)
	}
}

// TestFew keeps the largest stacks, and what the others have.
func TestFew(t *testing.T) {
	var all []Stack
	var want [4]int64
	for i := range mostStacks + 500 {
		s := Stack{Frames: make([]string, 100), Library: fmt.Sprint("lib", i%2), Allocated: int64(i), InUse: int64(i / 2), Peak: int64(i / 3), At: []int64{int64(i / 4)}}
		all = append(all, s)
		for k, n := range []int64{s.Allocated, s.InUse, s.Peak, s.At[0]} {
			want[k] += n
		}
	}
	kept := few(all, 3)
	if len(kept) != mostStacks+2 {
		t.Fatalf("%d stacks are kept, want %d", len(kept), mostStacks+2)
	}
	var got [4]int64
	for i, s := range kept {
		if len(s.At) != 3 || len(s.Frames) > mostFrames || i < mostStacks && s.Allocated < 500 {
			t.Fatalf("stack %d: %d moments, %d frames, %d bytes", i, len(s.At), len(s.Frames), s.Allocated)
		}
		for k, n := range []int64{s.Allocated, s.InUse, s.Peak, s.At[2]} {
			got[k] += n
		}
	}
	if got != want {
		t.Errorf("the sums are %d, want %d", got, want)
	}
}
