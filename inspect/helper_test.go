package inspect

import (
	"runtime"
	"strings"
	"testing"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/internal/page/pagejson"
	"github.com/cheapgo/cheap/internal/test/testcall"
	"github.com/cheapgo/cheap/internal/test/testwait"
)

// values are the samples of one read, by the name of the metric and the values of its labels.
type values map[string]float64

func readAll() values {
	v := values{}
	for _, s := range ReadMetrics() {
		v[s.Metric.Name+"{"+strings.Join(s.Labels, ",")+"}"] = s.Value
	}
	return v
}

// of returns the only value of a metric whose first label is label, or "" for none.
func (v values) of(t *testing.T, name, label string) float64 {
	t.Helper()
	found, value := 0, 0.0
	for key, x := range v {
		rest, ok := strings.CutPrefix(key, name+"{")
		if ok && (rest == label+"}" || strings.HasPrefix(rest, label+",")) {
			found, value = found+1, x
		}
	}
	if found != 1 {
		t.Fatalf("%d values of %s{%s}", found, name, label)
	}
	return value
}

func (v values) want(t *testing.T, name, label string, want float64) {
	t.Helper()
	if got := v.of(t, name, label); got != want {
		t.Errorf("%s{%s} is %v, want %v", name, label, got, want)
	}
}

// partsOf returns the first value of each row of a table, by its first label.
func partsOf(t *testing.T, table string) map[string]float64 {
	parts := map[string]float64{}
	for _, row := range hasTable(t, table).Rows {
		parts[row.Labels[0]] = row.Values[0]
	}
	return parts
}

func allTables() []pagejson.Table {
	r, _ := newReport(Options{}, "all")
	return r.Tables
}

func newHeap(t testing.TB, name string) *cheap.Heap {
	t.Helper()
	h, err := cheap.NewHeap(cheap.HeapOptions{Name: name})
	testcall.Must(t, err)
	t.Cleanup(func() { h.DestroyAll() })
	return h
}

// eventually collects until ok reports true.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	testwait.Until(t, what, func() bool {
		if ok() {
			return true
		}
		runtime.GC()
		return false
	})
}
