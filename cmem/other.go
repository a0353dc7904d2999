//go:build !cgo || !linux || cheap_nocmem || asan || msan

package cmem

func off() string {
	return "the program was built without it: it needs Linux and cgo, and neither -asan nor -msan nor the build tag cheap_nocmem"
}

func setRate(int64) int64  { return 0 }
func rate() int64          { return 0 }
func read() Stats          { return Stats{} }
func eachSite(func(*site)) {}
func initial(uintptr) bool { return true }
