// Package resulttest has reports for the tests of what shows them.
package resulttest

import (
	"math/rand/v2"
	"slices"

	"github.com/cheapgo/cheap/internal/figure"
	"github.com/cheapgo/cheap/internal/result"
)

// A fixture makes a report.
type fixture struct {
	result.Report
	noise  *rand.Rand
	rounds int
}

func (f *fixture) table(t result.Table) { f.Tables = append(f.Tables, t) }

// A fixtureRow says what a row is to look like.
type fixtureRow struct {
	name      string
	procs     int // 0 for 1
	ns        float64
	cpu       float64 // 0 for the same as ns
	allocs    float64
	bytes     float64
	versus    string
	published []result.Published
	note      string
	section   string
	ops       int
	memory    *result.Memory
	preloaded bool
	cpuVersus []string
	resident  float64
	held, p99 float64
}

func (f *fixture) row(in fixtureRow) {
	row := result.Row{
		Table: f.Tables[len(f.Tables)-1].Name, Row: in.name, Procs: max(in.procs, 1),
		CPUNsPerOp: in.cpu, AllocsPerOp: in.allocs, GoBytesPerOp: in.bytes,
		Published: in.published, Note: in.note, Section: in.section, Ops: in.ops, Memory: in.memory, Preloaded: in.preloaded,
		Resident: in.resident, Held: in.held, P99: in.p99,
	}
	if row.CPUNsPerOp == 0 {
		row.CPUNsPerOp = in.ns * 1.002
	}
	for range f.rounds {
		row.Samples = append(row.Samples, figure.Round(in.ns*(1+0.02*f.noise.NormFloat64()), 7))
	}
	row.NsPerOp, row.CI95Low, row.CI95High = summarize(row.Samples)
	if in.versus != "" {
		row.Versus = f.versus(&row, in.versus)
	}
	for _, to := range in.cpuVersus {
		row.CPUVersus = append(row.CPUVersus, *f.versus(&row, to))
	}
	f.Rows = append(f.Rows, row)
}

func (f *fixture) versus(row *result.Row, to string) *result.Ratio {
	for _, base := range f.Rows {
		if base.Table != row.Table || base.Row != to || base.Procs != row.Procs {
			continue
		}
		var ratios []float64
		for i, ns := range row.Samples {
			ratios = append(ratios, ns/base.Samples[i])
		}
		v := &result.Ratio{To: to}
		v.Ratio, v.CI95Low, v.CI95High = summarize(ratios)
		v.Noisy = v.CI95Low <= 1 && v.CI95High >= 1 || v.CI95High == 0
		return v
	}
	panic("no row " + to)
}

// summarize returns the median of rounds and its 95 % confidence interval, as the laboratory does for
// so many rounds: from the second smallest to the second largest of nine or ten, and no interval, which
// is two zeros, for five. They are rounded: some processors multiply and add in one step, so that the
// last digits differ.
func summarize(rounds []float64) (median, low, high float64) {
	s := slices.Sorted(slices.Values(rounds))
	n := len(s)
	median = (s[(n-1)/2] + s[n/2]) / 2
	if n >= 9 {
		low, high = s[1], s[n-2]
	}
	return figure.Round(median, 7), figure.Round(low, 7), figure.Round(high, 7)
}

func said(source string, ns float64) result.Published {
	return result.Published{Ns: ns, Source: source}
}

var (
	hansen = result.Source{
		Name: "Hansen 2023", Author: "Shane Hansen", Title: "CGO Performance In Go 1.21", Date: "2023-08-30",
		Machine: "12th Gen Intel Core i7-12700H, Go 1.21", URL: "https://shane.ai/posts/cgo-performance-in-go1.21/",
	}
	latencies = result.Source{
		Name: "Norvig 2001", Author: "Peter Norvig", Title: "Teach Yourself Programming in Ten Years", Date: "2001",
		Machine: "a typical 1GHz PC", URL: "https://norvig.com/21-days.html",
	}
	lemire = result.Source{
		Name: "Lemire 2023", Author: "Daniel Lemire", Title: "The absurd cost of finalizers in Go", Date: "2023-05-19",
		Machine: "Go 1.20", URL: "https://lemire.me/blog/2023/05/19/the-absurd-cost-of-finalizers-in-go/",
	}
	cleanup = result.Source{
		Name: "golang/go#75188", Author: "the Go project", Title: "runtime: improve AddCleanup performance", Date: "2025",
		Machine: "Go 1.25, an Apple M1 and a Linux machine", URL: "https://github.com/golang/go/issues/75188",
	}
)

var machine = result.Machine{
	Go: "go1.26.8", OS: "linux", Arch: "amd64", CPU: "12th Gen Intel(R) Core(TM) i7-1260P", Cores: 16,
	GOGC: "100", Malloc: "glibc 2.41", HugePages: "madvise", Date: "2026-11-21T16:31:50Z",
}

// Report returns a report as a run of `cheap bench` on a machine of 16 cores
// would make it, the same one each time.
func Report() *result.Report {
	f := &fixture{noise: rand.New(rand.NewPCG(1, 2)), rounds: 10}
	f.Machine = machine
	f.calls()
	f.scaling()
	f.release()
	f.size()
	f.allocators()
	f.live()
	f.strings()
	f.traces()
	f.workloads()
	f.resident()
	f.survivors()
	f.server()
	f.Notes = []string{"The rows of table traces replay every eighth operation; `cheap replay` replays all of them, and verifies them."}
	return &f.Report
}

// Replay returns a report as a run of `cheap replay` would make it: of a trace
// with all allocators and their memory, in enough rounds for an interval, and of
// one without what needs C, in few rounds, whose memory was not measured.
func Replay() *result.Report {
	f := &fixture{noise: rand.New(rand.NewPCG(3, 4)), rounds: 9}
	f.Replay = true
	f.Machine = machine
	f.Machine.GOGC = "off"
	const mib = 1 << 20
	f.table(result.Table{Name: "sqlite", Title: "183,052 operations, timed 9×, every block verified"})
	for _, r := range []struct {
		name  string
		ns    float64
		peak  float64
		final int64
	}{
		{"heap", 8.3, 6.91 * mib, 86016}, {"local", 6.3, 6.9 * mib, 53248}, {"libc", 33.2, 6.09 * mib, 167936},
		{"native", 8.1, 6.09 * mib, -4096}, {"cgoalloc", 13.2, 6.13 * mib, 65536}, {"modernc", 30.4, 14.61 * mib, 40960},
	} {
		f.row(fixtureRow{name: r.name, ns: r.ns, ops: 183052, memory: &result.Memory{Peak: int64(r.peak), Final: r.final}})
	}
	f.row(fixtureRow{name: "mimalloc", ns: 7.1, ops: 183052, preloaded: true, memory: &result.Memory{Peak: 7 * mib, Final: mib}})
	f.rounds = 3
	f.table(result.Table{Name: "my trace", Title: "1 operation, timed 3×"})
	for _, name := range []string{"heap", "local", "native", "modernc"} {
		f.row(fixtureRow{name: name, ns: 11, ops: 1})
	}
	f.row(fixtureRow{name: "mimalloc", ns: 9, ops: 1, preloaded: true})
	return &f.Report
}
