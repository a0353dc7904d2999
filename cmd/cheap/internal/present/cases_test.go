package present

import (
	"fmt"
	"io"
	"strings"

	"github.com/cheapgo/cheap/internal/result"
)

// report makes a report of one table.
func report(table result.Table, rows ...result.Row) *result.Report {
	table.Name = "t"
	for i := range rows {
		rows[i].Table = table.Name
		rows[i].Procs = max(rows[i].Procs, 1)
	}
	return &result.Report{Tables: []result.Table{table}, Rows: rows}
}

func timed(name string, ns float64) result.Row { return result.Row{Row: name, NsPerOp: ns} }

// versus is a row that is compared with another one.
func versus(name string, ns float64, to string, ratio float64) result.Row {
	return result.Row{Row: name, NsPerOp: ns, Versus: &result.Ratio{To: to, Ratio: ratio}}
}

// published is a row with figures of sources.
func published(name string, ns float64, figures ...result.Published) result.Row {
	return result.Row{Row: name, NsPerOp: ns, Published: figures}
}

func on(procs int, row result.Row) result.Row { row.Procs = procs; return row }

// beside is a row of the chart Peers.
func beside(name string, cpu, mib float64, versus ...result.Ratio) result.Row {
	return result.Row{Row: name, NsPerOp: 100, CPUNsPerOp: cpu, Resident: mib * (1 << 20), CPUVersus: versus}
}

// peers has two workloads on one allocator of cheap, and one on another. The figures are powers of
// two, so that means are exact. One allocator has failed in one of them.
func peers(procs int) *result.Report {
	of := func(to string, ratio float64) result.Ratio { return result.Ratio{To: to, Ratio: ratio} }
	noisy := result.Ratio{To: "a-b-jemalloc", Ratio: 0.5, Noisy: true}
	return report(result.Table{Chart: result.Peers},
		on(procs, beside("a-b-heap", 16, 6, of("a-b-native", 2), noisy)), on(procs, beside("a-b-native", 8, 3)), on(procs, beside("a-b-jemalloc", 32, 1)),
		beside("c-heap", 4, 4, of("c-native", 0.5)), beside("c-local", 3, 2, of("c-native", 0.25)), beside("c-native", 12, 8))
}

// cases are tables; each shows one thing.
func cases() []struct {
	shows string
	r     *result.Report
} {
	bars, sizes := result.Table{Chart: result.Bars}, result.Table{Chart: result.Sizes, Over: "bytes"}
	noisy := versus("c", 1, "a", 1.01)
	noisy.Versus.Noisy = true
	doubt := func(row result.Row) result.Row { row.Doubts = []result.Doubt{result.Waited}; return row }
	wide := result.Row{Row: strings.Repeat("long-", 8) + "name", NsPerOp: 1, CI95Low: 1, CI95High: 1, CPUNsPerOp: 3, AllocsPerOp: 1, GoBytesPerOp: 8}
	for _, name := range []string{"First 2001", "Second 2002", "Third 2003", "Fourth 2004"} {
		wide.Published = append(wide.Published, result.Published{Ns: 1, Source: name})
	}
	withoutMemory, withoutOthers := peers(1), peers(1)
	for i := range withoutMemory.Rows {
		withoutMemory.Rows[i].Resident, withoutOthers.Rows[i].CPUVersus = 0, nil
	}
	return []struct {
		shows string
		r     *result.Report
	}{
		{"nothing", &result.Report{Partial: true}},
		{"a command and a warning", &result.Report{Command: "cheap bench -count 3", Version: "v1.2.3", Warnings: []string{"Most rows are missing."}}},
		{"one base, and a noisy row", report(bars, timed("a", 1), versus("b", 2, "a", 2), noisy)},
		{"two blocks", report(bars, timed("a", 1), versus("b", 2, "a", 2), timed("x", 3), versus("y", 9, "x", 3))},
		{"a chain", report(bars, timed("a", 1), versus("b", 2, "a", 2), versus("y", 6, "b", 3))},
		{"chains, with short names", report(bars, timed("in-c-malloc", 1), versus("in-c-theirs", 2, "in-c-malloc", 2), versus("in-c-ours", 6, "in-c-theirs", 3), timed("in-go-malloc", 1), versus("in-go-ours", 1, "in-go-malloc", 1))},
		{"a row beside one of another block", report(bars, timed("in-a", 1), versus("in-b", 2, "in-a", 2), timed("in-x", 3), versus("in-y", 9, "in-x", 3), versus("in-z", 4, "in-a", 4))},
		{"published figures, each under its source", report(bars,
			published("a", 1, result.Published{Ns: 650, Source: "L"}, result.Published{Ns: 676.9, Source: "G, M1"}, result.Published{Ns: 1058, Source: "G, Linux"}),
			published("b", 2, result.Published{Ns: 580, Source: "L, collector off"}), published("c", 3, result.Published{Ns: 567, Source: "G, Linux"}))},
		{"published figures over sizes", report(sizes, published("x-8", 1, result.Published{Ns: 7.476, Source: "S"}), timed("x-16", 2), published("y-16", 3, result.Published{Ns: 446.9, Source: "S"}))},
		{"a doubtful time", report(bars, doubt(timed("a", 1800)), timed("b", 7))},
		{"a doubtful time over sizes", report(sizes, doubt(timed("x-8", 1800)), timed("x-16", 7))},
		{"what live objects hold, and the longest operations", report(result.Table{Chart: result.Held}, result.Row{Row: "own", NsPerOp: 300, Held: 3.94, P99: 8_100_000}, timed("none", 5))},
		{"processor time and allocations", report(bars, result.Row{Row: "x", NsPerOp: 1, CPUNsPerOp: 3, AllocsPerOp: 1})},
		{"more processors than one", report(bars, on(4, timed("a", 1)))},
		{"a row without a size, and several processors", report(sizes, timed("plain", 5), timed("x-8", 6), on(4, timed("x-8", 7)))},
		{"more columns than fit", report(bars, wide)},
		{"bars that are met, missed, and above their limit", report(bars, result.Row{Row: "ours", NsPerOp: 10, Bars: []result.Bar{
			{Figure: "time", To: "theirs", Value: 0.2512, Bar: 0.5, Limit: 0.6},
			{Figure: "processor time", To: "theirs", Value: 1.3, Bar: 1.25, Limit: 1.6},
			{Figure: "bytes of the Go heap", Value: 27, Bar: 20, Limit: 25},
		}})},
		{"allocators in columns", peers(1)},
		{"allocators on two numbers of processors", peers(8)},
		{"allocators without memory", withoutMemory},
		{"allocators without others", withoutOthers},
	}
}

func writeCases(w io.Writer) error {
	for _, c := range cases() {
		for _, columns := range []int{100, 80} {
			fmt.Fprintf(w, "######## %s, %d columns\n", c.shows, columns)
			if err := Text(w, c.r, Terminal{Columns: columns}); err != nil {
				return err
			}
		}
	}
	return nil
}
