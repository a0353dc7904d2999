package own

import (
	"context"
	"runtime"
	"testing"
	"unsafe"

	"github.com/cheapgo/cheap/internal/mem/osmem"
	"github.com/cheapgo/cheap/internal/mem/race"
	"github.com/cheapgo/cheap/internal/test/testcall"
	"github.com/cheapgo/cheap/internal/test/testenv"
)

// mallocs returns how many objects f allocates in Go, and how many bytes.
func mallocs(f func()) (objects, bytes uint64) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.Mallocs - before.Mallocs, after.TotalAlloc - before.TotalAlloc
}

// TestOwnAllocatesItsBatchShareOnly owns many with Handles that exist already, or
// that lie on the stack. It counts allocations of the whole process.
func TestOwnAllocatesItsBatchShareOnly(t *testing.T) {
	testenv.Skip(t, "asan", "a conversion to unsafe.Pointer makes its variable escape, and each Go object has a red zone")
	const n = 20_000
	var resource [1]byte
	owners := make([]object, n)
	release := func(_ any, _ []uintptr) error { return nil }
	construct := func(r []uintptr) (int, error) { return len(r), nil }
	own := func(t *testing.T, p *Pool, o *object) {
		testcall.Must(t, o.Own(p, unsafe.Pointer(&resource), 100))
	}
	for _, row := range []struct {
		name  string
		o     Options
		f     func(t *testing.T, p *Pool)
		bytes uint64 // for each owner
	}{
		{"forget", Options{}, func(t *testing.T, p *Pool) {
			for i := range owners {
				own(t, p, &owners[i])
			}
		}, 26},
		{"close", Options{}, func(t *testing.T, p *Pool) {
			for i := range owners {
				own(t, p, &owners[i])
				owners[i].Close()
			}
		}, 26},
		{"stack", Options{}, func(t *testing.T, p *Pool) {
			for range n {
				var m struct {
					object
					large [100]int
				}
				testcall.Must(t, m.Own(p, unsafe.Pointer(&resource), 100))
				m.Use(func(unsafe.Pointer) { m.large[5]++ })
				m.Close()
			}
		}, 26},
		{"Number", Options{Numbers: true}, func(t *testing.T, p *Pool) {
			for i := range owners {
				testcall.Must(t, p.own(&owners[i].owner, 1, 100))
			}
		}, 26},
		{"With", Options{}, func(t *testing.T, p *Pool) {
			for i := range owners {
				room, err := p.Reserve(context.Background(), 100)
				testcall.Must(t, err)
				w := []With{{Size: 100}, {Room: room}}[i%2]
				testcall.Must(t, owners[i].OwnWith(p, unsafe.Pointer(&resource), w))
			}
		}, 26},
		{"Make", Options{Construct: construct, Size: 100}, func(t *testing.T, p *Pool) {
			for i := range owners {
				testcall.Must(t, owners[i].Make(p))
			}
		}, 36},
		{"told", Options{OnCollect: func(Collected) {}}, func(t *testing.T, p *Pool) {
			for i := range owners {
				own(t, p, &owners[i])
			}
		}, 26},
		{"Use", Options{}, func(t *testing.T, p *Pool) {
			own(t, p, &owners[0])
			uses := 0
			for range n {
				owners[0].Use(func(unsafe.Pointer) { uses++ })
				owners[0].TryUse(func(unsafe.Pointer) error { uses++; return nil })
			}
		}, 1},
	} {
		t.Run(row.name, func(t *testing.T) {
			row.o.Release = release
			// What another goroutine allocates meanwhile is counted, too. It is not there each
			// time.
			var objects, bytes uint64
			for range 3 {
				clear(owners)
				p := NewPool(row.o)
				objects, bytes = mallocs(func() { row.f(t, p) })
				clear(owners)
				p.CloseWait(patient(t))
				// The bytes are compared without the race detector, which makes objects larger,
				// and where pages are not in Go memory. What package gcwatch needs
				// once for a collection is not a share of owners.
				const once = 32 << 10
				fewBytes := race.Build || osmem.GoBacked || bytes <= row.bytes*n+once
				// The objects are mostly sentinels, one for four owners of a new pool.
				if objects <= n/3 && fewBytes {
					return
				}
			}
			t.Errorf("%d objects and %d bytes allocated for %d owners", objects, bytes, n)
		})
	}
}
