package measure

import "github.com/cheapgo/cheap/cmd/cheap/internal/result"

// summarize makes a row of a report. There is at least one sample.
func (u *unit) summarize(versus *unit) result.Row {
	wall := u.each(func(s sample) float64 { return s.perOp(s.Wall) })
	row := result.Row{
		Table:        u.table.Name,
		Row:          u.row.Name,
		Procs:        u.procs,
		Samples:      wall,
		CPUNsPerOp:   median(u.each(func(s sample) float64 { return s.perOp(s.CPU) })),
		AllocsPerOp:  median(u.each(func(s sample) float64 { return s.perOp(float64(s.Allocs)) })),
		GoBytesPerOp: median(u.each(func(s sample) float64 { return s.perOp(float64(s.Bytes)) })),
		Published:    []result.Published{},
		Note:         u.row.Note,
		Profile:      u.profile.shares,
	}
	row.NsPerOp, row.CI95Low, row.CI95High = result.Summarize(wall)
	if u.row.Published != nil {
		row.Published = append(row.Published, u.row.Published(u.procs)...)
	}
	if versus != nil {
		row.Versus = ratio(wall, versus)
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

// ratio divides the time of each round by that of the other unit in the same round.
// The ratio is noisy if 1 is within its interval, or if there are too few rounds
// for an interval.
func ratio(wall []float64, versus *unit) *result.Ratio {
	theirs := versus.each(func(s sample) float64 { return s.perOp(s.Wall) })
	pairs := make([]float64, min(len(wall), len(theirs)))
	for i := range pairs {
		pairs[i] = wall[i] / theirs[i]
	}
	out := &result.Ratio{To: versus.row.Name}
	out.Ratio, out.CI95Low, out.CI95High = result.Summarize(pairs)
	out.Noisy = out.CI95Low <= 1 && 1 <= out.CI95High || out.CI95High == 0
	return out
}

func median(values []float64) float64 {
	center, _, _ := result.Summarize(values)
	return center
}
