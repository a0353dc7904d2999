package top

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/inspect"
	"github.com/cheapgo/cheap/internal/page/pagejson"
	"github.com/cheapgo/cheap/internal/test/testcall"
)

func report(at time.Time) *pagejson.Figures {
	w := httptest.NewRecorder()
	inspect.Handler(inspect.Options{Remote: true}).ServeHTTP(w, httptest.NewRequest("GET", "/all.json", nil))
	r := new(pagejson.Figures)
	if err := json.Unmarshal(w.Body.Bytes(), r); err != nil {
		panic(err)
	}
	r.Time, r.Program, r.Verdict = at, "a program\x1b[2J", pagejson.Verdict{Sentence: "C holds the most", Do: "nothing"}
	r.Overview = &pagejson.Overview{
		Sentence: "C holds the most.", Next: "To do: nothing.",
		Legend:   []pagejson.Legend{{Part: 0, Name: "Go", Text: "34.0 MiB"}, {Part: 2, Name: "C, in use", Text: "299 MiB"}, {Part: -1, Name: "smaller parts", Text: "1.00 MiB"}},
		Resident: 334 << 20, Limit: 256 << 20, LimitOf: "container", Warnings: []string{"Two figures do not fit."},
		Parts: []pagejson.Part{{Name: "Go", Bytes: 34 << 20}, {Name: "heaps of cheap"}, {Name: "C, in use", Bytes: 299 << 20}, {Name: "malloc, free", Bytes: 1 << 20}},
	}
	return r
}

// frame is Frame of two reports.
func frame(now, before *pagejson.Figures, width, height int) []string {
	return Frame(Screen{Now: now, Before: before, Width: width, Height: height, Suspects: &pagejson.SuspectFigures{
		Largest: []pagejson.LargestSuspect{{Line: "main.find find.go:30", Text: "1,024 open of images, 4.00 MiB"}},
	}})
}

func TestFrame(t *testing.T) {
	var heaps []*cheap.Heap
	for i := range 30 {
		h, err := cheap.NewHeap(cheap.HeapOptions{Name: fmt.Sprintf("heap-%d of a program with very long names, \x1b[31mred ones", i), Limit: 1 << 40})
		testcall.Must(t, err)
		defer h.DestroyAll()
		for range i {
			h.Malloc(1000)
		}
		heaps = append(heaps, h)
	}
	start := time.Unix(1_700_000_000, 0)
	before := report(start)
	for range 5000 {
		heaps[29].Malloc(100)
	}
	now := report(start.Add(2 * time.Second))
	for _, size := range []struct{ width, height int }{{80, 0}, {80, 24}, {80, 50}, {60, 24}, {200, 100}, {10, 5}} {
		lines := frame(now, before, size.width, size.height)
		if size.height > 0 && len(lines) > size.height {
			t.Errorf("%v: %d lines", size, len(lines))
		}
		for _, line := range lines {
			if n := utf8.RuneCountInString(line); n > max(size.width, 40) {
				t.Errorf("%v: a line of %d columns: %s", size, n, line)
			}
			if strings.Contains(line, "\x1b") {
				t.Errorf("%v: a line has a command for the terminal: %q", size, line)
			}
		}
	}
	text := strings.Join(frame(now, before, 80, 0), "\n")
	at := -1
	for _, want := range []string{
		"\nC holds the most. To do: nothing.\n", "\n! Two figures do not fit.\n", "\nResident 334 MiB, limit 256 MiB (container)\n",
		"\nGGGGGGGGCCCCCCC", "C|C", "\nG: Go 34.0 MiB  C: C, in use 299 MiB  smaller parts 1.00 MiB\n",
		"\nSUSPECT\nmain.find find.go:30: 1,024 open of images, 4.00 MiB\n", "\nHEAP ", " 2,500\n",
	} {
		if i := strings.Index(text, want); i <= at {
			t.Errorf("there is no %q, or too early, in\n%s", want, text)
		} else {
			at = i
		}
	}
	if heaps := text[strings.Index(text, "\nHEAP"):]; strings.Count(heaps, "\n") < 29 || strings.Contains(heaps, "heap-0 ") {
		t.Errorf("not all heaps are there:\n%s", heaps)
	}
	first := frame(now, before, 80, 24)
	for _, want := range []string{"C holds", "Resident 334", "GGGG", "SUSPECT", "main.find", "HEAP"} {
		if !slices.ContainsFunc(first, func(line string) bool { return strings.HasPrefix(line, want) }) {
			t.Errorf("24 lines have no %q:\n%s", want, strings.Join(first, "\n"))
		}
	}
	if keys := "sort: [bytes] count rate name  q ends"; !strings.HasSuffix(first[0], keys) || strings.Contains(text, keys) {
		t.Errorf("the first line is %q in a terminal, and in\n%s", first[0], text)
	}
	if short := strings.Join(frame(now, nil, 80, 24), "\n"); !strings.Contains(short, "\nHEAP, 13 of 29  ") {
		t.Errorf("24 lines do not say that there is more:\n%s", short)
	}
}

// TestSort sorts a list by each key.
func TestSort(t *testing.T) {
	table := func(counts, bytes [3]float64) *pagejson.Figures {
		list := pagejson.Table{Name: "pools", Labels: []string{"pool"}, Metrics: []pagejson.Heading{{Name: "cheap_pool_live"}, {Name: "cheap_pool_live_bytes"}, {Name: "cheap_pool_created_total"}}}
		for i, name := range []string{"b", "c", "a"} {
			list.Rows = append(list.Rows, pagejson.TableRow{Labels: []string{name}, Values: []float64{counts[i], bytes[i], counts[i]}, Text: []string{"x", "x", "x"}})
		}
		return &pagejson.Figures{Tables: []pagejson.Table{list}}
	}
	before, now := table([3]float64{1, 20, 2}, [3]float64{}), table([3]float64{10, 21, 15}, [3]float64{5, 4, 6})
	now.Time = before.Time.Add(time.Second)
	for key, want := range map[string]string{"": "abc", "bytes": "abc", "count": "cab", "rate": "abc", "name": "abc"} {
		got := ""
		for _, line := range Frame(Screen{Now: now, Before: before, Sort: key, Width: 80}) {
			if strings.HasSuffix(strings.TrimSpace(line), "x") || strings.Contains(line, " x ") {
				got += line[:1]
			}
		}
		if got != want {
			t.Errorf("%q: %s, want %s", key, got, want)
		}
	}
}

// TestFrameOfCmem has reports of programs that import module cmem.
func TestFrameOfCmem(t *testing.T) {
	heading := func(name string) pagejson.Heading { return pagejson.Heading{Name: "cheap_cmem_" + name} }
	r := &pagejson.Figures{Tables: []pagejson.Table{
		{Name: "cmem", Metrics: []pagejson.Heading{heading("live_bytes"), heading("mallocs_total")}, Rows: []pagejson.TableRow{{Values: []float64{5, 6}, Text: []string{"5 B", "6"}}}},
		{Name: "libraries", Labels: []string{"library"}, Metrics: []pagejson.Heading{heading("library_live_bytes")}, Rows: []pagejson.TableRow{
			{Labels: []string{"liba.so"}, Values: []float64{1}, Text: []string{"1 B"}}, {Labels: []string{"libb.so"}, Values: []float64{4}, Text: []string{"4 B"}},
		}},
	}}
	text := strings.Join(frame(r, r, 80, 0), "\n")
	at := -1
	for _, want := range []string{"\nC heap:  in use about 5 B", "mallocs 6", "\nLIBRARY ", "\nlibb.so ", "\nliba.so "} {
		if i := strings.Index(text, want); i <= at {
			t.Errorf("there is no %q, or too early, in\n%s", want, text)
		} else {
			at = i
		}
	}
	const note = "Module cmem does nothing: there is a reason."
	r.Tables = []pagejson.Table{{Name: "cmem", Note: note}, {Name: "libraries", Note: note}}
	text = strings.Join(strings.Fields(strings.Join(frame(r, r, 40, 0), " ")), " ")
	if !strings.Contains(text, "C heap: "+note) || strings.Contains(text, "LIBRARY") {
		t.Error(text)
	}
}

// TestFrameOfStrangers gives reports that no program sends.
func TestFrameOfStrangers(t *testing.T) {
	r := &pagejson.Figures{Tables: []pagejson.Table{
		{Name: "totals"}, {Name: "resident", Rows: []pagejson.TableRow{{}}},
		{Name: "heaps", Rows: []pagejson.TableRow{{Labels: []string{"x"}}}, Metrics: []pagejson.Heading{{Name: "cheap_heap_held_bytes"}, {Name: "cheap_heap_mallocs_total"}}},
	}}
	if lines := frame(r, r, 80, 24); len(lines) == 0 {
		t.Error("there is no frame")
	}
}

func TestFold(t *testing.T) {
	lines := Fold("a title\n  at most     1.00 MiB in use, give or take 724 KiB: from 2 samples\nmore\n", 40, 3)
	if want := "a title\n  at most     1.00 MiB in use, give or\n                take 724 KiB: from 2\n"; strings.Join(lines, "\n")+"\n" != want {
		t.Errorf("%q, want %q", lines, want)
	}
}

// TestFit gives lists fewer lines than they have: each that is shown has a row.
func TestFit(t *testing.T) {
	list := func(name string, n int) []string {
		l := []string{name + strings.Repeat(" ", 20) + "BYTES"}
		for i := range n {
			l = append(l, fmt.Sprint(name, i))
		}
		return l
	}
	lists := [][]string{list("A", 5), list("B", 1), list("C", 3)}
	for _, row := range []struct {
		height int
		want   string
	}{
		{0, "A A0 A1 A2 A3 A4 B B0 C C0 C1 C2"},
		{100, "A A0 A1 A2 A3 A4 B B0 C C0 C1 C2"},
		{12, "A A0 A1 A2 A3 A4 B B0 C, C0"},
		{9, "A, A0 A1 B B0 C, C0"},
		{8, "A, A0 B B0 C, C0"},
		{7, "A, A0 A1 A2 B B0"},
		{5, "A, A0 B B0"},
		{4, "A, A0 A1 A2"},
		{2, "A, A0"},
		{1, ""},
	} {
		lines := fit(nil, lists, 80, row.height)
		var got []string
		for _, line := range strings.Fields(strings.Join(lines, " ")) {
			if line != "BYTES" && line != "of" && (line[0] < '0' || line[0] > '9') {
				got = append(got, line)
			}
		}
		if strings.Join(got, " ") != row.want || row.height > 0 && len(lines) > row.height {
			t.Errorf("%d lines: %q, want %s", row.height, lines, row.want)
		}
	}
	if got := headOf("A    BYTES", 1, 5); got != "A    BYTES" {
		t.Errorf("without room the head is %q", got)
	}
}

// TestSuspects shows the whole text of a suspect, which has the line and what is wrong.
func TestSuspects(t *testing.T) {
	f := &pagejson.SuspectFigures{None: "None so far.", Largest: []pagejson.LargestSuspect{}}
	if got := suspects(f, 80); !slices.Equal(got, []string{"SUSPECT", "None so far."}) {
		t.Errorf("%q", got)
	}
	f.Largest = append(f.Largest, pagejson.LargestSuspect{Line: "main.(*shop).request shop.go:73", Text: "pool decoder: a Close is missing, 267,024 left to the collector, 118 open, 472 KiB"})
	if got := strings.Join(suspects(f, 80), " "); !strings.HasSuffix(got, "472 KiB") || strings.Count(strings.Join(suspects(f, 80), "\n"), "\n") != 2 {
		t.Errorf("%q", got)
	}
}
