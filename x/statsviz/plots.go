// Package cheapstatsviz shows the statistics of package inspect as plots of
// github.com/arl/statsviz, beside those of Go's runtime.
//
//	plots, err := cheapstatsviz.Plots()
//	...
//	for _, p := range plots {
//		options = append(options, statsviz.TimeseriesPlot(p))
//	}
//	statsviz.Register(mux, options...)
package cheapstatsviz

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/arl/statsviz"

	"github.com/cheapgo/cheap/inspect"
)

// Plots returns a plot for each table of [inspect.Metrics] and each unit of its metrics: gauges,
// and counters by how much they grow in a second. Heaps, accounts and pools come and go, which
// the lines of a plot cannot, so a line is the sum over all of them.
func Plots() ([]statsviz.TimeSeriesPlot, error) {
	c := &cache{}
	var plots []statsviz.TimeSeriesPlot
	for _, table := range tables() {
		for _, unit := range units(table) {
			config := statsviz.TimeSeriesPlotConfig{
				Name:  "cheap-" + table[0].Table + "-" + unit,
				Title: "cheap: " + table[0].Table + " (" + unit + ")",
				Type:  statsviz.Scatter, YAxisTitle: unit,
			}
			format := ".4s"
			if unit == "bytes" {
				config.YAxisTickSuffix = "B"
				format += "B"
			}
			for _, m := range table {
				if unitOf(m) == unit {
					config.InfoText += m.Help + " "
					config.Series = append(config.Series, statsviz.TimeSeries{Name: strings.TrimPrefix(m.Name, "cheap_"), Unitfmt: format, GetValue: c.line(m)})
				}
			}
			p, err := config.Build()
			if err != nil {
				return nil, err
			}
			plots = append(plots, p)
		}
	}
	return plots, nil
}

// tables returns the metrics of each table, without those of module cmem if that does not count.
func tables() (list [][]inspect.Metric) {
	counts := slices.ContainsFunc(inspect.ReadMetrics(), func(s inspect.Sample) bool { return s.Metric.Table == "cmem" })
	at := map[string]int{}
	for _, m := range inspect.Metrics() {
		if strings.HasPrefix(m.Name, "cheap_cmem_") && !counts {
			continue
		}
		i, ok := at[m.Table]
		if !ok {
			i = len(list)
			at[m.Table], list = i, append(list, nil)
		}
		list[i] = append(list[i], m)
	}
	return list
}

// unitOf returns what the plot is of that a metric belongs to.
func unitOf(m inspect.Metric) string {
	unit := m.Unit
	if unit != "bytes" && unit != "seconds" {
		unit = "number"
	}
	if m.Kind == inspect.Counter {
		unit += "-per-second"
	}
	return unit
}

// units returns the units of metrics of inspect, in the order in which they come.
func units(metrics []inspect.Metric) (list []string) {
	seen := map[string]bool{}
	for _, m := range metrics {
		if u := unitOf(m); !seen[u] {
			seen[u] = true
			list = append(list, u)
		}
	}
	return list
}

// cache has the sums of the last read. A plot asks for each line by itself.
type cache struct {
	mu   sync.Mutex
	at   time.Time
	sums map[string]float64
}

// fresh is how long a read serves. Statsviz asks once in a second.
const fresh = 500 * time.Millisecond

// sum returns the sum over all labels of a metric, and when it was read.
func (c *cache) sum(name string) (float64, time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.at) > fresh {
		c.sums, c.at = map[string]float64{}, time.Now()
		for _, s := range inspect.ReadMetrics() {
			c.sums[s.Metric.Name] += s.Value
		}
	}
	return c.sums[name], c.at
}

// line returns the function that a line has its values from.
func (c *cache) line(m inspect.Metric) func() float64 {
	if m.Kind != inspect.Counter {
		return func() float64 { n, _ := c.sum(m.Name); return n }
	}
	var mu sync.Mutex // of what the last call has returned
	var was, rate float64
	var before time.Time
	return func() float64 {
		mu.Lock()
		defer mu.Unlock()
		n, at := c.sum(m.Name)
		if passed := at.Sub(before); passed > 0 {
			if !before.IsZero() {
				rate = max(n-was, 0) / passed.Seconds() // a heap that is destroyed takes its counts along
			}
			was, before = n, at
		}
		return rate
	}
}
