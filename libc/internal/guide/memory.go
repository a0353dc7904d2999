//go:build cgo

package guide

// #include "library.h"
import "C"

import (
	"unsafe"

	"github.com/cheapgo/cheap/own"
)

// A Histogram is a struct of C whose memory is freed when the Histogram is unreachable.
type Histogram struct{ counts *own.Mem[C.histogram] }

// NewHistogram returns a histogram of no bytes.
func NewHistogram(memory *own.Memory) (Histogram, error) {
	counts, err := own.NewMem[C.histogram](memory)
	return Histogram{counts}, err
}

// Add has C count the bytes.
func (h Histogram) Add(bytes []byte) {
	h.counts.Use(func(counts *C.histogram) {
		C.tally(counts, (*C.uchar)(unsafe.SliceData(bytes)), C.size_t(len(bytes)))
	})
}

// Of returns how often C has counted b.
func (h Histogram) Of(b byte) (n int) {
	h.counts.Use(func(counts *C.histogram) { n = int(counts.of[b]) })
	return n
}
