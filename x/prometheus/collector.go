// Package cheapprometheus exports the statistics of package inspect to Prometheus.
//
//	prometheus.MustRegister(cheapprometheus.NewCollector())
//
// The metrics have the names of docs/reference/metrics.md.
package cheapprometheus

import (
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/cheapgo/cheap/inspect"
)

// NewCollector returns a collector of all metrics of [inspect.Metrics]. A scrape is one
// [inspect.ReadMetrics], which stops nothing.
func NewCollector() prometheus.Collector {
	c := &collector{descs: map[string]*prometheus.Desc{}}
	for _, m := range inspect.Metrics() {
		c.descs[m.Name] = prometheus.NewDesc(m.Name, m.Help, m.Labels, nil)
	}
	return c
}

type collector struct {
	descs map[string]*prometheus.Desc // by name; does not change
}

// Describe sends the descriptions.
func (c *collector) Describe(to chan<- *prometheus.Desc) {
	for _, d := range c.descs {
		to <- d
	}
}

// Collect sends the values.
func (c *collector) Collect(to chan<- prometheus.Metric) {
	for _, s := range inspect.ReadMetrics() {
		kind := prometheus.GaugeValue
		if s.Metric.Kind == inspect.Counter {
			kind = prometheus.CounterValue
		}
		labels := make([]string, len(s.Labels))
		for i, l := range s.Labels {
			labels[i] = strings.ToValidUTF8(l, "\uFFFD") // a name is any string
		}
		to <- prometheus.MustNewConstMetric(c.descs[s.Metric.Name], kind, s.Value, labels...)
	}
}
