package cheapprometheus

import (
	"fmt"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/inspect"
	"github.com/cheapgo/cheap/internal/test/testcall"
	"github.com/cheapgo/cheap/internal/watch/census"
)

// heap makes a heap with three blocks.
func heap(t *testing.T, name string) *cheap.Heap {
	t.Helper()
	h, err := cheap.NewHeap(cheap.HeapOptions{Name: name, Limit: 1 << 30})
	testcall.Must(t, err)
	t.Cleanup(func() { h.DestroyAll() })
	for range 3 {
		h.Malloc(1000)
	}
	return h
}

func TestLint(t *testing.T) {
	heap(t, "lint")
	problems, err := testutil.CollectAndLint(NewCollector())
	testcall.Must(t, err)
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

func TestCollect(t *testing.T) {
	heap(t, "collected")
	number := ""
	for _, s := range inspect.ReadMetrics() {
		if s.Metric.Name == "cheap_heap_blocks" && s.Labels[0] == "collected" {
			number = s.Labels[1]
		}
	}
	registry := prometheus.NewPedanticRegistry()
	testcall.Must(t, registry.Register(NewCollector()))
	families, err := registry.Gather()
	testcall.Must(t, err)
	found := map[string]bool{}
	for _, f := range families {
		found[f.GetName()] = true
		if f.GetName() != "cheap_heap_blocks" {
			continue
		}
		for _, m := range f.Metric {
			if m.Label[0].GetValue() == "collected" && m.Label[1].GetValue() == number && m.Gauge.GetValue() != 3 {
				t.Errorf("%v blocks, want 3", m.Gauge.GetValue())
			}
		}
	}
	for _, m := range inspect.Metrics() {
		if len(m.Labels) == 0 && !found[m.Name] && !strings.HasPrefix(m.Name, "cheap_cmem_") {
			t.Errorf("%s is not exported", m.Name)
		}
	}
	const want = "# HELP cheap_heaps Heaps that are not destroyed.\n# TYPE cheap_heaps gauge\ncheap_heaps %d\n"
	testcall.Want(t, testutil.GatherAndCompare(registry, strings.NewReader(fmt.Sprintf(want, len(cheap.Heaps()))), "cheap_heaps"))
}

// TestNames gives heaps names that Prometheus does not take as they are, and one name twice.
func TestNames(t *testing.T) {
	for _, name := range []string{"a\xff\"\n", "twice", "twice", strings.Repeat("long", 1000)} {
		heap(t, name)
	}
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(NewCollector())
	if _, err := registry.Gather(); err != nil {
		t.Error(err)
	}
}

// A cHeap is a C heap of a test.
type cHeap struct{ census.CHeap }

func (cHeap) Off() string          { return "" }
func (cHeap) Read() census.CCounts { return census.CCounts{Mallocs: 3} }

func (cHeap) Libraries(list []census.CLibrary) []census.CLibrary {
	return append(list, census.CLibrary{Name: "liba.so", Live: 7}, census.CLibrary{Name: "b\xff"})
}

// TestCmem has a program that imports module cmem.
func TestCmem(t *testing.T) {
	defer census.SetCHeap(census.SetCHeap(cHeap{}))
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(NewCollector())
	const want = `# HELP cheap_cmem_library_live_bytes Bytes of the blocks in use.
# TYPE cheap_cmem_library_live_bytes gauge
cheap_cmem_library_live_bytes{library="b` + "\uFFFD" + `"} 0
cheap_cmem_library_live_bytes{library="liba.so"} 7
# HELP cheap_cmem_mallocs_total Calls that allocate, exact. A realloc is one of these, and one that frees.
# TYPE cheap_cmem_mallocs_total counter
cheap_cmem_mallocs_total 3
`
	testcall.Want(t, testutil.GatherAndCompare(registry, strings.NewReader(want), "cheap_cmem_mallocs_total", "cheap_cmem_library_live_bytes"))
	problems, err := testutil.CollectAndLint(NewCollector())
	testcall.Must(t, err)
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}
