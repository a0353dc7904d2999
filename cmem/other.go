//go:build !cgo || !linux || cheap_nocmem || asan || msan

package cmem

import (
	"unsafe"

	"github.com/cheapgo/cheap/cmem/fht"
	"github.com/cheapgo/cheap/cmem/heapprofile"
)

func off() string {
	return "the program was built without it: it needs Linux and cgo, and neither -asan nor -msan nor the build tag cheap_nocmem"
}

func setRate(int64) int64     { return 0 }
func refresh()                {}
func rate() int64             { return 0 }
func waiting() bool           { return false }
func liveBlocks() int64       { return 0 }
func held() int64             { return 0 }
func unseen() (int64, bool)   { return 0, true }
func read() Stats             { return Stats{} }
func eachSite(func(*site))    {}
func eachMapping(func(*site)) {}
func ranges() []mappedRange   { return nil }
func countUnixMmap() error    { return nil }
func closed() uint32          { return 0 }
func initial(uintptr) bool    { return true }

func labelsOff() string                           { return off() }
func labelsOf(unsafe.Pointer) []heapprofile.Label { return nil }

// Record returns before it would use these.
var fullTrace traceSize

func traceBegin(traceSize) (*fht.Ring, error) { return nil, nil }
func traceEnd() uint64                        { return 0 }
