package inspect_test

import (
	"fmt"
	"log"
	"net/http"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/inspect"
)

func ExampleReadMetrics() {
	heap, err := cheap.NewHeap(cheap.HeapOptions{Name: "example"})
	if err != nil {
		log.Fatal(err)
	}
	p := heap.Malloc(1000)
	for _, s := range inspect.ReadMetrics() {
		if s.Metric.Name == "cheap_heap_allocated_bytes" && s.Labels[0] == "example" {
			fmt.Println(s.Value, s.Metric.Unit)
		}
	}
	heap.Free(p)
	// Output:
	// 1024 bytes
}

func ExampleHandler() {
	mux := http.NewServeMux() // or http.DefaultServeMux
	mux.Handle("/debug/cheap/", inspect.Handler(inspect.Options{Title: "image server"}))
}
