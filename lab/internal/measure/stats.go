package measure

import (
	"math"
	"slices"

	"golang.org/x/perf/benchmath"
)

// confidence is that of all intervals.
const confidence = 0.95

// Summarize returns the median of the rounds and the bounds of its confidence
// interval, as they stand in a Row and in a Ratio. The bounds are 0 where there
// are too few rounds.
func Summarize(rounds []float64) (median, low, high float64) {
	s := benchmath.AssumeNothing.Summary(benchmath.NewSample(slices.Clone(rounds), &benchmath.DefaultThresholds), confidence)
	if math.IsInf(s.Lo, 0) || math.IsInf(s.Hi, 0) {
		return s.Center, 0, 0
	}
	return s.Center, s.Lo, s.Hi
}
