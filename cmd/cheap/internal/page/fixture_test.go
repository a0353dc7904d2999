package page

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/cheapgo/cheap/cmd/cheap/internal/result"
)

// report returns a report as a default run makes it, with the figures of a
// machine that does not exist.
func report() *result.Report {
	f := &fixture{rnd: rand.New(rand.NewPCG(1, 2))}
	f.r.Machine = result.Machine{
		Go: "go1.26.8", OS: "linux", Arch: "amd64", CPU: "Intel(R) Xeon(R) Platinum 8481C CPU @ 2.70GHz",
		Cores: 8, GOGC: "100", Malloc: "glibc 2.36", Date: "2026-11-21T16:33:00Z",
	}
	f.r.Notes = []string{"turbo is on: times of the first rounds may be shorter than those of the last"}
	f.calls()
	f.scaling()
	f.release()
	f.size()
	f.allocators()
	f.live()
	f.strings()
	f.traces()
	return &f.r
}

type fixture struct {
	r   result.Report
	rnd *rand.Rand
}

func (f *fixture) table(t result.Table) { f.r.Tables = append(f.r.Tables, t) }

// row adds a row to the last table and returns it for what else it has. What is
// published is pairs of a source and a figure.
func (f *fixture) row(name string, procs int, ns float64, pubs ...any) *result.Row {
	width := 0.01 + 0.04*f.rnd.Float64()
	row := result.Row{
		Table: f.r.Tables[len(f.r.Tables)-1].Name, Row: name, Procs: procs,
		NsPerOp: ns, CI95Low: ns * (1 - width), CI95High: ns * (1 + width*1.3),
		CPUNsPerOp: ns * float64(procs) * 1.02,
		Machine:    &f.r.Machine,
	}
	for i := 0; i < len(pubs); i += 2 {
		row.Published = append(row.Published, result.Published{Source: pubs[i].(string), Ns: pubs[i+1].(float64)})
	}
	f.r.Rows = append(f.r.Rows, row)
	return &f.r.Rows[len(f.r.Rows)-1]
}

func versus(to string, ratio float64, noisy bool) *result.Ratio {
	return &result.Ratio{To: to, Ratio: ratio, CI95Low: ratio * 0.96, CI95High: ratio * 1.05, Noisy: noisy}
}

var hansen = result.Source{
	Name: "Hansen 2023", Author: "Shane Hansen", Title: "CGO Performance In Go 1.21", Date: "2023-09-17",
	Machine: "12th Gen Intel Core i7-12700H, Go 1.21", URL: "https://shane.ai/posts/cgo-performance-in-go1.21/",
}

func (f *fixture) calls() {
	f.table(result.Table{
		Name: "calls", Title: "What a call costs", Unit: "call", Chart: result.Bars,
		About:   "An empty function in Go and in C, beside things that everybody knows the price of.",
		Sources: []result.Source{hansen},
	})
	one, many := "Hansen 2023, 1 core", "Hansen 2023, 16 cores"
	f.row("go-inlined", 1, 0.268, one, 0.271, many, 0.0249)
	f.row("go-func-value", 1, 1.29, one, 1.5, many, 0.135)
	f.row("cgo", 1, 33.1, one, 40.0, many, 4.28).Versus = versus("go-func-value", 25.7, false)
	f.row("cgo-noescape-nocallback", 1, 32.8, one, 40.0).Versus = versus("cgo", 0.991, true)
	f.row("mutex", 1, 12.4, "list of latencies", 25.0)
	r := f.row("json-digit", 1, 118, one, 52.9, many, 5.5)
	r.AllocsPerOp, r.GoBytesPerOp = 1, 8
	r.Note = "the source reuses its Decoder, and so does this"
}

func (f *fixture) scaling() {
	f.table(result.Table{
		Name: "scaling", Title: "How it scales with cores", Unit: "call", Chart: result.Procs,
		About:   "The rows of calls, and allocators, by 1 to 32 goroutines that do nothing else.",
		Sources: []result.Source{hansen},
	})
	cgo := map[int]float64{1: 38.93, 2: 20.30, 4: 10.46, 8: 6.13, 16: 4.95, 32: 4.33}
	empty := map[int]float64{1: 1.665, 2: 0.835, 4: 0.444, 8: 0.239, 16: 0.140}
	lines := []struct {
		name string
		ns   float64
		pub  map[int]float64
	}{
		{"go-inlined", 0.268, nil}, {"go-func-value", 1.29, empty}, {"cgo", 33.1, cgo},
		{"cgo-noescape-nocallback", 32.8, nil}, {"mutex", 12.4, nil}, {"json-digit", 118, nil},
		{"heap", 11.2, nil}, {"local", 6.4, nil}, {"glibc-cgo", 66, nil},
	}
	for _, l := range lines {
		for _, procs := range []int{1, 2, 4, 8, 16, 32} {
			ns := l.ns/float64(min(procs, 8)) + 0.02*l.ns
			if l.name == "mutex" {
				ns = l.ns * (1 + 0.2*float64(min(procs, 8)))
			}
			var pubs []any
			if p, ok := l.pub[procs]; ok {
				pubs = []any{"Hansen 2023", p}
			}
			f.row(l.name, procs, ns, pubs...)
		}
	}
}

func (f *fixture) release() {
	f.table(result.Table{
		Name: "release", Title: "What giving back costs", Unit: "object", Chart: result.Bars,
		About: "An object of C is allocated and released, by hand and by what Go offers to do it when nobody holds it any more.",
		Sources: []result.Source{
			{Name: "Lemire 2023", Author: "Daniel Lemire", Title: "The absurd cost of finalizers in Go", Date: "2023-05-19",
				Machine: "Go 1.20, Linux", URL: "https://lemire.me/blog/2023/05/19/the-absurd-cost-of-finalizers-in-go/"},
			{Name: "go#75188", Title: "runtime: improve AddCleanup performance", Date: "2025-08",
				Machine: "Go 1.25, Apple M1 and Linux", URL: "https://go.dev/issue/75188"},
			{Name: "Siebenmann 2023", Author: "Chris Siebenmann", Title: "Some notes on the cost of Go finalizers (in Go 1.20)", Date: "2023"},
		},
	})
	m1, linux := "go#75188, M1", "go#75188, Linux"
	f.row("manual", 1, 65.2, "Lemire 2023", 75.0, m1, 73.4, linux, 94.3)
	f.row("manual-object", 1, 75.9, m1, 75.0, linux, 98.0).Versus = versus("manual", 1.16, false)
	f.row("defer", 1, 66.1, "Lemire 2023", 75.0).Versus = versus("manual", 1.01, true)
	c := f.row("addcleanup", 1, 870, m1, 359.7, linux, 567.0)
	c.Versus = versus("manual", 13.3, false)
	c.AllocsPerOp, c.GoBytesPerOp = 3, 96
	c.Profile = []result.Share{{Function: "runtime.specialFindSplicePoint", Share: 0.412}, {Function: "runtime.addspecial", Share: 0.183},
		{Function: "runtime.lock2", Share: 0.121}, {Function: "the sweep", Share: 0.094}, {Function: "runtime.cgocall", Share: 0.0731}}
	z := f.row("finalizer", 1, 1064, "Lemire 2023", 650.0, m1, 676.9, linux, 1058.0)
	z.Versus = versus("manual", 16.3, false)
	z.Profile = []result.Share{{Function: "runtime.SetFinalizer", Share: 0.301}, {Function: "runtime.lock2", Share: 0.2}}
	f.row("finalizer-empty", 1, 980).Versus = versus("manual", 15, false)
	f.row("finalizer-no-c", 1, 455).Versus = versus("manual", 6.98, false)
	for _, own := range []struct {
		name string
		ns   float64
	}{{"own-forget", 142}, {"own-close", 88.4}, {"own-memory", 121}, {"own-group", 97.3}} {
		f.row(own.name, 1, own.ns).Versus = versus("manual", own.ns/65.2, false)
	}
	off := "Lemire 2023, collector off"
	f.row("manual-gc-off", 1, 64.1, off, 75.0)
	f.row("manual-object-gc-off", 1, 80.3)
	f.row("defer-gc-off", 1, 65.0)
	f.row("addcleanup-gc-off", 1, 512)
	f.row("finalizer-gc-off", 1, 640, off, 580.0).Note = "leaks; in a child process with 200,000 objects"
	f.row("finalizer-empty-gc-off", 1, 610)
	f.row("finalizer-no-c-gc-off", 1, 402)
}

func (f *fixture) size() {
	f.table(result.Table{
		Name: "size", Title: "Whether the size of the Go object matters", Unit: "object", Chart: result.Sizes, Over: "bytes",
		About: "Allocation of a Go object of 8 to 4096 bytes, alone and with something that is to happen when it dies.",
		Sources: []result.Source{{Name: "go#75188", Title: "runtime: improve AddCleanup performance", Date: "2025-08",
			Machine: "i7-1260P", URL: "https://go.dev/issue/75188"}},
	})
	plain := []float64{7.476, 11.08, 13.11, 18.43, 29.68, 52.06, 92.86, 177.9, 355.3, 706.9}
	fin := []float64{736.0, 446.9, 333.8, 258.2, 205.8, 223.4, 279.9, 385.0, 589.0, 972.7}
	for i := range plain {
		size := 8 << i
		r := f.row(fmt.Sprintf("plain-%d", size), 1, plain[i]*1.3, "go#75188", plain[i])
		r.AllocsPerOp, r.GoBytesPerOp = 1, float64(size)
		f.row(fmt.Sprintf("finalizer-%d", size), 1, fin[i]*1.2+100, "go#75188", fin[i])
		f.row(fmt.Sprintf("addcleanup-%d", size), 1, fin[i]*1.1)
		f.row(fmt.Sprintf("own-%d", size), 1, plain[i]+60)
	}
}

func (f *fixture) allocators() {
	src := "cgoalloc README"
	f.table(result.Table{
		Name: "allocators", Title: "The benchmarks of cgoalloc", Unit: "operation", Chart: result.Bars,
		About: "The benchmarks of cgoalloc's README, on cgoalloc and on what is to take its place.",
		Sources: []result.Source{{Name: src, Author: "Stephen Baynham", Title: "CannibalVox/cgoalloc", Date: "2022",
			URL: "https://github.com/CannibalVox/cgoalloc"}},
	})
	pub := map[string]float64{
		"temporary-data-cgo": 94.58, "grow-shrink-cgo": 104.7, "temporary-data-cgoalloc": 9.714, "grow-shrink-cgoalloc": 34.83,
		"multilayer-temporary-data-cgoalloc": 17.06, "multilayer-grow-shrink-cgoalloc": 35.78, "arena-temporary-data-cgoalloc": 29.24,
	}
	base := map[string]float64{"temporary-data": 10, "grow-shrink": 33, "multilayer-temporary-data": 17, "multilayer-grow-shrink": 36, "arena-temporary-data": 28}
	for _, work := range []string{"temporary-data", "grow-shrink", "multilayer-temporary-data", "multilayer-grow-shrink", "arena-temporary-data"} {
		for _, on := range []struct {
			name   string
			factor float64
		}{{"cgo", 6}, {"cgoalloc", 1}, {"dropin", 1.1}, {"heap", 0.9}} {
			name := work + "-" + on.name
			var pubs []any
			if ns, ok := pub[name]; ok {
				pubs = []any{src, ns}
			}
			f.row(name, 1, base[work]*on.factor, pubs...).Versus = versus(work+"-cgo", on.factor/6, false)
		}
	}
}

func (f *fixture) live() {
	f.table(result.Table{Name: "live", Title: "What live owners cost the collector", Unit: "collection", Chart: result.Sizes, Over: "live owners",
		About: "One collection while so many owners are alive."})
	for _, n := range []int{0, 10_000, 100_000, 1_000_000} {
		f.row(fmt.Sprintf("plain-%d", n), 1, 140e3+float64(n)*6)
		f.row(fmt.Sprintf("finalizer-%d", n), 1, 140e3+float64(n)*190)
		f.row(fmt.Sprintf("addcleanup-%d", n), 1, 141e3+float64(n)*210)
		f.row(fmt.Sprintf("own-%d", n), 1, 143e3+float64(n)*22)
	}
}

func (f *fixture) strings() {
	src := "cgoparam README"
	f.table(result.Table{Name: "strings", Title: "Passing a string to C", Unit: "string", Chart: result.Bars,
		Sources: []result.Source{{Name: src, Author: "Stephen Baynham", Title: "CannibalVox/cgoparam", URL: "https://github.com/CannibalVox/cgoparam"}}})
	for _, size := range []string{"20", "1024"} {
		for i, way := range []string{"cstring", "cgoalloc", "cgoparam", "arena", "go-bytes"} {
			ns := []float64{130, 96, 61, 52, 38}[i]
			if size == "1024" {
				ns += 30
			}
			var pubs []any
			if size == "20" && i == 0 {
				pubs = []any{src + ", four parameters", 375.0}
			}
			if size == "20" && i == 2 {
				pubs = []any{src + ", four parameters", 19.7}
			}
			f.row(way+"-"+size, 1, ns, pubs...)
		}
	}
}

func (f *fixture) traces() {
	f.table(result.Table{Name: "traces", Title: "Programs replayed", Unit: "call", Chart: result.Bars,
		About: "The allocations of two programs, recorded and repeated."})
	for _, tr := range []string{"sqlite", "gcc"} {
		for i, a := range strings.Fields("native libc heap local dropin cgoalloc modernc") {
			r := f.row(tr+"-"+a, 1, []float64{14, 81, 21, 17, 24, 104, 66}[i])
			r.CI95Low, r.CI95High, r.CPUNsPerOp = 0, 0, 0
		}
	}
}
