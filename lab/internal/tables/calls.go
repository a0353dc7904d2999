package tables

import (
	"encoding/json"
	"io"
	"strings"
	"sync"

	"github.com/cheapgo/cheap/internal/page/result"
	"github.com/cheapgo/cheap/lab/internal/measure"
)

// The figures of calls are from a table at the end of the article, and those of
// scaling from the benchmarks that it shows; they differ by a few percent.
var sourceHansen = result.Source{
	Name:    "Hansen 2023",
	Author:  "Shane Hansen",
	Title:   "CGO Performance In Go 1.21",
	Date:    "2023-09-01",
	Machine: "12th Gen Intel Core i7-12700H, 20 threads, Linux, Go 1.21",
	URL:     "https://shane.ai/posts/cgo-performance-in-go1.21/",
}

// sourceLatencies is the list that sourceHansen quotes for a mutex. Its machine is
// unknown.
var sourceLatencies = result.Source{
	Name:    "Latency numbers 2012",
	Author:  "Jeff Dean and Peter Norvig, collected by Jonas Bonér",
	Title:   "Latency Numbers Every Programmer Should Know",
	Date:    "2012",
	Machine: "not named",
	URL:     "https://gist.github.com/jboner/2841832",
}

// A call is a row of the tables calls and scaling.
type call struct {
	name string
	note string
	open func() (worker, error)

	in      result.Source   // where the figures are from
	calls   map[int]float64 // published in the table calls, by processors
	scaling map[int]float64 // and in scaling
}

// calls lists the rows in the order of the report.
func calls() []call {
	head := []call{
		{
			name: "inlined",
			note: "an inlined call of an empty function leaves only the loop around it",
			open: untraced(inlined), in: sourceHansen,
			calls:   map[int]float64{1: 0.271, 16: 0.0249},
			scaling: map[int]float64{1: 0.278, 2: 0.138, 4: 0.0738, 8: 0.0409, 16: 0.0248},
		},
		{
			name: "func-value",
			open: untraced(func(n int) { called(n, empty) }), in: sourceHansen,
			calls:   map[int]float64{1: 1.5, 16: 0.135},
			scaling: map[int]float64{1: 1.665, 2: 0.835, 4: 0.444, 8: 0.239, 16: 0.140},
		},
	}
	tail := []call{
		{
			name: "mutex",
			note: "each goroutine has a mutex of its own",
			open: openMutex, in: sourceLatencies,
			calls: map[int]float64{1: 25},
		},
		{
			name: "json",
			open: openJSON, in: sourceHansen,
			calls:   map[int]float64{1: 52.9, 16: 5.5},
			scaling: map[int]float64{1: 52.79, 16: 5.471},
		},
	}
	return append(append(head, cgoCalls()...), tail...)
}

// byProcs returns the figures of a source by number of processors.
func byProcs(in result.Source, ns map[int]float64) func(procs int) []result.Published {
	return func(procs int) []result.Published {
		if ns[procs] == 0 {
			return nil
		}
		return []result.Published{{Ns: ns[procs], Source: in.Name}}
	}
}

// Calls is the table of what a call costs.
func Calls() measure.Table {
	t := measure.Table{Table: result.Table{
		Name:  "calls",
		Title: "What a call costs",
		About: "One call of an empty Go function, inlined and through a func value; of a C function that adds two ints; a lock and unlock of a mutex without contention; and, for comparison, the decoding of the integer 1 by encoding/json, with a Decoder that is reused.",
		Unit:  "call", Chart: result.Bars,
		Sources: []result.Source{sourceHansen, sourceLatencies},
	}}
	for _, c := range calls() {
		row := measure.Row{
			Name: c.name, Note: c.note, Group: "calls",
			Published: byProcs(c.in, c.calls),
			Open:      func(procs int) (measure.Work, error) { return parallel(procs, c.open) },
		}
		if c.name != "func-value" {
			row.Versus = "func-value"
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// untraced makes workers whose operations cannot be counted.
func untraced(run func(n int)) func() (worker, error) {
	return func() (worker, error) { return worker{run: run}, nil }
}

func empty() {}

// inlined calls empty, which leaves an empty loop.
//
//go:noinline
func inlined(n int) {
	for range n {
		empty()
	}
}

// called calls f, which the compiler does not know here.
//
//go:noinline
func called(n int, f func()) {
	for range n {
		f()
	}
}

// A locker counts under its mutex.
type locker struct {
	_     line
	mu    sync.Mutex
	count int
	_     line
}

//go:noinline
func (l *locker) lock(n int) {
	for range n {
		l.mu.Lock()
		l.count++
		l.mu.Unlock()
	}
}

func openMutex() (worker, error) {
	l := new(locker)
	return worker{run: l.lock, count: func() int { return l.count }}, nil
}

// A decoder adds up the numbers that it decodes, all of them 1.
type decoder struct {
	_      line
	text   *strings.Reader
	json   *json.Decoder
	number int
	sum    int
	_      line
}

func (d *decoder) decode(n int) {
	for range n {
		d.number = 0
		d.text.Seek(0, io.SeekStart)
		if err := d.json.Decode(&d.number); err != nil {
			panic(err) // of a text that does not change
		}
		d.sum += d.number
	}
}

func openJSON() (worker, error) {
	text := strings.NewReader("1")
	d := &decoder{text: text, json: json.NewDecoder(text)}
	return worker{run: d.decode, count: func() int { return d.sum }}, nil
}
