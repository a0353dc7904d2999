package inspect

import (
	"cmp"
	"slices"

	"github.com/cheapgo/cheap/internal/watch/resident"
	"github.com/cheapgo/cheap/pace"
)

// A Kind says how the values of a metric follow each other.
type Kind int

// The kinds.
const (
	Gauge   Kind = iota // goes up and down
	Counter             // goes up only, for as long as the program, the heap or the pool exists
)

// String returns "gauge" or "counter".
func (k Kind) String() string {
	if k == Counter {
		return "counter"
	}
	return "gauge"
}

// A Metric describes a number that [ReadMetrics] returns, once or for each value of its labels.
type Metric struct {
	Name   string // in the style of Prometheus: unit at the end, and _total behind it in a counter
	Unit   string // "bytes", "seconds", or what is counted
	Help   string // one line
	Kind   Kind
	Table  string   // the table of the page that has it, such as "heaps"
	Labels []string // names, in the order of Sample.Labels; nil if there is one value
}

// A Sample is a value of a metric.
type Sample struct {
	Metric *Metric
	Labels []string // values of Metric.Labels. The caller must not change them
	Value  float64  // a whole number, but for seconds; exact up to 2⁵³
}

// A column is a metric, and where its values come from.
type column struct {
	Metric        // without a name it is in tables only
	head   string // of the column in a table
	get    func(r *row) float64
}

// A row has what the values of a line of a table are computed from: all, and one other field that
// is set.
type row struct {
	all     *snapshot
	heap    *heapFigures
	class   *classFigures
	account *accountFigures
	pool    *poolFigures
	library *libraryFigures
	part    *resident.Part
	cache   *pace.CacheStats
	threads *resident.Threads
}

// A tableSpec is what a Table is made of: metrics with the same labels, and where their values come
// from.
type tableSpec struct {
	name, title, about string
	labels             []string
	columns            []column
	rows               func(s *snapshot, emit func(labels []string, r row))

	// state reports whether the program has what the table shows, and why there are no rows, or
	// "". A nil state means that the program has it.
	state func() (has bool, why string)
}

// allMetrics are the metrics of all tables, sorted by name.
var allMetrics = func() []Metric {
	var all []Metric
	for _, t := range tableSpecs {
		for i := range t.columns {
			if t.columns[i].Labels, t.columns[i].Table = t.labels, t.name; t.columns[i].Name == "" {
				continue // for tables only
			}
			all = append(all, t.columns[i].Metric)
		}
	}
	slices.SortFunc(all, func(x, y Metric) int { return cmp.Compare(x.Name, y.Name) })
	return all
}()

// Metrics returns the descriptions of what ReadMetrics returns, sorted by name. docs/reference/metrics.md is
// made of them. Metrics whose names begin with cheap_cmem_ have values only in a program that
// imports module cmem.
func Metrics() []Metric {
	list := slices.Clone(allMetrics)
	for i := range list {
		list[i].Labels = slices.Clone(list[i].Labels)
	}
	return list
}

// ReadMetrics returns the values of all metrics, sorted by the name of the metric and then in the
// order in which heaps, accounts and pools were made.
//
// It does not stop the world, does not collect, and takes no lock that Malloc, Free or the
// release of a resource waits for. In one percent of the time at most it takes those of C's malloc,
// in a program that imports package libc. The counts of a heap or a pool that is busy are those of
// the last call; else [cheap.Stats] says when values agree with one another. In a program that
// imports module cmem, a block of C that is sampled waits for some microseconds while its stacks
// are read.
func ReadMetrics() (samples []Sample) {
	withSnapshot(false, func(s *snapshot) { samples = s.metrics() })
	return samples
}

// metrics returns the samples of a snapshot.
func (s *snapshot) metrics() []Sample {
	byName := make(map[string][]Sample, len(allMetrics))
	total := 0
	for _, t := range tableSpecs {
		lists := make([][]Sample, len(t.columns))
		t.rows(s, func(labels []string, r row) {
			r.all = s
			for i := range t.columns {
				c := &t.columns[i]
				lists[i] = append(lists[i], Sample{&c.Metric, labels, c.get(&r)})
			}
		})
		for i, list := range lists {
			byName[t.columns[i].Name] = list
			total += len(list)
		}
	}
	samples := make([]Sample, 0, total)
	for i := range allMetrics {
		samples = append(samples, byName[allMetrics[i].Name]...)
	}
	return samples
}
