package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/cheapgo/cheap/internal/page/figure"
	"github.com/cheapgo/cheap/internal/page/result"
)

// The marks before a time that is doubtful, and before a ratio that the rounds do not show.
const (
	doubtMark = "!"
	noisyMark = "~"
)

// A column is a figure of rows, and what the legend says about it.
type column struct {
	head    string
	known   func(*result.Row) bool // a column that says nothing is left out
	cell    func(*result.Row) string
	meaning string
}

// columns are those of all tables, but for the comparison with other allocators.
var columns = []column{
	{"procs", func(r *result.Row) bool { return r.Procs > 1 }, func(r *result.Row) string { return figure.Thousands(r.Procs) },
		"GOMAXPROCS"},
	{"held", func(r *result.Row) bool { return r.Held > 0 }, func(r *result.Row) string { return unlessZero(r.Held, figure.Times) },
		"resources of C that live for each that a live object owns, when what is unreachable has been collected"},
	{"resident", func(r *result.Row) bool { return r.Resident > 0 }, func(r *result.Row) string { return unlessZero(r.Resident, figure.Bytes) },
		"the most memory of the process during a round, less what it had before"},
	{"kept", func(r *result.Row) bool { return r.Kept != 0 }, func(r *result.Row) string { return figure.Bytes(r.Kept) },
		"what is resident of it when all blocks are freed and the allocator has been told to give memory back"},
	{"time", func(*result.Row) bool { return true }, timeCell,
		"wall-clock time of one operation: the median of all rounds"},
	{"±", func(r *result.Row) bool { return spread(r) != "" }, spread,
		"how far the median is from the farther bound of its 95 % confidence interval"},
	{"p99", func(r *result.Row) bool { return r.P99 > 0 }, func(r *result.Row) string { return unlessZero(r.P99, figure.Duration) },
		"one operation in a hundred takes longer"},
	{"CPU", cpuMatters, func(r *result.Row) string { return unlessZero(r.CPUNsPerOp, figure.Duration) },
		"processor time of the whole process for one operation, in all threads"},
	{"allocs", allocates, func(r *result.Row) string { return figure.Count(r.AllocsPerOp) },
		"allocations in the Go heap for one operation"},
	{"B", allocates, func(r *result.Row) string { return figure.Count(r.GoBytesPerOp) },
		"the bytes of these allocations"},
	{"ratio", isCompared, func(r *result.Row) string { return ratioCell(r.Versus) },
		"the time divided by that of another row, round by round: 2.00× takes twice as long"},
	{"of", isCompared, func(r *result.Row) string {
		if r.Versus == nil {
			return ""
		}
		return r.Versus.To
	}, "the other row"},
}

func unlessZero(x float64, write func(float64) string) string {
	if x <= 0 {
		return figure.Missing
	}
	return write(x)
}

func timeCell(r *result.Row) string {
	if isDoubtful(r) {
		return doubtMark + figure.Duration(r.NsPerOp)
	}
	return figure.Duration(r.NsPerOp)
}

func ratioCell(v *result.Ratio) string {
	switch {
	case v == nil:
		return ""
	case v.Noisy:
		return noisyMark + figure.Times(v.Ratio)
	}
	return figure.Times(v.Ratio)
}

// spread writes how far the median is from the farther bound of its confidence interval.
func spread(r *result.Row) string {
	if r.CI95High <= 0 || r.NsPerOp <= 0 {
		return ""
	}
	return figure.Percent(max(r.CI95High-r.NsPerOp, r.NsPerOp-r.CI95Low) / r.NsPerOp)
}

// allocates reports whether a row allocates in the Go heap. Less than half a byte is the runtime's own.
func allocates(r *result.Row) bool { return r.AllocsPerOp >= 0.005 || r.GoBytesPerOp >= 0.5 }

// cpuMatters reports whether a row's processor time differs from its time, by work in other threads or
// by waiting, or is what is compared.
func cpuMatters(r *result.Row) bool {
	ratio := r.CPUNsPerOp / r.NsPerOp
	return ratio > 0 && (ratio < 0.9 || ratio > 1.1) || len(r.CPUVersus) > 0
}

func isDoubtful(r *result.Row) bool { return len(r.Doubts) > 0 }
func isCompared(r *result.Row) bool { return r.Versus != nil }

func isNoisy(r *result.Row) bool {
	return r.Versus != nil && r.Versus.Noisy || slices.ContainsFunc(r.CPUVersus, func(v result.Ratio) bool { return v.Noisy })
}

func has(rows []result.Row, f func(*result.Row) bool) bool {
	return slices.ContainsFunc(rows, func(r result.Row) bool { return f(&r) })
}

// A grid is a table of texts. The name of a line comes last: all before it are numbers.
type grid struct {
	Heads []string
	Lines []line
}

type line struct {
	Cells     []string
	Name      string
	Published string // figures of others
}

// gridOf has a line for each row, in the columns that some rows know, and behind them its name.
func gridOf(rows []result.Row, columns []column) *grid {
	g := new(grid)
	columns = slices.DeleteFunc(slices.Clone(columns), func(c column) bool { return !has(rows, c.known) })
	for _, c := range columns {
		g.Heads = append(g.Heads, c.head)
	}
	for i := range rows {
		l := line{Name: rows[i].Row}
		for _, c := range columns {
			l.Cells = append(l.Cells, c.cell(&rows[i]))
		}
		var published []string
		for _, p := range rows[i].Published {
			published = append(published, figure.Exact(p.Ns)+" ns "+p.Source)
		}
		l.Published = strings.Join(published, "; ")
		g.Lines = append(g.Lines, l)
	}
	g.Heads = append(g.Heads, "row")
	return g
}

// rowsGrid is the grid of the rows of a table. Allocators that are compared by processor time have a
// column for each of the others, and lines with the geometric means.
func rowsGrid(rows []result.Row) *grid {
	if !has(rows, func(r *result.Row) bool { return len(r.CPUVersus) > 0 }) {
		return gridOf(rows, columns)
	}
	all := slices.DeleteFunc(slices.Clone(columns), func(c column) bool { return slices.Contains([]string{"time", "±", "ratio", "of"}, c.head) })
	before := len(gridOf(rows, all).Heads) - 1
	var others, ours []string
	means := make(map[string][]float64)
	for _, row := range rows {
		for _, v := range row.CPUVersus {
			us, other := allocatorOf(row.Row), allocatorOf(v.To)
			if !slices.Contains(ours, us) {
				ours = append(ours, us)
			}
			if !slices.Contains(others, other) {
				others = append(others, other)
			}
			means[us+other] = append(means[us+other], v.Ratio)
		}
	}
	for _, other := range others {
		of := func(r *result.Row) *result.Ratio {
			for i, v := range r.CPUVersus {
				if allocatorOf(v.To) == other {
					return &r.CPUVersus[i]
				}
			}
			return nil
		}
		all = append(all, column{"CPU of " + other, func(r *result.Row) bool { return of(r) != nil }, func(r *result.Row) string { return ratioCell(of(r)) }, ""})
	}
	g := gridOf(rows, all)
	for _, us := range ours {
		l := line{Cells: make([]string, before), Name: "geometric mean, " + us}
		for _, other := range others {
			l.Cells = append(l.Cells, unlessZero(geometricMean(means[us+other]), figure.Times))
		}
		g.Lines = append(g.Lines, l)
	}
	return g
}

// allocatorOf returns the end of the name of a row.
func allocatorOf(row string) string { return row[strings.LastIndexByte(row, '-')+1:] }

// geometricMean is 0 of nothing.
func geometricMean(xs []float64) float64 {
	if len(xs) == 0 {
		return 0
	}
	sum := 0.0
	for _, x := range xs {
		sum += math.Log(x)
	}
	return math.Exp(sum / float64(len(xs)))
}

// promises is the grid of the bars of rows, nil if there are none.
func promises(rows []result.Row) *grid {
	g := &grid{Heads: []string{"measured", "bar", "", "limit", "figure"}}
	for _, row := range rows {
		for _, b := range row.Bars {
			name := fmt.Sprintf("%s of %s on %d", b.Figure, row.Row, row.Procs)
			if b.To != "" {
				name += ", by that of " + b.To
			}
			number := func(x float64) string { return figure.Exact(figure.Round(x, 3)) }
			g.Lines = append(g.Lines, line{Cells: []string{number(b.Value), number(b.Bar), b.Verdict(), number(b.Limit)}, Name: name})
		}
	}
	if g.Lines == nil {
		return nil
	}
	return g
}
