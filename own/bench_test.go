package own

import (
	"context"
	"runtime"
	"sync"
	"testing"
	"time"
	"unsafe"
)

var sink *thing

// benchPool returns a pool that releases nothing.
func benchPool() *Pool {
	return NewPool(Options{Release: func(_ any, _ []uintptr) error { return nil }})
}

func BenchmarkOwn(b *testing.B) {
	var x byte
	b.Run("end=forget", func(b *testing.B) {
		p := benchPool()
		for b.Loop() {
			m := &thing{}
			m.Own(p, unsafe.Pointer(&x), 100)
			sink = m
		}
	})
	b.Run("end=close", func(b *testing.B) {
		p := benchPool()
		for b.Loop() {
			m := &thing{}
			m.Own(p, unsafe.Pointer(&x), 100)
			sink = m
			m.Close()
		}
	})
	b.Run("end=none", func(b *testing.B) { // the object alone
		for b.Loop() {
			sink = &thing{}
		}
	})
}

// BenchmarkWays makes an owner in each way and closes it.
func BenchmarkWays(b *testing.B) {
	var x byte
	p := NewPool(Options{Release: released(func([]uintptr) {})})
	numbers := NewPool(Options{Release: released(func([]uintptr) {}), Numbers: true})
	ctx := context.Background()
	b.Run("by=handle", func(b *testing.B) {
		for b.Loop() {
			m := new(Handle[*byte])
			m.Own(p, &x, 100)
			sinkHandle = m
			m.Close()
		}
	})
	b.Run("by=number", func(b *testing.B) {
		for b.Loop() {
			m := new(Number[int])
			m.Own(numbers, 7, 100)
			sinkNumber = m
			m.Close()
		}
	})
	b.Run("by=room", func(b *testing.B) {
		for b.Loop() {
			m := new(object)
			room, _ := p.Reserve(ctx, 100)
			m.OwnWith(p, unsafe.Pointer(&x), With{Room: room})
			sinkOwner = m
			m.Close()
		}
	})
}

var (
	sinkOwner  *object
	sinkHandle *Handle[*byte]
	sinkNumber *Number[int]
)

func BenchmarkMake(b *testing.B) {
	p := NewPool(Options{
		Release:   func(_ any, _ []uintptr) error { return nil },
		Construct: func(r []uintptr) (int, error) { return len(r), nil },
	})
	for b.Loop() {
		m := &thing{}
		m.Make(p)
		sink = m
	}
}

func BenchmarkUse(b *testing.B) {
	for _, unshared := range []bool{false, true} {
		name := "count=yes"
		if unshared {
			name = "count=no"
		}
		b.Run(name, func(b *testing.B) {
			p := NewPool(Options{Release: func(_ any, _ []uintptr) error { return nil }, Unshared: unshared})
			var x byte
			m := &thing{}
			m.Own(p, unsafe.Pointer(&x), 100)
			n := 0
			for b.Loop() {
				m.Use(func(unsafe.Pointer) { n++ })
			}
		})
	}
	// What Use is compared with: the same without a count, and without protection.
	p := NewPool(Options{Release: func(_ any, _ []uintptr) error { return nil }})
	x := new(byte)
	m := &thing{}
	m.Own(p, unsafe.Pointer(x), 100)
	b.Run("count=yes/parallel", func(b *testing.B) {
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				m.Use(func(q unsafe.Pointer) { _ = *(*byte)(q) })
			}
		})
	})
	var sum byte
	b.Run("resource", func(b *testing.B) {
		for b.Loop() {
			sum += *(*byte)(m.Pointer())
			runtime.KeepAlive(m)
		}
	})
	b.Run("pointer", func(b *testing.B) {
		q := m.Pointer()
		for b.Loop() {
			sum += *(*byte)(q)
		}
		runtime.KeepAlive(m)
	})
}

// BenchmarkDrain drains a million closed entries. It reports the time for each,
// and the bytes of the Go heap that are left for each after a collection.
func BenchmarkDrain(b *testing.B) {
	const n = 1_000_000
	released := 0
	p := NewPool(Options{Run: new(Queue).Run(), Release: func(_ any, r []uintptr) error { released += len(r); return nil }})
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	before := m.HeapAlloc
	var took time.Duration
	for range b.N {
		func() {
			owners := make([]object, n)
			for i := range owners {
				p.own(&owners[i].owner, 1, 16)
			}
			for i := range owners {
				owners[i].Close()
			}
		}()
		begin := time.Now()
		if got := drainPool(p, 0); got != n {
			b.Fatal(got)
		}
		took += time.Since(begin)
	}
	for range 3 {
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	b.ReportMetric(float64(took.Nanoseconds())/float64(b.N)/n, "ns/entry")
	b.ReportMetric(max(float64(m.HeapAlloc)-float64(before), 0), "left-B")
	b.ReportMetric(0, "ns/op")
	p.CloseWait(waiting(0))
}

// BenchmarkCloseSealed closes owners that have outlived a collection. Each Close counts in
// words that all Ps share: with -cpu=1,2 the time of one P and of two tells what they cost.
func BenchmarkCloseSealed(b *testing.B) {
	const each = 1 << 16
	procs := runtime.GOMAXPROCS(0)
	p := benchPool()
	owners := make([]object, procs*each)
	var x byte
	var took time.Duration
	for range b.N {
		for i := range owners {
			owners[i] = object{}
			owners[i].Own(p, unsafe.Pointer(&x), 100)
		}
		p.intake.Retire()
		runtime.GC()
		begin := time.Now()
		var all sync.WaitGroup
		for g := range procs {
			all.Go(func() {
				for i := range owners[g*each : (g+1)*each] {
					owners[g*each+i].Close()
				}
			})
		}
		all.Wait()
		took += time.Since(begin)
	}
	b.ReportMetric(float64(took.Nanoseconds())/float64(b.N)/each, "ns/Close")
	b.ReportMetric(0, "ns/op")
}
