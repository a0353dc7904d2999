package present

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/cheapgo/cheap/internal/figure"
	"github.com/cheapgo/cheap/internal/result"
)

// The marks behind a time that is doubtful, and a ratio that the rounds do not show.
const (
	doubtMark = " !"
	noisyMark = " ~"
)

// A figureColumn is a figure that rows have, and what the legend says about it.
type figureColumn struct {
	head    string
	known   func(*result.Row) bool // a column that says nothing is left out
	cell    func(*result.Row) cell
	meaning string
}

var figureColumns = []figureColumn{
	{"held", func(r *result.Row) bool { return r.Held > 0 },
		func(r *result.Row) cell { return unlessZero(r.Held, figure.Times, bold) },
		"resources of C that live for each that a live object owns, when what is unreachable has been collected"},
	{"resident", func(r *result.Row) bool { return r.Resident > 0 },
		func(r *result.Row) cell { return unlessZero(r.Resident, figure.Bytes, bold) },
		"the most memory of the process during a round, less what it had before"},
	{"time", func(*result.Row) bool { return true }, timeCell,
		"wall-clock time of one operation: the median of all rounds"},
	{"±", knowsSpread, spread, spreadMeans},
	{"p99", func(r *result.Row) bool { return r.P99 > 0 },
		func(r *result.Row) cell { return unlessZero(r.P99, figure.Duration, plain) },
		"one operation in a hundred takes longer"},
	{"CPU", cpuMatters,
		func(r *result.Row) cell { return unlessZero(r.CPUNsPerOp, figure.Duration, plain) },
		"processor time of the whole process for one operation, in all threads"},
	{"allocs", allocates, func(r *result.Row) cell { return cell{figure.Count(r.AllocsPerOp), plain} },
		"allocations in the Go heap for one operation"},
	{"B", allocates, func(r *result.Row) cell { return cell{figure.Count(r.GoBytesPerOp), plain} },
		"the bytes of these allocations"},
}

func unlessZero(x float64, write func(float64) string, s style) cell {
	if x <= 0 {
		return cell{figure.Missing, plain}
	}
	return cell{write(x), s}
}

// spreadMeans explains the column ±.
const spreadMeans = "how far the median is from the farther bound of its 95 % confidence interval"

func knowsSpread(r *result.Row) bool { return r.CI95High > 0 }

// spread writes how far the median is from the farther bound of its confidence interval.
func spread(r *result.Row) cell {
	if !knowsSpread(r) || r.NsPerOp <= 0 {
		return cell{}
	}
	return cell{figure.Percent(max(r.CI95High-r.NsPerOp, r.NsPerOp-r.CI95Low) / r.NsPerOp), dim}
}

// allocates reports whether a row allocates in the Go heap. Less than half a byte
// is the runtime's own.
func allocates(r *result.Row) bool { return r.AllocsPerOp >= 0.005 || r.GoBytesPerOp >= 0.5 }

// cpuMatters reports whether a row's processor time differs from its time: by work
// in other threads, or by waiting.
func cpuMatters(r *result.Row) bool {
	ratio := r.CPUNsPerOp / r.NsPerOp
	return ratio > 0 && (ratio < 0.9 || ratio > 1.1)
}

func isDoubtful(r *result.Row) bool { return len(r.Doubts) > 0 }

func isNoisy(r *result.Row) bool {
	return r.Versus != nil && r.Versus.Noisy || slices.ContainsFunc(r.CPUVersus, func(v result.Ratio) bool { return v.Noisy })
}

func isPublished(r *result.Row) bool { return len(r.Published) > 0 }

func isBeside(r *result.Row) bool { return len(r.CPUVersus) > 0 }

// timeCell writes the time of a row, and marks it if it is doubtful.
func timeCell(r *result.Row) cell {
	if isDoubtful(r) {
		return cell{figure.Duration(r.NsPerOp) + doubtMark, yellow}
	}
	return cell{figure.Duration(r.NsPerOp), plain}
}

func ratioCell(v *result.Ratio) cell {
	switch {
	case v == nil:
		return cell{}
	case v.Noisy:
		return cell{figure.Times(v.Ratio) + noisyMark, yellow}
	}
	return cell{figure.Times(v.Ratio), plain}
}

func has(rows []result.Row, f func(*result.Row) bool) bool {
	return slices.ContainsFunc(rows, func(r result.Row) bool { return f(&r) })
}

// lines writes a table with a line for each row, those of one number of processors after those of
// another. If rows are compared by processor time, the ratios are those.
func (t *texter) lines(rows []result.Row) {
	var order []int // of numbers of processors
	for _, row := range rows {
		if !slices.Contains(order, row.Procs) {
			order = append(order, row.Procs)
		}
	}
	rows = slices.Clone(rows)
	slices.SortStableFunc(rows, func(a, b result.Row) int {
		return cmp.Compare(slices.Index(order, a.Procs), slices.Index(order, b.Procs))
	})
	g := &grid{columns: []column{names("row", rows, func(r *result.Row) string { return r.Row })}, breaks: make(map[int]bool)}
	for i := 1; i < len(rows); i++ {
		// A row that is compared with none begins a block of those that are compared with it.
		g.breaks[i] = rows[i].Procs != rows[i-1].Procs || rows[i].Versus == nil && rows[i-1].Versus != nil
	}
	if len(order) > 1 {
		g.columns = append(g.columns, columnOf("procs", rows, func(r *result.Row) cell { return cell{figure.Thousands(r.Procs), plain} }))
	}
	beside := has(rows, isBeside)
	for _, f := range figureColumns {
		if has(rows, f.known) && !(beside && (f.head == "time" || f.head == "±")) || beside && f.head == "CPU" {
			g.columns = append(g.columns, columnOf(f.head, rows, f.cell).align(doubtMark))
		}
	}
	if beside {
		g.addBeside(rows)
	} else {
		g.addRatios(rows)
	}
	g.addPublished(rows)
	g.fit(t.columns, "B", "allocs", "±", "CPU")
	t.out.WriteString("\n" + g.text(t.p))
}

// addRatios adds how rows compare with others. If all are compared with one, the head names it.
func (g *grid) addRatios(rows []result.Row) {
	var bases []string
	for _, row := range rows {
		if row.Versus != nil && !slices.Contains(bases, row.Versus.To) {
			bases = append(bases, row.Versus.To)
		}
	}
	ratio := columnOf("ratio", rows, func(r *result.Row) cell { return ratioCell(r.Versus) }).align(noisyMark)
	switch len(bases) {
	case 0:
	case 1:
		ratio.head = "of " + bases[0]
		g.columns = append(g.columns, ratio)
	default:
		g.columns = append(g.columns, ratio, names("of", rows, func(r *result.Row) string {
			if r.Versus == nil {
				return ""
			}
			return result.ShortTo(r.Row, r.Versus.To)
		}))
	}
}

// allocatorOf returns the end of the name of a row.
func allocatorOf(row string) string { return row[strings.LastIndexByte(row, '-')+1:] }

// addBeside adds a column for each allocator with whose processor time that of others is compared,
// and lines with the geometric means.
func (g *grid) addBeside(rows []result.Row) {
	var others, ours []string
	for _, row := range rows {
		for _, v := range row.CPUVersus {
			if name := allocatorOf(v.To); !slices.Contains(others, name) {
				others = append(others, name)
			}
			if name := allocatorOf(row.Row); !slices.Contains(ours, name) {
				ours = append(ours, name)
			}
		}
	}
	g.breaks[len(rows)] = true
	for i := range g.columns {
		for _, name := range ours {
			text := ""
			if i == 0 {
				text = "geometric mean, " + name
			}
			g.columns[i].cells = append(g.columns[i].cells, cell{text, plain})
		}
	}
	for _, other := range others {
		ratios := make(map[string][]float64)
		c := columnOf("CPU of "+other, rows, func(r *result.Row) cell {
			i := slices.IndexFunc(r.CPUVersus, func(v result.Ratio) bool { return allocatorOf(v.To) == other })
			if i < 0 {
				return cell{}
			}
			ratios[allocatorOf(r.Row)] = append(ratios[allocatorOf(r.Row)], r.CPUVersus[i].Ratio)
			return ratioCell(&r.CPUVersus[i])
		})
		for _, name := range ours {
			c.cells = append(c.cells, unlessZero(geometricMean(ratios[name]), figure.Times, plain))
		}
		g.columns = append(g.columns, c.align(noisyMark))
	}
}

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

// addPublished adds a column for each source of published figures, or, if rows have two figures of
// one source, for each kind of its figures ("golang/go#75188, M1").
func (g *grid) addPublished(rows []result.Row) {
	name := func(source string) string { n, _, _ := strings.Cut(source, ", "); return n }
	twice := make(map[string]bool)
	for _, row := range rows {
		for i, p := range row.Published {
			twice[name(p.Source)] = twice[name(p.Source)] || slices.ContainsFunc(row.Published[:i], func(q result.Published) bool { return name(q.Source) == name(p.Source) })
		}
	}
	head := func(source string) string {
		if twice[name(source)] {
			return source
		}
		return name(source)
	}
	var heads []string
	for _, row := range rows {
		for _, p := range row.Published {
			if !slices.Contains(heads, head(p.Source)) {
				heads = append(heads, head(p.Source))
			}
		}
	}
	for _, h := range heads {
		g.columns = append(g.columns, columnOf("published, "+h, rows, func(r *result.Row) cell {
			i := slices.IndexFunc(r.Published, func(p result.Published) bool { return head(p.Source) == h })
			if i < 0 {
				return cell{}
			}
			return cell{figure.Exact(r.Published[i].Ns) + " ns", cyan}
		}))
	}
}

// promised writes the bars of rows, and where the figures are.
func (t *texter) promised(rows []result.Row) {
	g := grid{columns: []column{{head: "row", left: true}, {head: "figure", left: true}, {head: "of", left: true}, {head: "measured"}, {head: "bar"}, {left: true}, {head: "limit"}}}
	number := func(x float64) string { return figure.Exact(figure.Round(x, 3)) }
	for _, row := range rows {
		name := row.Row
		if result.MixesProcs(rows) {
			name = fmt.Sprintf("%s on %d", row.Row, row.Procs)
		}
		for _, b := range row.Bars {
			verdict := cell{b.Verdict(), plain}
			if b.Value > b.Bar {
				verdict.style = yellow
			}
			for i, c := range []cell{
				{name, plain}, {b.Figure, plain}, {b.To, dim},
				{number(b.Value), bold}, {number(b.Bar), plain}, verdict, {number(b.Limit), dim},
			} {
				g.columns[i].cells = append(g.columns[i].cells, c)
			}
		}
	}
	if len(g.columns[0].cells) == 0 {
		return
	}
	t.out.WriteByte('\n')
	t.note("What is promised: a figure of a row, or its part of that of another row, stays under a bar. Above the limit it is worse than it was.")
	t.out.WriteString(g.text(t.p))
}
