// Package cheapotel reports the statistics of package inspect to a meter of OpenTelemetry.
//
//	reg, err := cheapotel.Register(provider.Meter("github.com/cheapgo/cheap"))
//
// The instruments have the names of docs/reference/metrics.md, without _total behind those of counters,
// which exporters to Prometheus add.
package cheapotel

import (
	"context"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/cheapgo/cheap/inspect"
)

// Register makes an observable instrument for each metric of [inspect.Metrics]. A collection is
// one [inspect.ReadMetrics], which stops nothing. Unregister of the result ends it.
func Register(meter metric.Meter) (metric.Registration, error) {
	instruments := map[string]metric.Float64Observable{}
	var all []metric.Observable
	for _, m := range inspect.Metrics() {
		name, unit := strings.TrimSuffix(m.Name, "_total"), unitOf(m.Unit)
		var i metric.Float64Observable
		var err error
		if m.Kind == inspect.Counter {
			i, err = meter.Float64ObservableCounter(name, metric.WithDescription(m.Help), metric.WithUnit(unit))
		} else {
			i, err = meter.Float64ObservableGauge(name, metric.WithDescription(m.Help), metric.WithUnit(unit))
		}
		if err != nil {
			return nil, err
		}
		instruments[m.Name] = i
		all = append(all, i)
	}
	return meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		for _, s := range inspect.ReadMetrics() {
			attributes := make([]attribute.KeyValue, len(s.Labels))
			for i, label := range s.Labels {
				attributes[i] = attribute.String(s.Metric.Labels[i], strings.ToValidUTF8(label, "\uFFFD"))
			}
			o.ObserveFloat64(instruments[s.Metric.Name], s.Value, metric.WithAttributes(attributes...))
		}
		return nil
	}, all...)
}

// unitOf writes a unit as the Unified Code for Units of Measure does.
func unitOf(unit string) string {
	switch unit {
	case "bytes":
		return "By"
	case "seconds":
		return "s"
	}
	return "{" + unit + "}"
}
