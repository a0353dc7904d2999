package resulttest

import (
	"fmt"
	"maps"
	"slices"

	"github.com/cheapgo/cheap/internal/result"
)

func (f *fixture) calls() {
	f.table(result.Table{
		Name: "calls", Title: "what it costs to call", Unit: "call", Chart: result.Bars,
		About:   "An empty function, in Go and in C, beside what programs do all the time.",
		Sources: []result.Source{hansen, latencies},
	})
	for _, procs := range []int{1, 16} {
		one := func(a, b float64) float64 {
			if procs == 1 {
				return a
			}
			return b
		}
		source := fmt.Sprintf("Hansen 2023, %s", map[int]string{1: "1 core", 16: "16 cores"}[procs])
		for _, r := range []struct {
			name      string
			ns, on16  float64
			p1, p16   float64
			latencies float64
			versus    string
		}{
			{"empty-inlined", 0.212, 0.0196, 0.271, 0.0249, 0, ""},
			{"empty-func-value", 1.31, 0.118, 1.5, 0.135, 0, ""},
			{"cgo", 31.6, 3.51, 40, 4.28, 0, "empty-func-value"},
			{"cgo-noescape-nocallback", 30.9, 3.49, 0, 0, 0, "empty-func-value"},
			{"mutex", 10.9, 1.02, 0, 0, 25, "empty-func-value"},
			{"json-decode", 61.8, 6.72, 52.9, 5.5, 0, "empty-func-value"},
		} {
			var published []result.Published
			if ns := one(r.p1, r.p16); ns != 0 {
				published = append(published, said(source, ns))
			}
			if r.latencies != 0 && procs == 1 {
				published = append(published, said("Norvig 2001", r.latencies))
			}
			f.row(fixtureRow{name: r.name, procs: procs, ns: one(r.ns, r.on16), published: published, versus: r.versus})
		}
	}
}

func (f *fixture) scaling() {
	f.table(result.Table{
		Name: "scaling", Title: "the same on more processors", Unit: "call", Chart: result.Procs,
		About:   "Every processor calls all the time; the time is that of the whole machine, so that it halves where nothing is shared.",
		Sources: []result.Source{hansen},
	})
	published := map[string][]float64{
		"cgo":              {38.93, 20.30, 10.46, 6.13, 4.95, 4.33},
		"empty-func-value": {1.665, 0.835, 0.444, 0.239, 0.140},
	}
	for _, r := range []struct {
		name string
		ns   float64
	}{
		{"empty-inlined", 0.212}, {"empty-func-value", 1.31}, {"cgo", 31.6}, {"cgo-noescape-nocallback", 30.9},
		{"mutex", 10.9}, {"json-decode", 61.8}, {"heap", 14.1}, {"local", 7.9}, {"glibc", 84.4},
	} {
		for i, procs := range []int{1, 2, 4, 8, 16, 32} {
			row := fixtureRow{name: r.name, procs: procs, ns: r.ns / float64(min(procs, 12)) * 1.08}
			if list := published[r.name]; i < len(list) {
				row.published = []result.Published{said("Hansen 2023", list[i])}
			}
			if r.name == "heap" || r.name == "local" {
				row.note = "Malloc and Free of 64 bytes."
			}
			f.row(row)
		}
	}
}

func (f *fixture) release() {
	f.table(result.Table{
		Name: "release", Title: "what it costs to give C memory back", Unit: "object", Chart: result.Bars,
		About: "A block of C is allocated and released, in every way there is. A row that forgets its objects ends when C has counted " +
			"the last destruction. Rows with -gc-off run in a process of their own without a collector, and leak.",
		Sources: []result.Source{lemire, cleanup},
	})
	list := func(all ...float64) []result.Published {
		sources := []string{"Lemire 2023", "golang/go#75188, M1", "golang/go#75188, Linux"}
		var published []result.Published
		for i, ns := range all {
			if ns != 0 {
				published = append(published, said(sources[i], ns))
			}
		}
		return published
	}
	rows := []fixtureRow{
		{name: "manual", ns: 68.4, published: list(75, 73.4, 94.3)},
		{name: "manual-object", ns: 88.6, allocs: 1, bytes: 8},
		{name: "defer", ns: 69.3, published: list(0, 75.0, 98.0)},
		{name: "addcleanup", ns: 871, cpu: 1190, allocs: 4, bytes: 136, published: list(0, 359.7, 567)},
		{name: "finalizer", ns: 1104, cpu: 1480, allocs: 1, bytes: 8, published: list(650, 676.9, 1058)},
		{name: "finalizer-empty", ns: 980, cpu: 1301, allocs: 1, bytes: 8},
		{name: "finalizer-no-c", ns: 860, cpu: 1140, allocs: 1, bytes: 8, note: "On an empty struct that no C memory belongs to."},
	}
	for _, r := range rows {
		if r.name != "manual" {
			r.versus = "manual"
		}
		f.row(r)
	}
	for _, r := range []fixtureRow{
		{name: "own-forget", ns: 301, cpu: 402, allocs: 1, bytes: 16, versus: "manual"},
		{name: "own-close", ns: 109, allocs: 1, bytes: 16, versus: "manual"},
		{name: "own-memory", ns: 40.9, cpu: 51.2, allocs: 1, bytes: 16, versus: "manual"},
		{name: "own-group", ns: 92.1, cpu: 97.3, allocs: 0.02, bytes: 0.41, versus: "manual"},
	} {
		f.row(r)
	}
	for _, r := range rows {
		r.name += "-gc-off"
		r.ns *= 0.93
		r.section = "With the collector off"
		r.cpu, r.note, r.published = r.cpu*0.8, "", nil
		if r.name == "manual-gc-off" || r.name == "finalizer-gc-off" {
			r.published = []result.Published{said("Lemire 2023, collector off", map[string]float64{"manual-gc-off": 75, "finalizer-gc-off": 580}[r.name])}
		}
		if r.name != "manual-gc-off" {
			r.versus = "manual-gc-off"
		}
		f.row(r)
	}
}

func (f *fixture) size() {
	source := result.Source{
		Name: "golang/go#75188, by size", Title: "comment with a benchmark over sizes", Date: "2025", Machine: "Intel i7-1260P",
		URL: "https://github.com/golang/go/issues/75188",
	}
	f.table(result.Table{
		Name: "size", Title: "does the object's size matter?", Unit: "object", Chart: result.Sizes, Over: "bytes",
		About: "A Go object by itself, and with each way to be told that it is unreachable.", Sources: []result.Source{source},
	})
	published := [][2]float64{{7.476, 736.0}, {11.08, 446.9}, {13.11, 333.8}, {18.43, 258.2}, {29.68, 205.8},
		{52.06, 223.4}, {92.86, 279.9}, {177.9, 385.0}, {355.3, 589.0}, {706.9, 972.7}}
	for i, pair := range published {
		bytes := 8 << i
		name := func(way string) string { return fmt.Sprintf("%s-%d", way, bytes) }
		f.row(fixtureRow{name: name("alone"), ns: pair[0] * 0.9, allocs: 1, bytes: float64(bytes), published: []result.Published{said(source.Name, pair[0])}})
		f.row(fixtureRow{name: name("finalizer"), ns: pair[1] * 1.4, cpu: pair[1] * 1.9, allocs: 1, bytes: float64(bytes),
			versus: name("alone"), published: []result.Published{said(source.Name, pair[1])}})
		f.row(fixtureRow{name: name("addcleanup"), ns: pair[1] * 1.3, cpu: pair[1] * 1.7, allocs: 4, bytes: float64(bytes) + 128, versus: name("alone")})
		f.row(fixtureRow{name: name("own"), ns: pair[0] + 140, cpu: pair[0] + 190, allocs: 1, bytes: float64(bytes) + 8, versus: name("alone")})
	}
}

func (f *fixture) allocators() {
	source := result.Source{Name: "cgoalloc README", Author: "Stephen Baynham", Title: "CannibalVox/cgoalloc", Date: "2021",
		URL: "https://github.com/CannibalVox/cgoalloc"}
	f.table(result.Table{
		Name: "allocators", Title: "cgoalloc's own benchmarks", Unit: "round of the benchmark", Chart: result.Bars,
		About: "The benchmarks of cgoalloc's README, on its allocators and on ours.", Sources: []result.Source{source},
	})
	for _, r := range []struct {
		name    string
		ns      [4]float64
		figures [2]float64
	}{
		{"temporary-data", [4]float64{79, 8.9, 7.1, 14.1}, [2]float64{94.58, 9.714}},
		{"grow-shrink", [4]float64{88, 31.8, 13.3, 19.9}, [2]float64{104.7, 34.83}},
		{"multilayer-temporary-data", [4]float64{78.9, 15.9, 12.2, 10.1}, [2]float64{0, 17.06}},
		{"multilayer-grow-shrink", [4]float64{199, 33.1, 18.8, 12.6}, [2]float64{0, 35.78}},
		{"arena-temporary-data", [4]float64{123, 27.4, 19.9, 6.1}, [2]float64{0, 29.24}},
	} {
		for i, on := range []string{"malloc", "cgoalloc", "dropin", "heap"} {
			row := fixtureRow{name: r.name + "-" + on, ns: r.ns[i]}
			if i > 0 {
				row.versus = r.name + "-" + []string{"malloc", "malloc", "cgoalloc", "malloc"}[i]
			}
			if i < 2 && r.figures[i] != 0 {
				row.published = []result.Published{said(source.Name, r.figures[i])}
			}
			f.row(row)
		}
	}
}

func (f *fixture) live() {
	f.table(result.Table{
		Name: "live", Title: "what live owners cost the collector", Unit: "collection", Chart: result.Sizes, Over: "live owners",
		About: "One full collection while so many objects that own C memory are reachable.",
	})
	for _, way := range []struct {
		name string
		ns   float64
	}{{"plain", 9}, {"finalizer", 71}, {"addcleanup", 190}, {"own", 14}} {
		for _, n := range []int{0, 10_000, 100_000, 1_000_000} {
			row := fixtureRow{name: fmt.Sprintf("%s-%d", way.name, n), ns: 181_000 + way.ns*float64(n), cpu: 4 * way.ns * float64(n)}
			if way.name != "plain" {
				row.versus = fmt.Sprintf("plain-%d", n)
			}
			f.row(row)
		}
	}
}

func (f *fixture) strings() {
	source := result.Source{Name: "cgoparam README", Author: "Stephen Baynham", Title: "CannibalVox/cgoparam", Date: "2021",
		URL: "https://github.com/CannibalVox/cgoparam"}
	f.table(result.Table{
		Name: "strings", Title: "passing a string to C", Unit: "string", Chart: result.Bars,
		About: "A string of 20 bytes, and one of 1 KiB, goes to a function in C that reads it.", Sources: []result.Source{source},
	})
	for _, size := range []string{"20", "1024"} {
		for _, r := range []fixtureRow{
			{name: "cstring-free", ns: 118, published: []result.Published{said(source.Name+", four parameters", 375)}},
			{name: "cgoalloc", ns: 66.1},
			{name: "cgoparam", ns: 49.2, published: []result.Published{said(source.Name+", four parameters", 19.7)}},
			{name: "arena", ns: 46.1},
			{name: "bytes-direct", ns: 33.2},
		} {
			if size == "1024" {
				r.ns, r.published = r.ns+24, nil
			}
			if r.name != "cstring-free" {
				r.versus = "cstring-free-" + size
			}
			r.name += "-" + size
			f.row(r)
		}
	}
}

func (f *fixture) resident() {
	f.table(result.Table{
		Name: "resident", Title: "what stays resident", Unit: "object", Chart: result.Bytes,
		About: "Large objects of C, one after the other.",
	})
	for _, r := range []struct {
		name  string
		bytes float64
	}{{"addcleanup", 128 << 20}, {"own", 127 << 20}, {"own-pace", 4 << 20}} {
		f.row(fixtureRow{name: r.name, ns: 210_000, resident: r.bytes})
	}
}

func (f *fixture) survivors() {
	f.table(result.Table{
		Name: "survivors", Title: "what survivors hold", Unit: "object", Chart: result.Held,
		About: "All but a few objects are forgotten.",
	})
	for _, n := range []string{"10", "1000"} {
		f.row(fixtureRow{name: "addcleanup-" + n, ns: 810, held: 1})
		f.row(fixtureRow{name: "own-" + n, ns: 302, held: 3.94, versus: "addcleanup-" + n})
	}
}

func (f *fixture) server() {
	f.table(result.Table{
		Name: "server", Title: "a server of images", Unit: "request", Chart: result.Bytes,
		About: "Each request makes an image.",
	})
	for _, r := range []struct {
		name       string
		bytes, p99 float64
	}{{"close", 5 << 20, 8.1e6}, {"addcleanup", 203 << 20, 9.4e6}, {"own-pace", 23 << 20, 8.3e6}} {
		f.row(fixtureRow{name: r.name, procs: 2, ns: 540_000, resident: r.bytes, p99: r.p99})
	}
}

func (f *fixture) traces() {
	f.table(result.Table{
		Name: "traces", Title: "what real programs allocated", Unit: "operation", Chart: result.Bars,
		About: "What sqlite and gcc allocated and freed, replayed as `cheap replay` does.",
	})
	f.rounds = 5 // too few for an interval
	for _, trace := range []string{"sqlite", "gcc"} {
		for _, r := range []fixtureRow{{name: "native", ns: 12.3}, {name: "libc", ns: 48.1}, {name: "cgoalloc", ns: 71.9},
			{name: "modernc", ns: 39.7}, {name: "heap", ns: 12.2}, {name: "local", ns: 8.2}} {
			if r.name != "native" {
				r.versus = trace + "-native"
			}
			r.name = trace + "-" + r.name
			f.row(r)
		}
	}
}

// workloads has no tcmalloc, and a line that names it.
func (f *fixture) workloads() {
	f.table(result.Table{
		Name: "workloads", Title: "Allocators in the workloads of the literature",
		About: "The same program on each allocator.", Unit: "operation", Chart: result.Peers,
	})
	f.rounds = 10
	add := func(workload string, procs int, ours, natives map[string][2]float64) {
		names := func(of map[string][2]float64) []string { return slices.Sorted(maps.Keys(of)) }
		from := len(f.Rows)
		for _, all := range []map[string][2]float64{natives, ours} {
			for _, name := range names(all) {
				r := fixtureRow{name: workload + "-" + name, procs: procs, ns: all[name][0], resident: all[name][1] * (1 << 20)}
				if _, ok := ours[name]; ok {
					for _, other := range []string{"native", "jemalloc", "mimalloc"} {
						r.cpuVersus = append(r.cpuVersus, workload+"-"+other)
					}
				}
				if name != "native" {
					r.versus = workload + "-native"
				}
				if name == "jemalloc" || name == "mimalloc" {
					r.versus = "" // native is behind them
				}
				f.row(r)
			}
		}
		// As in a report: those of cheap come first.
		slices.SortStableFunc(f.Rows[from:], func(a, b result.Row) int { return len(b.CPUVersus) - len(a.CPUVersus) })
	}
	add("larson", 8, map[string][2]float64{"heap": {30, 6.8}}, map[string][2]float64{"native": {31, 11.9}, "jemalloc": {26, 12.5}, "mimalloc": {23, 17.3}})
	add("glibc-simple", 1, map[string][2]float64{"heap": {13, 1.6}, "local": {9.3, 1.6}},
		map[string][2]float64{"native": {46, 1}, "jemalloc": {21, 1.2}, "mimalloc": {4.4, 1.1}})
}
