package top

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/inspect"
)

func report(at time.Time) *inspect.Figures {
	return &inspect.Figures{Time: at, Program: "a program\x1b[2J", Tables: inspect.Tables()}
}

func TestFrame(t *testing.T) {
	var heaps []*cheap.Heap
	for i := range 30 {
		h, err := cheap.NewHeap(cheap.HeapOptions{Name: fmt.Sprintf("heap-%d of a program with very long names, \x1b[31mred ones", i), Limit: 1 << 40})
		if err != nil {
			t.Fatal(err)
		}
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
		lines := Frame(now, before, size.width, size.height)
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
	text := strings.Join(Frame(now, before, 80, 0), "\n")
	for _, want := range []string{"allocated ", "process:", "pace:  collections ", "\nHEAP ", "\nPOOL", "\nACCOUNT", "\nSIZE", " 2,500\n", "resident in all"} {
		if !strings.Contains(text, want) {
			t.Errorf("there is no %q in\n%s", want, text)
		}
	}
	if first, _, _ := strings.Cut(text[strings.Index(text, "\nHEAP"):][1:], "\nPOOL"); strings.Count(first, "\n") < 31 {
		t.Errorf("not all heaps are there:\n%s", first)
	}
	if short := strings.Join(Frame(now, nil, 80, 24), "\n"); !strings.Contains(short, " more") {
		t.Errorf("24 lines do not say that there is more:\n%s", short)
	}
}

// TestFrameOfCmem has reports of programs that import module cmem.
func TestFrameOfCmem(t *testing.T) {
	heading := func(name string) inspect.Heading { return inspect.Heading{Name: "cheap_cmem_" + name} }
	r := &inspect.Figures{Tables: []inspect.Table{
		{Name: "cmem", Metrics: []inspect.Heading{heading("live_bytes"), heading("mallocs_total")}, Rows: []inspect.TableRow{{Values: []float64{5, 6}, Text: []string{"5 B", "6"}}}},
		{Name: "libraries", Labels: []string{"library"}, Metrics: []inspect.Heading{heading("library_live_bytes")}, Rows: []inspect.TableRow{
			{Labels: []string{"liba.so"}, Values: []float64{1}, Text: []string{"1 B"}}, {Labels: []string{"libb.so"}, Values: []float64{4}, Text: []string{"4 B"}},
		}},
	}}
	text := strings.Join(Frame(r, r, 80, 0), "\n")
	at := -1
	for _, want := range []string{"\nC heap:  in use about 5 B", "mallocs 6", "\nLIBRARY ", "\nlibb.so ", "\nliba.so "} {
		if i := strings.Index(text, want); i <= at {
			t.Errorf("there is no %q, or too early, in\n%s", want, text)
		} else {
			at = i
		}
	}
	const note = "Module cmem does nothing: there is a reason."
	r.Tables = []inspect.Table{{Name: "cmem", Note: note}, {Name: "libraries", Note: note}}
	text = strings.Join(strings.Fields(strings.Join(Frame(r, r, 40, 0), " ")), " ")
	if !strings.Contains(text, "C heap: "+note) || strings.Contains(text, "LIBRARY") {
		t.Error(text)
	}
}

// TestFrameOfStrangers gives reports that no program sends.
func TestFrameOfStrangers(t *testing.T) {
	r := &inspect.Figures{Tables: []inspect.Table{
		{Name: "totals"}, {Name: "resident", Rows: []inspect.TableRow{{}}},
		{Name: "heaps", Rows: []inspect.TableRow{{Labels: []string{"x"}}}, Metrics: []inspect.Heading{{Name: "cheap_heap_held_bytes"}, {Name: "cheap_heap_mallocs_total"}}},
	}}
	if lines := Frame(r, r, 80, 24); len(lines) == 0 {
		t.Error("there is no frame")
	}
}
