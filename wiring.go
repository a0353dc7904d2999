package cheap

import (
	"github.com/cheapgo/cheap/internal/census"
	"github.com/cheapgo/cheap/internal/poison"
	"github.com/cheapgo/cheap/internal/sample"
	"github.com/cheapgo/cheap/internal/span"
)

// upward implements interfaces of packages below this one, through which they call it. Only
// this file gives it to them.
type upward struct{}

func init() {
	span.SetHolder(upward{})
	sample.SetHeaps(upward{})
	census.SetHeaps(upward{})
	poison.SetHeaps(upward{})
	setGuardRate() // after that: the default heap is there, and has to learn of the rate
}

func (upward) Tick() { tick() }

func (upward) RatesChanged() {
	for h := range heaps.Range {
		h.(*Heap).redrawSamples()
	}
}

func (upward) Heaps(all *census.Heaps) { readHeaps(all) }

func (upward) SanitizerSet() { poisonHeaps() }
