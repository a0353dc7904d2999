package inspect

import (
	"slices"
	"sync"
	"time"

	"github.com/cheapgo/cheap/internal/resident"
)

// A Series is a number of the chart.
type Series struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"` // in bytes
}

// cHeapAccount is the account that module cmem opens. Its bytes have a line of their own.
const cHeapAccount = "C heap"

// partBytes is the metric of the table resident.
const partBytes = "cheap_part_resident_bytes"

// seriesOf returns what the chart shows of all tables.
func seriesOf(tables []Table) []Series {
	sum := func(table, label, metric string) (n float64) {
		for _, t := range tables {
			i := slices.IndexFunc(t.Metrics, func(h Heading) bool { return h.Name == metric })
			for _, r := range t.Rows {
				if t.Name == table && i >= 0 && (label == "" || r.Labels[0] == label) {
					n += r.Values[i]
				}
			}
		}
		return n
	}
	list := []Series{
		{"blocks", sum("totals", "", "cheap_allocated_bytes")},
		{"resources", sum("accounts", "", "cheap_account_held_bytes")},
		{"Go heap", sum("resident", resident.GoInUse.String(), partBytes) + sum("resident", resident.GoIdle.String(), partBytes)},
		{inAll, sum("resident", inAll, partBytes)},
	}
	if cmemRuns() {
		list[1].Value -= sum("accounts", cHeapAccount, "cheap_account_held_bytes")
		list = append(list, Series{"C heap", sum("cmem", "", "cheap_cmem_live_bytes")})
	}
	return list
}

// A point is the series at a time.
type point struct {
	Time   time.Time `json:"time"`
	Values []float64 `json:"values"`
}

const (
	mostPoints = 900
	closest    = time.Second // two points are so far from each other
)

// history has the points of the requests for all tables. Only requests add points: a program whose
// page is not open does nothing for it.
type history struct {
	mu     sync.Mutex
	points []point // under mu
}

func (h *history) add(r *Figures) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if n := len(h.points); n > 0 && r.Time.Sub(h.points[n-1].Time) < closest {
		return
	}
	values := make([]float64, len(r.Series))
	for i, s := range r.Series {
		values[i] = s.Value
	}
	if len(h.points) >= mostPoints {
		h.points = append(h.points[:0], h.points[1:]...)
	}
	h.points = append(h.points, point{r.Time, values})
}

// all returns the points.
func (h *history) all() []point {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]point{}, h.points...)
}
