// Package vars publishes the statistics of package inspect for package expvar. It is a package
// of its own because to import expvar registers an address: /debug/vars.
package vars

import (
	"expvar"

	"github.com/cheapgo/cheap/inspect"
)

// Publish publishes all metrics under a name, as an object with a field for each metric. It has
// a number if the metric has no labels, else a list of objects with the labels and the value.
// Publish panics, as expvar.Publish does, if the name is in use.
func Publish(name string) { expvar.Publish(name, expvar.Func(read)) }

func read() any {
	all := map[string]any{}
	for _, s := range inspect.ReadMetrics() {
		if len(s.Metric.Labels) == 0 {
			all[s.Metric.Name] = s.Value
			continue
		}
		entry := map[string]any{"value": s.Value}
		for i, label := range s.Metric.Labels {
			entry[label] = s.Labels[i]
		}
		list, _ := all[s.Metric.Name].([]any)
		all[s.Metric.Name] = append(list, entry)
	}
	return all
}
