package measure

import (
	"runtime"
	"slices"
	"strings"

	"github.com/cheapgo/cheap/internal/page/result"
)

func wallTime(s sample) float64  { return s.perOp(s.Wall) }
func cpuTimeOf(s sample) float64 { return s.perOp(s.CPU) }

// summarize makes a row of a report. The unit has at least one sample.
func (r *run) summarize(u *unit) result.Row {
	wall := u.each(wallTime)
	row := result.Row{
		Table:        u.table.Name,
		Row:          u.row.Name,
		Procs:        u.procs,
		Samples:      wall,
		CPUNsPerOp:   median(u.each(cpuTimeOf)),
		AllocsPerOp:  median(u.each(func(s sample) float64 { return s.perOp(float64(s.Allocs)) })),
		GoBytesPerOp: median(u.each(func(s sample) float64 { return s.perOp(float64(s.Bytes)) })),
		Resident:     max(median(u.each(func(s sample) float64 { return float64(s.Resident) })), float64(u.resident)),
		Kept:         median(u.each(func(s sample) float64 { return float64(s.Kept) })),
		Held:         median(u.each(func(s sample) float64 { return s.Held })),
		P99:          median(u.each(func(s sample) float64 { return s.P99 })),
		P999:         median(u.each(P999.of)),
		Peak:         median(u.each(Peak.of)),
		HeapBytes:    median(u.each(HeapBytes.of)),
		Published:    []result.Published{},
		Note:         u.row.Note,
		Section:      u.row.Section,
	}
	row.NsPerOp, row.CI95Low, row.CI95High = Summarize(wall)
	row.Collections = median(u.each(func(s sample) float64 { return float64(s.Collections) }))
	if few := u.fewCollections(row.Collections); few != "" {
		row.Note = strings.TrimPrefix(row.Note+"; "+few, "; ")
	}
	row.Doubts = result.Doubts(&row, runtime.NumCPU())
	if u.row.Waits {
		row.Doubts = slices.DeleteFunc(row.Doubts, func(d result.Doubt) bool { return d == result.Waited })
	}
	if u.row.Published != nil {
		row.Published = append(row.Published, u.row.Published(u.procs)...)
	}
	if versus := r.on(u.row.Versus, u); versus != nil {
		row.Versus = ratio(u, versus, wallTime)
	}
	if len(u.row.Bars) > 0 && r.Bars {
		row.Bars = r.bars(u)
	}
	for _, name := range u.row.CPUVersus {
		if other := r.on(name, u); other != nil && row.CPUNsPerOp > 0 {
			row.CPUVersus = append(row.CPUVersus, *ratio(u, other, cpuTimeOf))
		}
	}
	return row
}

// each returns a figure of each sample.
func (u *unit) each(figure func(sample) float64) []float64 {
	out := make([]float64, len(u.samples))
	for i, s := range u.samples {
		out[i] = figure(s)
	}
	return out
}

// ratio divides a time of each round by that of the other unit in the same round.
// The ratio is noisy if 1 is within its interval, or if there are too few rounds
// for an interval.
func ratio(u, versus *unit, figure func(sample) float64) *result.Ratio {
	out := &result.Ratio{To: versus.row.Name}
	out.Ratio, out.CI95Low, out.CI95High = Summarize(divided(u.each(figure), versus.each(figure)))
	out.Noisy = out.CI95Low <= 1 && 1 <= out.CI95High || out.CI95High == 0
	return out
}

func median(values []float64) float64 {
	center, _, _ := Summarize(values)
	return center
}
