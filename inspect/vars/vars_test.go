package vars

import (
	"encoding/json"
	"expvar"
	"strings"
	"sync"
	"testing"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/inspect"
	"github.com/cheapgo/cheap/internal/test/testcall"
)

var publish = sync.OnceFunc(func() { Publish("cheap") })

func TestPublish(t *testing.T) {
	h, err := cheap.NewHeap(cheap.HeapOptions{Name: "published"})
	testcall.Must(t, err)
	defer h.DestroyAll()
	h.Malloc(100)
	h.Malloc(100)
	publish() // again with -count would panic
	var all map[string]json.RawMessage
	testcall.Must(t, json.Unmarshal([]byte(expvar.Get("cheap").String()), &all))
	for _, m := range inspect.Metrics() {
		if len(m.Labels) > 0 || strings.HasPrefix(m.Name, "cheap_cmem_") {
			continue // there may be none
		}
		var n float64
		if err := json.Unmarshal(all[m.Name], &n); err != nil {
			t.Errorf("%s: %v", m.Name, err)
		}
	}
	var heaps []struct {
		Heap  string
		Value float64
	}
	testcall.Must(t, json.Unmarshal(all["cheap_heap_blocks"], &heaps))
	found := 0
	for _, x := range heaps {
		if x.Heap == "published" {
			if found++; x.Value != 2 {
				t.Errorf("%v blocks, want 2", x.Value)
			}
		}
	}
	if found != 1 {
		t.Errorf("%d heaps, want 1: %s", found, all["cheap_heap_blocks"])
	}
}
