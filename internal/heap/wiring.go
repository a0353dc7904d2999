package heap

import (
	"github.com/cheapgo/cheap/internal/mem/poison"
	"github.com/cheapgo/cheap/internal/watch/census"
	"github.com/cheapgo/cheap/internal/watch/sample"
)

// heapHost implements interfaces of packages below this one, through which they call it. Only
// this file gives it to them.
type heapHost struct{}

func init() {
	sample.SetHeaps(heapHost{})
	census.SetHeaps(heapHost{})
	poison.SetHeaps(heapHost{})
	setGuardRate() // after that: the default heap is there, and has to learn of the rate
}

func (heapHost) RatesChanged() {
	for h := range heaps.Range {
		h.(*Heap).redrawSamples()
	}
}

func (heapHost) Heaps(all *census.Heaps) { readHeaps(all) }

func (heapHost) SanitizerSet() { poisonHeaps() }
