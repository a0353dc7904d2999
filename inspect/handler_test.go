package inspect

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/internal/mem/account"
	"github.com/cheapgo/cheap/internal/page/pagejson"
	"github.com/cheapgo/cheap/internal/test/testcall"
	"github.com/cheapgo/cheap/internal/watch/resident"
)

// ask sends a request to a handler that is registered at /debug/cheap/.
func ask(h http.Handler, method, target string, change func(r *http.Request)) *httptest.ResponseRecorder {
	mux := http.NewServeMux()
	mux.Handle("/debug/cheap/", h)
	r := httptest.NewRequest(method, "http://localhost:6060/debug/cheap/"+target, nil)
	r.RemoteAddr = "127.0.0.1:50000"
	if change != nil {
		change(r)
	}
	w := httptest.NewRecorder()
	mux.ServeHTTP(w, r)
	return w
}

func TestHandlerAnswers(t *testing.T) {
	h := Handler(Options{Title: "a <title>"})
	known := "Go heap"
	if unknownResident() {
		known = "this system does not say"
	}
	cheap.Default().Free(cheap.Malloc(100)) // it holds something from now on
	for _, c := range []struct {
		method, target string
		code           int
		kind, contains string
	}{
		{"GET", "", 200, "text/html; charset=utf-8", "a &lt;title&gt;"},
		{"HEAD", "", 200, "text/html; charset=utf-8", ""},
		{"GET", "all.json", 200, "application/json", `"name":"totals"`},
		{"GET", "all.txt", 200, "text/plain; charset=utf-8", "# Size classes"},
		{"GET", "heaps.json", 200, "application/json", `"cheap_heap_blocks"`},
		{"GET", "heaps.txt", 200, "text/plain; charset=utf-8", "# Heaps"},
		{"GET", "resident.txt", 200, "text/plain; charset=utf-8", known},
		{"GET", "heap", 200, "application/octet-stream", "\x1f\x8b"}, // gzip
		{"GET", "lifetimes", 200, "application/octet-stream", "\x1f\x8b"},
		{"GET", "where", 200, "text/plain; charset=utf-8", "cheap.Heap holds"},
		{"GET", "suspects", 200, "text/plain; charset=utf-8", " open, "},
		{"GET", "suspects?format=json", 200, "application/json", "["},
		{"GET", "suspects.json", 200, "application/json", `"suspects":[`},
		{"GET", "suspects.txt?gc=1", 200, "text/plain; charset=utf-8", " open, "},
		{"GET", "leaks", 200, "application/octet-stream", "\x1f\x8b"},
		{"GET", "heaps", 404, "text/plain; charset=utf-8", ""},
		{"GET", "heaps.xml", 404, "text/plain; charset=utf-8", ""},
		{"GET", "nothing.json", 404, "text/plain; charset=utf-8", ""},
		{"POST", "", 405, "text/plain; charset=utf-8", "only GET"},
		{"DELETE", "all.json", 405, "text/plain; charset=utf-8", "only GET"},
		{"GET", "trim", 405, "text/plain; charset=utf-8", "only POST"},
		{"POST", "trim", 204, "", ""},
	} {
		w := ask(h, c.method, c.target, nil)
		if w.Code != c.code || w.Header().Get("Content-Type") != c.kind || !strings.Contains(w.Body.String(), c.contains) {
			t.Errorf("%s %q: %d, %q: %.200s", c.method, c.target, w.Code, w.Header().Get("Content-Type"), w.Body)
		}
		for name, want := range map[string]string{
			"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store", "X-Frame-Options": "DENY", "Referrer-Policy": "no-referrer",
		} {
			if got := w.Header().Get(name); got != want {
				t.Errorf("%s %q: %s is %q, want %q", c.method, c.target, name, got, want)
			}
		}
		if p := w.Header().Get("Content-Security-Policy"); !strings.Contains(p, "default-src 'none'") || !strings.Contains(p, "frame-ancestors 'none'") || strings.Contains(p, "unsafe") {
			t.Errorf("%s %q: the policy is %q", c.method, c.target, p)
		}
	}
}

// TestHandlerRefuses sends requests that do not come from the machine itself, or that the
// program refuses, or that a page of another site has sent.
func TestHandlerRefuses(t *testing.T) {
	from := func(addr, host string) func(*http.Request) {
		return func(r *http.Request) { r.RemoteAddr, r.Host = addr, host }
	}
	with := func(name, value string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set(name, value) }
	}
	refused := func(w http.ResponseWriter, r *http.Request) bool { return false }
	for _, c := range []struct {
		what   string
		o      Options
		method string
		target string
		change func(*http.Request)
		code   int
	}{
		{"IPv6", Options{}, "GET", "", from("[::1]:1", "[::1]:6060"), 200},
		{"loopback, mapped", Options{}, "GET", "", from("[::ffff:127.0.0.1]:1", "127.0.0.1"), 200},
		{"another machine", Options{}, "GET", "", from("192.0.2.1:1", "localhost"), 403},
		{"another machine, allowed", Options{Remote: true}, "GET", "", from("192.0.2.1:1", "example.com"), 200},
		{"no address", Options{}, "GET", "", from("@", "localhost"), 403},
		{"another name for this machine", Options{}, "GET", "all.json", from("127.0.0.1:1", "rebound.example.com"), 403},
		{"a proxy on this machine", Options{}, "GET", "", with("X-Forwarded-For", "192.0.2.1"), 403},
		{"the hook", Options{Access: refused}, "GET", "", nil, 403},
		{"the hook, for all addresses", Options{Access: refused}, "POST", "trim", nil, 403},
		{"the hook that answers", Options{Access: func(w http.ResponseWriter, r *http.Request) bool {
			w.WriteHeader(http.StatusUnauthorized)
			return false
		}}, "GET", "", nil, 401},
		{"the hook that allows", Options{Access: func(w http.ResponseWriter, r *http.Request) bool { return true }}, "GET", "", nil, 200},
		{"trim by another site", Options{}, "POST", "trim", with("Sec-Fetch-Site", "cross-site"), 403},
		{"trim by another origin", Options{}, "POST", "trim", with("Origin", "http://example.com"), 403},
		{"trim by the page", Options{}, "POST", "trim", with("Sec-Fetch-Site", "same-origin"), 204},
		{"a collection by another site", Options{}, "GET", "suspects?gc=1", with("Sec-Fetch-Site", "cross-site"), 403},
		{"likewise, as text", Options{}, "GET", "suspects.txt?gc=1", with("Sec-Fetch-Site", "same-site"), 403},
		{"likewise, as JSON", Options{}, "GET", "suspects.json?gc=1", with("Sec-Fetch-Site", "cross-site"), 403},
		{"likewise, of the profile", Options{}, "GET", "leaks", with("Sec-Fetch-Site", "cross-site"), 403},
		{"a collection by the page", Options{}, "GET", "suspects.json?gc=1", with("Sec-Fetch-Site", "same-origin"), 200},
		{"a collection by a link on another site", Options{}, "GET", "suspects?gc=1", func(r *http.Request) {
			r.Header.Set("Sec-Fetch-Site", "cross-site")
			r.Header.Set("Sec-Fetch-Dest", "document")
		}, 200},
		{"no collection by another site", Options{}, "GET", "suspects", with("Sec-Fetch-Site", "cross-site"), 200},
	} {
		if w := ask(Handler(c.o), c.method, c.target, c.change); w.Code != c.code {
			t.Errorf("%s: %d, want %d: %s", c.what, w.Code, c.code, w.Body)
		}
	}
}

func TestTrimGivesBack(t *testing.T) {
	h := newHeap(t, "trim-gives-back")
	was := cheap.SetDecay(-1)
	defer cheap.SetDecay(was)
	h.Free(h.Malloc(1 << 20)) // more than a heap keeps
	if readAll().of(t, "cheap_idle_bytes", "") == 0 {
		t.Fatal("nothing is idle")
	}
	handler := Handler(Options{})
	eventually(t, "nothing is idle", func() bool { // other tests may have left something to release
		ask(handler, "POST", "trim", nil)
		return readAll().of(t, "cheap_idle_bytes", "") == 0
	})
}

// TestTextAndJSON compares the two forms of one table, and both with Read.
func TestTextAndJSON(t *testing.T) {
	h := newHeap(t, "text and\tJSON\x1b[2J")
	h.Malloc(123)
	var r pagejson.Figures
	testcall.Must(t, json.Unmarshal(ask(Handler(Options{}), "GET", "heaps.json", nil).Body.Bytes(), &r))
	text := ask(Handler(Options{}), "GET", "heaps.txt", nil).Body.String()
	if strings.Contains(text, "\x1b") {
		t.Errorf("the text has what a terminal takes for a command: %q", text)
	}
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")[2:]
	if len(r.Tables) != 1 || len(r.Tables[0].Rows) != len(lines) {
		t.Fatalf("%d rows of JSON, %d lines of text", len(r.Tables[0].Rows), len(lines))
	}
	v := readAll()
	for i, row := range r.Tables[0].Rows {
		fields := strings.Fields(lines[i])
		values := fields[len(fields)-len(row.Values):]
		for j, m := range r.Tables[0].Metrics {
			if values[j] != exact(row.Values[j]) || v[m.Name+"{"+strings.Join(row.Labels, ",")+"}"] != row.Values[j] {
				t.Errorf("%s of %q: text %s, JSON %v, Read %v", m.Name, row.Labels, values[j], row.Values[j], v[m.Name+"{"+strings.Join(row.Labels, ",")+"}"])
			}
		}
	}
}

// TestHistory checks that the points of the chart are kept for a page that is opened later.
func TestHistory(t *testing.T) { synctest.Test(t, testHistory) }

func testHistory(t *testing.T) {
	h := Handler(Options{Growth: time.Hour})
	points := func() (list []pagejson.Point) {
		testcall.Must(t, json.Unmarshal(ask(h, "GET", "history.json", nil).Body.Bytes(), &list))
		return list
	}
	ask(h, "GET", "heaps.json", nil)
	time.Sleep(closest - 1)
	ask(h, "GET", "all.json", nil) // too early
	if list := points(); len(list) != 1 || len(list[0].Values) != 9 {
		t.Errorf("at first the points are %v", list)
	}
	time.Sleep(time.Nanosecond)
	ask(h, "GET", "all.json", nil)
	if list := points(); len(list) != 2 {
		t.Errorf("a second later the points are %v", list)
	}
	var all history
	for i := range 3 * mostPoints {
		all.add(&pagejson.Figures{Time: time.Unix(int64(i), 0), Overview: &pagejson.Overview{}})
	}
	if list := all.all(); len(list) > mostPoints || len(list) < mostPoints/2 || list[0].Time.Unix() != 0 || list[len(list)-1].Time.Unix() != 3*mostPoints-1 {
		t.Errorf("%d points, from %v to %v", len(list), list[0].Time, list[len(list)-1].Time)
	}
}

// unknownResident reports whether the system does not say what is resident.
func unknownResident() bool {
	_, err := os.Stat("/proc/self/smaps")
	return err != nil
}

// TestResident checks the parts against the whole, where the system tells it.
func TestResident(t *testing.T) {
	h := newHeap(t, "resident")
	block := unsafe.Slice((*byte)(h.Malloc(32<<20)), 32<<20) // of as many bytes, freed with the heap
	for i := range block {
		block[i] = 1
	}
	parts := partsOf(t, "resident")
	if unknownResident() {
		return
	}
	heaps := "heaps of cheap, in use"
	if resident.InGoHeap(uint64(uintptr(unsafe.Pointer(unsafe.SliceData(block))))) { // with the tag cheap_gomem
		heaps = "Go heap, in use"
	}
	if parts[heaps] < 32<<20 || parts["Go heap, in use"] <= 0 || parts["Go stacks"] <= 0 || parts["Go runtime"] <= 0 {
		t.Errorf("the parts are %v", parts)
	}
	if sum := sumOf(parts); sum != parts[inAll] {
		t.Errorf("the parts add up to %v of %v: %v", sum, parts[inAll], parts)
	}
}

// sumOf adds up the parts of resident memory.
func sumOf(parts map[string]float64) (sum float64) {
	for name, n := range parts {
		if name != "resident in all" {
			sum += n
		}
	}
	return sum
}

// TestVerdict compares what the addresses say.
func TestVerdict(t *testing.T) {
	h := Handler(Options{})
	var all pagejson.Figures
	testcall.Must(t, json.Unmarshal(ask(h, "GET", "all.json", nil).Body.Bytes(), &all))
	var alone Verdict
	testcall.Must(t, json.Unmarshal(ask(h, "GET", "verdict.json", nil).Body.Bytes(), &alone))
	if all.Verdict.Sentence == "" || all.Verdict.About == "" || alone.Sentence == "" || alone.About == "" {
		t.Errorf("%+v, %+v", all.Verdict, alone)
	}
	for _, name := range []string{"verdict.txt", "resident.txt", "all.txt", "where"} {
		text := ask(h, "GET", name, nil).Body.String()
		first, _, _ := strings.Cut(strings.TrimPrefix(text, "# Verdict\n"), "\n")
		if !strings.HasSuffix(first, ".") || !strings.Contains(first, " ") {
			t.Errorf("%s has no verdict:\n%s", name, text)
		}
	}
	if text := ask(h, "GET", "arenas.txt", nil).Body.String(); !strings.Contains(text, "does not import package libc") {
		t.Errorf("arenas without a malloc:\n%s", text)
	}
	account.Process.SetMalloc(fakeMalloc{})
	defer account.Process.SetMalloc(nil)
	if text := ask(h, "GET", "arenas.txt", nil).Body.String(); !strings.Contains(text, "90000") || !strings.Contains(text, "70000") {
		t.Errorf("the arenas are\n%s", text)
	}
	v := readAll()
	if runtime.GOOS == "linux" {
		sum := 0.0
		for key, n := range v {
			if strings.HasPrefix(key, "cheap_part_resident_bytes{") {
				sum += n
			}
		}
		if all := v.of(t, "cheap_process_resident_bytes", ""); sum != all || all < 1<<20 {
			t.Errorf("the parts add up to %v of %v", sum, all)
		}
	}
	if n := v.of(t, "cheap_process_threads", ""); n < 1 && runtime.GOOS == "linux" {
		t.Errorf("%v threads", n)
	}
}

// fakeMalloc has one arena.
type fakeMalloc struct{}

func (fakeMalloc) Read() (used, free int64, ok bool) { return 20000, 70000, true }
func (fakeMalloc) Trim()                             {}
func (fakeMalloc) Arenas() int                       { return 1 }
func (fakeMalloc) ReadArenas() []account.Arena {
	return []account.Arena{{System: 90000, Free: 70000, Blocks: 3}}
}

// TestImportRegistersNothing checks that the default mux has no address of ours, nor of expvar.
func TestImportRegistersNothing(t *testing.T) {
	for _, path := range []string{"/debug/cheap/", "/debug/vars", "/debug/pprof/"} {
		w := httptest.NewRecorder()
		http.DefaultServeMux.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		if body, _ := io.ReadAll(w.Body); w.Code != http.StatusNotFound {
			t.Errorf("%s answers %d: %.80s", path, w.Code, body)
		}
	}
}
