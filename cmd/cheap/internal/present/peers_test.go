package present

import (
	"strings"
	"testing"

	"github.com/cheapgo/cheap/internal/result"
)

// peersReport has two workloads on one allocator of cheap, and one on another. The
// figures are powers of two, so that means are exact.
func peersReport() *result.Report {
	row := func(name string, cpu, mib float64, versus ...result.Ratio) result.Row {
		return result.Row{Table: "w", Row: name, Procs: 1, NsPerOp: 100, CPUNsPerOp: cpu, Resident: mib * (1 << 20), CPUVersus: versus}
	}
	of := func(to string, ratio float64, noisy bool) result.Ratio {
		return result.Ratio{To: to, Ratio: ratio, Noisy: noisy}
	}
	return &result.Report{
		Tables: []result.Table{{Name: "w", Chart: result.Peers}},
		Rows: []result.Row{
			row("a-b-heap", 16, 6, of("a-b-native", 2, false), of("a-b-jemalloc", 0.5, true)),
			row("a-b-native", 8, 3),
			row("a-b-jemalloc", 32, 1),
			row("c-heap", 4, 4, of("c-native", 0.5, false)), // jemalloc failed
			row("c-local", 3, 2, of("c-native", 0.25, false)),
			row("c-native", 12, 8),
		},
	}
}

// linesOf returns the words of each line of a text.
func linesOf(text string) (lines []string) {
	for line := range strings.Lines(text) {
		lines = append(lines, strings.Join(strings.Fields(line), " "))
	}
	return lines
}

func wantLines(t *testing.T, out string, want ...string) {
	t.Helper()
	have := "\n" + strings.Join(linesOf(out), "\n") + "\n"
	for _, line := range want {
		if !strings.Contains(have, "\n"+line+"\n") {
			t.Errorf("there is no line %q in\n%s", line, out)
		}
	}
}

func TestPeers(t *testing.T) {
	r := peersReport()
	out := text(t, r, false)
	wantLines(t, out,
		"row CPU native jemalloc MiB of native",
		"a-b-heap 16.0 ns 2.00× 0.50× ~ 6.0 2.00×",
		"c-heap 4.00 ns 0.50× – 4.0 0.50×",
		"c-local 3.00 ns 0.25× – 2.0 0.25×",
		"geometric mean, heap 1.00× 0.50× 1.00×",
		"geometric mean, local 0.25× – 0.25×",
		"CPU processor time of the whole process for one operation, in all threads",
		"CPU of … the same divided by that of another allocator, round by round",
		"~ behind a ratio: the rounds do not show which row is faster, because the machine was",
	)
	if strings.Contains(out, "wall-clock") || strings.Contains(out, "100 ns") {
		t.Errorf("it has times of the clock, which it does not show:\n%s", out)
	}
}

// TestPeersWithout has no memory, then no other allocators, as without C.
func TestPeersWithout(t *testing.T) {
	r := peersReport()
	for i := range r.Rows {
		r.Rows[i].Resident = 0
	}
	out := text(t, r, false)
	wantLines(t, out, "row CPU native jemalloc", "geometric mean, heap 1.00× 0.50×")
	if strings.Contains(out, "MiB") {
		t.Errorf("it has a column without figures:\n%s", out)
	}
	for i := range r.Rows {
		r.Rows[i].CPUVersus = nil
	}
	wantLines(t, text(t, r, false), "row time CPU", "a-b-heap 100 ns 16.0 ns", "time wall-clock time of one operation: the median of all rounds")
}

// TestPeersNarrow has less and less room: the text leaves out what JSON has.
func TestPeersNarrow(t *testing.T) {
	r := peersReport()
	for i := range r.Rows[:3] {
		r.Rows[i].Procs = 8
	}
	narrow := func(columns int) string {
		texter := newTexter(Look{})
		texter.columns = columns
		texter.peers(r.Rows)
		return texter.out.String()
	}
	for _, tt := range []struct {
		columns int
		want    string
	}{
		{71, "row procs CPU native jemalloc MiB of native"},
		{70, "row procs CPU native jemalloc of native"},
		{65, "row CPU native jemalloc of native"},
		{58, "row CPU native jemalloc"},
	} {
		out := narrow(tt.columns)
		wantLines(t, out, tt.want)
		inWords := strings.Contains(strings.Join(linesOf(out), " "), "On 8 processors: a-b; the others on 1.")
		if inWords == strings.Contains(tt.want, "procs") {
			t.Errorf("%d columns: the numbers of processors are in words and in a column, or in neither:\n%s", tt.columns, out)
		}
	}
	r.Rows[3].Row = "a-b-heap" // as with -cpu=1,8
	wantLines(t, narrow(50), "row procs CPU native jemalloc")
}

// TestPeersProcs has two numbers of processors, whose memory differs.
func TestPeersProcs(t *testing.T) {
	r := peersReport()
	r.Rows = append(r.Rows,
		result.Row{Table: "w", Row: "c-native", Procs: 2, NsPerOp: 1, CPUNsPerOp: 1, Resident: 1 << 20},
		result.Row{Table: "w", Row: "c-heap", Procs: 2, NsPerOp: 1, CPUNsPerOp: 2, Resident: 3 << 20, CPUVersus: []result.Ratio{{To: "c-native", Ratio: 2}}})
	wantLines(t, text(t, r, false), "c-heap 1 4.00 ns 0.50× – 4.0 0.50×", "c-heap 2 2.00 ns 2.00× – 3.0 3.00×")
}
