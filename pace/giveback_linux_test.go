//go:build cgo && !race && !cheap_gomem && !asan

package pace

import (
	"fmt"
	"sync"
	"testing"
	"time"
	"unsafe"

	"github.com/cheapgo/cheap/internal/mem/giveback"
	"github.com/cheapgo/cheap/internal/test/testwait"
	"github.com/cheapgo/cheap/own"
)

// TestGiveBack has a cache emptied, of which a tenth stays between what is freed, so that glibc
// gives nothing back by itself. Package pace does.
func TestGiveBack(t *testing.T) {
	for _, limit := range []int64{0, 4 << 30} {
		t.Run(fmt.Sprintf("limit=%d", limit), func(t *testing.T) {
			o := inChild(t, func() (o outcome) {
				byKernel()
				giveback.Each = 10 * time.Millisecond
				mustPace(Options{Limit: limit})
				const size, images, goroutines = 50 * kib, 500, 8
				m := measure()
				pool := serverPool()
				album := make([]own.Handle[unsafe.Pointer], images*goroutines)
				var wg sync.WaitGroup
				for g := range goroutines {
					wg.Go(func() {
						for i := g * images; i < (g+1)*images; i++ {
							p := cMake(size)
							fillBytes(unsafe.Slice((*byte)(p), size)[unsafe.Sizeof(size):])
							if err := album[i].Own(pool, p, size); err != nil {
								panic(err)
							}
						}
					})
				}
				wg.Wait()
				high := m.read() - m.start
				left := int64(0)
				for i := range album {
					if i%10 == 0 {
						left += size
						continue
					}
					album[i].Close()
				}
				most := left + left/3 + 16*mib
				testwait.Until(t, "free memory is given back", func() bool { return ReadStats().Trims > 0 && m.read()-m.start <= most })
				o = m.outcome()
				if high < images*goroutines*size {
					o.Wrong = append(o.Wrong, fmt.Sprintf("%d bytes were resident", high))
				}
				for i := 0; i < len(album); i += 10 {
					album[i].Close()
				}
				Stop()
				return o
			})
			if o.Stats.Trims == 0 || o.Stats.Trimmed < 50*mib {
				t.Errorf("malloc gave back %d bytes in %d times", o.Stats.Trimmed, o.Stats.Trims)
			}
		})
	}
}
