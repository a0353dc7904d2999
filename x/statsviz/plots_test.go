package cheapstatsviz

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/arl/statsviz"
	"github.com/gorilla/websocket"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/inspect"
	"github.com/cheapgo/cheap/internal/test/testcall"
)

// TestPlots registers all plots with statsviz, and asks for its page.
func TestPlots(t *testing.T) {
	plots, err := Plots()
	testcall.Must(t, err)
	if len(plots) < 10 {
		t.Errorf("%d plots", len(plots))
	}
	var options []statsviz.Option
	for _, p := range plots {
		options = append(options, statsviz.TimeseriesPlot(p))
	}
	mux := http.NewServeMux()
	viz, err := statsviz.NewServer(append(options, statsviz.SendFrequency(100*time.Millisecond))...)
	testcall.Must(t, err)
	defer viz.Close()
	viz.Register(mux)
	server := httptest.NewServer(mux)
	defer server.Close()
	conn, _, err := websocket.DefaultDialer.Dial("ws"+strings.TrimPrefix(server.URL, "http")+"/debug/statsviz/ws", nil)
	testcall.Must(t, err)
	defer conn.Close()
	for _, event := range []string{"config", "metrics"} { // what is plotted, and the first values
		_, message, err := conn.ReadMessage()
		testcall.Must(t, err)
		for _, name := range []string{event, "cheap-totals-bytes", "cheap-heaps-number-per-second", "cheap-pools-seconds"} {
			if !strings.Contains(string(message), `"`+name+`"`) {
				t.Errorf("the message %s has no %s: %.300s", event, name, message)
			}
		}
	}
}

// TestEachMetricHasALine counts the metrics of the plots.
func TestEachMetricHasALine(t *testing.T) {
	n := 0
	for _, table := range tables() {
		for _, unit := range units(table) {
			for _, m := range table {
				if unitOf(m) == unit {
					n++
				}
			}
		}
	}
	want := 0
	for _, m := range inspect.Metrics() {
		if !strings.HasPrefix(m.Name, "cheap_cmem_") { // this program does not import module cmem
			want++
		}
	}
	if n != want {
		t.Errorf("%d lines, want %d", n, want)
	}
}

func TestLines(t *testing.T) {
	h, err := cheap.NewHeap(cheap.HeapOptions{Name: "line"})
	testcall.Must(t, err)
	defer h.DestroyAll()
	h.Malloc(1 << 20)
	metric := func(name string) inspect.Metric {
		all := inspect.Metrics()
		i := slices.IndexFunc(all, func(m inspect.Metric) bool { return m.Name == name })
		if i < 0 {
			t.Fatalf("there is no %s", name)
		}
		return all[i]
	}
	c := &cache{}
	bytes, mallocs := c.line(metric("cheap_heap_allocated_bytes")), c.line(metric("cheap_heap_mallocs_total"))
	if got := bytes(); got < 1<<20 {
		t.Errorf("%v bytes", got)
	}
	if got := mallocs(); got != 0 {
		t.Errorf("%v mallocs per second at first", got)
	}
	for range 1000 {
		h.Malloc(100)
	}
	c.at = time.Now().Add(-2 * fresh) // the next read is due
	if got := mallocs(); got <= 0 {
		t.Errorf("%v mallocs per second", got)
	}
}
