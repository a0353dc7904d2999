package porting

// #include "library.h"
import "C"

import (
	"unsafe"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/own"
)

// A Histogram is a C struct in memory that is freed automatically.
type Histogram struct{ counts *own.Mem[C.histogram] }

var histograms = own.NewMemory(cheap.Default(), own.MemoryOptions{Name: "Histogram"})

// NewHistogram returns one that has counted nothing.
func NewHistogram() (Histogram, error) {
	counts, err := own.NewMem[C.histogram](histograms)
	return Histogram{counts}, err
}

// Add has C count the bytes.
func (h Histogram) Add(bytes []byte) {
	h.counts.Use(func(c *C.histogram) {
		C.tally(c, (*C.uchar)(unsafe.SliceData(bytes)), C.size_t(len(bytes)))
	})
}

// Of returns how often b was counted.
func (h Histogram) Of(b byte) (n int) {
	h.counts.Use(func(c *C.histogram) { n = int(c.of[b]) })
	return n
}
