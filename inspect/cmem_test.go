package inspect

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/internal/page/pagejson"
	"github.com/cheapgo/cheap/internal/test/testcall"
	"github.com/cheapgo/cheap/internal/watch/census"
	"github.com/cheapgo/cheap/internal/watch/resident"
)

// A cHeap is a C heap of a test.
type cHeap struct {
	off    string
	counts *census.CCounts
}

func (h cHeap) Off() string          { return h.off }
func (h cHeap) Read() census.CCounts { return *h.counts }

func (h cHeap) Libraries(list []census.CLibrary) []census.CLibrary {
	return append(list, census.CLibrary{Name: "libb.so", Live: 5, Blocks: 1, Allocs: 6}, census.CLibrary{Name: "liba.so", Live: 7 << 20, Blocks: 2, Allocs: 9 << 20})
}

func (h cHeap) Top(n int) []census.CSuspect {
	all := []census.CSuspect{{Library: "liba.so", Live: 7 << 20, Stack: "leak_c\n\t/lib/liba.so\nmain.leak\n\tmain.go:7\n"}, {Library: "libb.so", Live: 5}}
	return all[:min(n, len(all))]
}

func (h cHeap) WriteProfile(w io.Writer, d time.Duration, done <-chan struct{}) error {
	_, err := fmt.Fprintf(w, "a profile of %v", d)
	return err
}

// grown is by how much a stack has grown.
var grown = func() *atomic.Int64 { n := new(atomic.Int64); n.Store(6 << 20); return n }()

func (h cHeap) Watch(intervals int) func() (steady, lately []census.CSuspect) {
	looks := 0
	return func() (_, _ []census.CSuspect) {
		if looks++; looks <= intervals {
			return nil, nil
		}
		return []census.CSuspect{{Library: "liba.so", Live: 7 << 20, Grown: grown.Load(), Error: 1 << 20, Stack: "leak_c\n\t/lib/liba.so\nmain.leak\n\tmain.go:7\n"}}, nil
	}
}

// withCHeap has the test see a C heap, as if module cmem were in the program. The counts are those
// of the last value in c.
func withCHeap(t *testing.T, off string, c *census.CCounts) {
	was, process := census.SetCHeap(cHeap{off, c}), resident.Process
	resident.Process = new(resident.Watcher)
	t.Cleanup(func() {
		census.SetCHeap(was)
		resident.Process = process
	})
}

func hasTable(t *testing.T, name string) (found *pagejson.Table) {
	t.Helper()
	for _, table := range allTables() {
		if table.Name == name {
			found = &table
		}
	}
	return found
}

// TestNoCmem has a program without module cmem.
func TestNoCmem(t *testing.T) {
	if hasTable(t, "cmem") != nil || hasTable(t, "libraries") != nil {
		t.Error("there are tables of the C heap")
	}
	for name := range readAll() {
		if strings.HasPrefix(name, "cheap_cmem_") {
			t.Errorf("%s is read", name)
		}
	}
	h := Handler(Options{})
	for _, name := range []string{"cmem", "cmem.json", "libraries.txt", "mapped", "mapped.txt", "c.html"} {
		if w := ask(h, "GET", name, nil); w.Code != http.StatusNotFound {
			t.Errorf("%s: %d", name, w.Code)
		}
	}
	if page := ask(h, "GET", "", nil).Body.String(); strings.Contains(page, "C heap") {
		t.Error("the page has a section of the C heap")
	}
	if text := ask(h, "GET", "growth.txt", nil).Body.String(); text != "The program does not import module cmem.\n" {
		t.Errorf("%q", text)
	}
}

// TestCmemOff has a program in which module cmem does nothing.
func TestCmemOff(t *testing.T) {
	withCHeap(t, "CHEAP_CMEM is off in the environment", nil)
	const why = "Module cmem does nothing: CHEAP_CMEM is off in the environment."
	h := Handler(Options{})
	for _, name := range []string{"cmem", "libraries"} {
		if table := hasTable(t, name); table == nil || table.Note != why || len(table.Rows) != 0 {
			t.Errorf("%s: %+v", name, table)
		}
		if text := ask(h, "GET", name+".txt", nil).Body.String(); !strings.HasSuffix(text, "\n"+why+"\n") {
			t.Errorf("%s.txt: %q", name, text)
		}
	}
	if w := ask(h, "GET", "cmem", nil); w.Code != http.StatusNotFound {
		t.Errorf("the profile: %d", w.Code)
	}
	if text := ask(h, "GET", "growth.txt", nil).Body.String(); text != why+"\n" {
		t.Errorf("%q", text)
	}
	for name := range readAll() {
		if strings.HasPrefix(name, "cheap_cmem_") {
			t.Errorf("%s is read", name)
		}
	}
}

func (h cHeap) WriteMapped(w io.Writer) error {
	_, err := io.WriteString(w, "liba.so")
	return err
}

func (h cHeap) WriteMappedProfile(io.Writer) error { return errors.New("there is no /proc") }

func TestCmemMapped(t *testing.T) {
	withCHeap(t, "", &census.CCounts{})
	h := Handler(Options{})
	if w := ask(h, "GET", "mapped.txt", nil); w.Code != http.StatusOK || w.Body.String() != "liba.so" {
		t.Errorf("%d %q", w.Code, w.Body)
	}
	if w := ask(h, "GET", "mapped", nil); w.Code != http.StatusInternalServerError {
		t.Errorf("%d %q", w.Code, w.Body)
	}
}

func TestCmem(t *testing.T) {
	c := &census.CCounts{Mallocs: 10, Frees: 4, Bytes: 1000, Live: 7 << 20, LiveError: 1 << 10, Samples: 3, Lost: 1}
	withCHeap(t, "", c)
	v := readAll()
	for name, want := range map[string]float64{
		"mallocs_total": 10, "frees_total": 4, "malloc_bytes_total": 1000, "live_bytes": 7 << 20, "live_error_bytes": 1 << 10,
		"samples_total": 3, "lost_samples_total": 1,
	} {
		v.want(t, "cheap_cmem_"+name, "", want)
	}
	v.want(t, "cheap_cmem_library_live_bytes", "liba.so", 7<<20)
	v.want(t, "cheap_cmem_library_blocks", "libb.so", 1)
	v.want(t, "cheap_cmem_library_malloc_bytes_total", "libb.so", 6)

	c.Mallocs, c.Live = 9, 0 // as a read beside threads that allocate may see it
	v = readAll()
	v.want(t, "cheap_cmem_mallocs_total", "", 10)
	v.want(t, "cheap_cmem_live_bytes", "", 0)
	c.Live = 7 << 20

	h := Handler(Options{})
	var r pagejson.Figures
	testcall.Must(t, json.Unmarshal(ask(h, "GET", "all.json", nil).Body.Bytes(), &r))
	parts := partsOf(t, "resident")
	if n := parts["C, in use"]; (n <= 0 || n > 7<<20) && runtime.GOOS == "linux" { // no more than is resident
		t.Errorf("the resident memory is %v", parts)
	}
	page := ask(h, "GET", "", nil).Body.String()
	for _, want := range []string{`data-table="cmem"`, `data-table="libraries"`, `data-table="growth"`, `<a href="cmem">blocks of C by stack, for go tool pprof</a>`} {
		if !strings.Contains(page, want) {
			t.Errorf("the page has no %s", want)
		}
	}
}

func TestCmemProfile(t *testing.T) {
	withCHeap(t, "", &census.CCounts{})
	h := Handler(Options{})
	// Grafana Alloy asks for a second less than its interval, Parca for the interval; Alloy refuses other types.
	for query, want := range map[string]string{"": "a profile of 0s", "?seconds=14": "a profile of 14s", "?seconds=10": "a profile of 10s"} {
		w := ask(h, "GET", "cmem"+query, nil)
		if w.Code != http.StatusOK || w.Body.String() != want || w.Header().Get("Content-Type") != "application/octet-stream" ||
			!strings.Contains(w.Header().Get("Content-Disposition"), "cheap-cmem") {
			t.Errorf("%q: %d, %q, %v", query, w.Code, w.Body, w.Header())
		}
	}
	for _, query := range []string{"?seconds=0", "?seconds=-1", "?seconds=x", "?seconds=1e9"} {
		if w := ask(h, "GET", "cmem"+query, nil); w.Code != http.StatusBadRequest {
			t.Errorf("%q: %d", query, w.Code)
		}
	}
}

func TestGrowthOption(t *testing.T) {
	withCHeap(t, "", &census.CCounts{})
	if text := ask(Handler(Options{Growth: time.Hour}), "GET", "growth.txt", nil).Body.String(); !strings.Contains(text, "in 6h0m0s") {
		t.Errorf("%q", text)
	}
	if _, ok := testcall.Catch(func() { Handler(Options{Growth: -1}) }).(*cheap.MisuseError); !ok {
		t.Error("a negative interval is taken")
	}
}

// TestWriteTimeout has a server that would cut the answer off.
func TestWriteTimeout(t *testing.T) {
	withCHeap(t, "", &census.CCounts{})
	server := httptest.NewUnstartedServer(Handler(Options{}))
	server.Config.WriteTimeout = 30 * time.Minute // no time passes
	server.Start()
	defer server.Close()
	for query, want := range map[string]int{"?seconds=1799": http.StatusOK, "?seconds=1800": http.StatusBadRequest} {
		answer, err := http.Get(server.URL + "/cmem" + query)
		testcall.Must(t, err)
		answer.Body.Close()
		if answer.StatusCode != want {
			t.Errorf("%s: %s", query, answer.Status)
		}
	}
}

// TestGrowth has a program that nobody asks for an hour. The first one who does gets the verdict, in all its forms the same, and it
// names the stack that is a suspect.
func TestGrowth(t *testing.T) { synctest.Test(t, testGrowth) }

func testGrowth(t *testing.T) {
	withCHeap(t, "", &census.CCounts{Live: 7 << 20})
	h := Handler(Options{Growth: 5 * time.Second})
	Handler(Options{}) // a longer interval
	figures := func(after time.Duration) (f pagejson.GrowthFigures) {
		time.Sleep(after)
		synctest.Wait()
		testcall.Must(t, json.Unmarshal(ask(h, "GET", "growth.json", nil).Body.Bytes(), &f))
		return f
	}
	if f := figures(0); len(f.Suspects) != 0 || !strings.Contains(f.Note, "in 30s") || f.Program == "" {
		t.Errorf("at first: %+v", f)
	}
	if f := figures(30*time.Second - 1); len(f.Suspects) != 0 || !strings.Contains(f.Note, "in 5s") {
		t.Errorf("before the last interval ends: %+v", f)
	}
	f := figures(1)
	if len(f.Suspects) != 1 || f.Note != "" || f.Suspects[0].Grown != 6<<20 || f.Seconds != 30 {
		t.Errorf("after some intervals: %+v", f)
	}
	if again := figures(5*time.Second - 1); len(again.Suspects) != 1 || !again.Time.Equal(f.Time) {
		t.Errorf("a moment later: %+v", again)
	}
	const little = "C grows slowly, the most in main.leak main.go:7 (liba.so) by 6.00 MiB ± 1.00 MiB in 30s"
	if v := ReadVerdict(); v.Fault || !strings.Contains(v.Sentence, little) {
		t.Errorf("%v has not %q", v, little)
	}
	text := ask(h, "GET", "growth.txt", nil).Body.String()
	if want := "liba.so: about 7 MiB in use, grown by 6 MiB ± 1 MiB in 30s; allocated by\nleak_c\n\t/lib/liba.so\nmain.leak\n\tmain.go:7\n"; text != want {
		t.Errorf("%q, want %q", text, want)
	}

	grown.Store(50 << 20)
	census.SetCHeap(cHeap{"", &census.CCounts{Live: 90 << 20}})
	defer grown.Store(6 << 20)
	if f = figures(time.Hour); len(f.Suspects) != 1 || time.Since(f.Time) >= 5*time.Second {
		t.Errorf("after an hour without a page: %+v", f)
	}
	const grows = "growing by 50.0 MiB ± 1.00 MiB in 30s, the most in main.leak main.go:7 (liba.so)"
	for _, name := range []string{"verdict.txt", "resident.txt", "all.txt"} {
		if text := ask(h, "GET", name, nil).Body.String(); !strings.Contains(text, grows) {
			t.Errorf("%s has not %q: %.400s", name, grows, text)
		}
	}
	if n := readAll()["cheap_verdict{c_grows}"]; n != 1 {
		t.Errorf("the metric is %v: %v", n, readAll())
	}
	if r := Where(1); !strings.Contains(r.Verdict.Sentence, grows) {
		t.Errorf("Where: %v", r.Verdict)
	}
	var points []pagejson.Point
	if err := json.Unmarshal(ask(h, "GET", "history.json", nil).Body.Bytes(), &points); err != nil || len(points) < 400 || time.Since(points[0].Time) < time.Hour {
		t.Errorf("%d points of the chart, %v", len(points), err)
	}
}

// A lookedAt counts how often somebody looks.
type lookedAt struct {
	cHeap
	n *int
}

func (h lookedAt) Watch(int) func() (steady, lately []census.CSuspect) {
	return func() (_, _ []census.CSuspect) { *h.n++; return nil, nil }
}

// TestGrowthEnds has a handler that nobody refers to any more.
func TestGrowthEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		looks := 0
		withCHeap(t, "", nil)
		census.SetCHeap(lookedAt{cHeap{"", &census.CCounts{}}, &looks})
		h := Handler(Options{})
		time.Sleep(time.Minute)
		synctest.Wait()
		if looks < 6 {
			t.Errorf("%d looks in a minute", looks)
		}
		runtime.KeepAlive(h)
		runtime.GC() // h is gone
		for range 10 {
			before := looks
			time.Sleep(time.Hour)
			synctest.Wait()
			if looks == before {
				return
			}
			runtime.GC()
		}
		t.Error("it still looks")
	})
}

// raterHeap is a cHeap whose rate can be set, unless it is off.
type raterHeap struct {
	cHeap
	rate *int
}

func (h raterHeap) SetRate(bytes int) (old int, err error) {
	if h.off != "" {
		return 0, errors.New(h.off)
	}
	old, *h.rate = *h.rate, bytes
	return old, nil
}

// TestCmemPost turns samples on.
func TestCmemPost(t *testing.T) {
	h := Handler(Options{})
	if w := ask(h, "POST", "cmem", nil); w.Code != http.StatusNotFound {
		t.Errorf("without module cmem: %d", w.Code)
	}
	for _, row := range []struct {
		off, query, site string
		code, rate       int
	}{
		{"", "", "", http.StatusOK, 512 << 10},
		{"", "?rate=1000", "same-origin", http.StatusOK, 1000},
		{"", "?rate=0", "", http.StatusOK, 0},
		{"", "?rate=-1", "", http.StatusBadRequest, 77},
		{"", "?rate=x", "", http.StatusBadRequest, 77},
		{"", "", "cross-site", http.StatusForbidden, 77},
		{"it is off", "", "", http.StatusConflict, 77},
	} {
		rate := 77
		was := census.SetCHeap(raterHeap{cHeap{row.off, &census.CCounts{}}, &rate})
		w := ask(h, "POST", "cmem"+row.query, func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", row.site) })
		census.SetCHeap(was)
		if w.Code != row.code || rate != row.rate {
			t.Errorf("%+v: %d, the rate is %d", row, w.Code, rate)
		}
	}
}
