package cheapotel

import (
	"strings"
	"testing"

	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/inspect"
	"github.com/cheapgo/cheap/internal/test/testcall"
)

// collect returns the points of all instruments.
func collect(t *testing.T, reader metric.Reader) map[string][]metricdata.DataPoint[float64] {
	t.Helper()
	var data metricdata.ResourceMetrics
	testcall.Must(t, reader.Collect(t.Context(), &data))
	points := map[string][]metricdata.DataPoint[float64]{}
	for _, scope := range data.ScopeMetrics {
		for _, m := range scope.Metrics {
			switch d := m.Data.(type) {
			case metricdata.Gauge[float64]:
				points[m.Name+" gauge "+m.Unit] = d.DataPoints
			case metricdata.Sum[float64]:
				if !d.IsMonotonic {
					t.Errorf("%s may go down", m.Name)
				}
				points[m.Name+" counter "+m.Unit] = d.DataPoints
			}
		}
	}
	return points
}

func TestRegister(t *testing.T) {
	h, err := cheap.NewHeap(cheap.HeapOptions{Name: "observed\xff"})
	testcall.Must(t, err)
	defer h.DestroyAll()
	h.Malloc(1000)
	reader := metric.NewManualReader()
	registration, err := Register(metric.NewMeterProvider(metric.WithReader(reader)).Meter("cheap"))
	testcall.Must(t, err)
	points := collect(t, reader)
	for _, m := range inspect.Metrics() {
		key := strings.TrimSuffix(m.Name, "_total") + " " + m.Kind.String() + " " + unitOf(m.Unit)
		if len(m.Labels) == 0 && len(points[key]) != 1 && !strings.HasPrefix(m.Name, "cheap_cmem_") {
			t.Errorf("%s has %d points", key, len(points[key]))
		}
	}
	found := 0.0
	for _, p := range points["cheap_heap_allocated_bytes gauge By"] {
		if name, _ := p.Attributes.Value("heap"); name.AsString() == "observed\uFFFD" {
			found += p.Value
		}
	}
	if found != 1024 {
		t.Errorf("the heap has %v bytes, want 1024", found)
	}
	testcall.Must(t, registration.Unregister())
	if points := collect(t, reader); len(points) > 0 {
		t.Errorf("%d instruments after Unregister", len(points))
	}
}
