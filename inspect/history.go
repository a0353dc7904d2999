package inspect

import (
	"slices"
	"sync"
	"time"

	"github.com/cheapgo/cheap/internal/page/pagejson"
)

const (
	mostPoints = 900
	closest    = time.Second // two points are so far from each other
)

// history has the points of the requests for all tables, and of the looks that the handler makes by itself. It keeps the
// whole time since the first one: when it is full, every second point is dropped.
type history struct {
	mu     sync.Mutex
	points []pagejson.Point // under mu
}

func (h *history) add(r *pagejson.Figures) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if n := len(h.points); n > 0 && r.Time.Sub(h.points[n-1].Time) < closest {
		return
	}
	values := make([]float64, len(r.Overview.Parts))
	for i, p := range r.Overview.Parts {
		values[i] = p.Bytes
	}
	if len(h.points) >= mostPoints {
		for i := range mostPoints / 2 {
			h.points[i] = h.points[2*i]
		}
		h.points = slices.Delete(h.points, mostPoints/2, len(h.points))
	}
	h.points = append(h.points, pagejson.Point{Time: r.Time, Values: values})
}

// all returns the points.
func (h *history) all() []pagejson.Point {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]pagejson.Point{}, h.points...)
}
