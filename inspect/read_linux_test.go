package inspect

import (
	"math"
	"runtime"
	"syscall"
	"testing"

	"github.com/cheapgo/cheap/internal/mem/race"
	"github.com/cheapgo/cheap/internal/test/testcall"
	"github.com/cheapgo/cheap/internal/test/testchild"
)

// TestReadingIsSmall has a program with 500 mappings more than it needs. A reading that starts collections would change
// what it reads. Each is as the first one: two collections have taken what pools had.
func TestReadingIsSmall(t *testing.T) {
	testchild.MustPass(t, func(t *testing.T) { // other tests leave mappings
		for range 500 {
			b, err := syscall.Mmap(-1, 0, 2*syscall.Getpagesize(), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
			testcall.Must(t, err)
			testcall.Must(t, syscall.Mprotect(b[:syscall.Getpagesize()], syscall.PROT_NONE)) // the kernel joins what is alike
		}
		least := uint64(math.MaxUint64) // other goroutines allocate as well
		for range 10 {
			var before, after runtime.MemStats
			runtime.GC()
			runtime.GC()
			runtime.ReadMemStats(&before)
			ReadVerdict()
			runtime.ReadMemStats(&after)
			least = min(least, after.TotalAlloc-before.TotalAlloc)
		}
		most := uint64(64 << 10)
		if race.Build {
			most *= 2 // pools drop some of what they have on purpose
		}
		if least > most {
			t.Errorf("a reading allocates %d bytes", least)
		}
	})
}
