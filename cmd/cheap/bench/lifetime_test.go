//go:build cgo && unix

package bench

import (
	"runtime"
	"testing"
	"time"
	"unsafe"

	"github.com/cheapgo/cheap/cmd/cheap/internal/cside"
)

// A lifetime is a way for Go objects to own blocks of C.
type lifetime struct {
	// run makes n objects with a block each, one after the other, and drops
	// them. The objects are on the Go heap, as those of a binding are.
	run work

	// ahead returns how many blocks there are that no object owns yet. Nil
	// says none.
	ahead func() int

	// left and peak are for objects whose memory is not C's: how many blocks
	// there are, and the most bytes that there were since peak was called last.
	left func() int
	peak func() int64
}

// An owning sets a lifetime up, and cleans up with the test.
type owning func(testing.TB) *lifetime

// A plain object has room for its pointer and a word of the binding's own. All
// objects have this size, whatever they are made of: what a cleanup costs
// depends on it.
type plain struct {
	block unsafe.Pointer
	_     uintptr
}

// plainSink makes objects escape.
var plainSink *plain

// manually destroys the block as soon as it is made.
func manually(testing.TB) *lifetime {
	return &lifetime{run: func(n int) {
		for range n {
			o := &plain{block: cside.CreateBlock()}
			plainSink = o
			cside.Destroy(o.block)
		}
	}}
}

// withCleanup forgets objects that have a cleanup each.
func withCleanup(testing.TB) *lifetime {
	return &lifetime{run: func(n int) {
		for range n {
			plainSink = newWithCleanup()
		}
	}}
}

func newWithCleanup() *plain {
	o := &plain{block: cside.CreateBlock()}
	runtime.AddCleanup(o, cside.Destroy, o.block)
	return o
}

// withFinalizer forgets objects that have a finalizer each.
func withFinalizer(testing.TB) *lifetime {
	return &lifetime{run: func(n int) {
		for range n {
			o := &plain{block: cside.CreateBlock()}
			runtime.SetFinalizer(o, finalize)
			plainSink = o
		}
	}}
}

// byGo forgets arrays of Go's, as large as a block.
func byGo(testing.TB) *lifetime {
	return &lifetime{
		run: func(n int) {
			for range n {
				goSink = new([cside.BlockSize]byte)
			}
		},
		left: func() int { return 0 },
		peak: func() int64 { return 0 },
	}
}

// goSink makes arrays escape.
var goSink *[cside.BlockSize]byte

// inSixteens destroys blocks as soon as they are made, sixteen for an object.
// What the object is like does not matter here, so there is none.
func inSixteens(testing.TB) *lifetime {
	return &lifetime{run: func(n int) {
		for range n {
			cside.Destroy(cside.CreateBlock())
		}
	}}
}

func finalize(o *plain) { cside.Destroy(o.block) }

// inBulk makes as many blocks as a batch has owners, each with an object, and
// destroys them in one cgo call. Nobody can do without an owner's work and
// destroy late at a lower price.
func inBulk(testing.TB) *lifetime {
	var batch [256]uintptr
	return &lifetime{run: func(n int) {
		for n > 0 {
			part := batch[:min(n, len(batch))]
			for i := range part {
				o := &plain{block: cside.CreateBlock()}
				plainSink = o
				part[i] = uintptr(o.block)
			}
			cside.DestroyAll(part)
			n -= len(part)
		}
	}}
}

// A cost is what a round took.
type cost struct {
	wall, cpu time.Duration
	peak      int64 // most bytes of C that were live at once
}

// round does n lifetimes, and is over when C has counted every destruction,
// the collections that it takes included. Before the clock starts, there is
// nothing left of the round before.
func (l *lifetime) round(tb testing.TB, n int) cost {
	l.settle(tb)
	runtime.GC() // the first one swept what the last round left, this one starts from there
	cside.ResetPeak()
	if l.peak != nil {
		l.peak()
	}
	before := cside.Count()
	cpu, start := cside.CPUTime(), time.Now()
	l.run(n)
	l.settle(tb)
	c := cost{wall: time.Since(start), cpu: cside.CPUTime() - cpu}
	if l.left != nil {
		c.peak = l.peak()
		return c // nothing is left: settle has seen it
	}
	after := cside.Count()
	c.peak = after.Peak
	l.check(tb, n, before, after)
	return c
}

// check fails unless C has counted n lifetimes.
func (l *lifetime) check(tb testing.TB, n int, before, after cside.Counts) {
	created, destroyed := after.Created-before.Created, after.Destroyed-before.Destroyed
	if l.ahead == nil && (created != uint64(n) || destroyed != uint64(n)) || destroyed < uint64(n) {
		tb.Errorf("C has made %d blocks and destroyed %d, for %d objects", created, destroyed, n)
	}
}

// settle collects until there is no block left that an object owns.
func (l *lifetime) settle(tb testing.TB) {
	tb.Helper()
	plainSink, goSink = nil, nil
	const step = time.Millisecond // without progress for so long, collect again
	for begin := time.Now(); ; {
		runtime.GC()
		start := time.Now()
		for last, progress := uint64(0), start; time.Since(progress) < step; {
			now := cside.Count()
			// Twice, for a batch that is sealed between two counts of a pool's
			// is in neither, or in both.
			if l.owned(now) == 0 && l.owned(cside.Count()) == 0 {
				return
			}
			if now.Destroyed != last {
				last, progress = now.Destroyed, time.Now()
			}
			// A look costs others time, and a late one makes the round
			// longer, both by little.
			time.Sleep(min(max(time.Since(start)/16, 20*time.Microsecond), step/2))
		}
		if time.Since(begin) > time.Minute {
			tb.Fatalf("after %v of collections %d blocks are still there", time.Since(begin), l.owned(cside.Count()))
		}
	}
}

// owned returns how many blocks objects own.
func (l *lifetime) owned(c cside.Counts) int {
	if l.left != nil {
		return l.left()
	}
	live := int(c.Created - c.Destroyed)
	if l.ahead != nil {
		live -= l.ahead()
	}
	return live
}

// BenchmarkForget makes objects and drops them. The time is that of an object,
// until C has destroyed the last block; next to it stand the process's CPU time
// and the most bytes of C that were live at once.
func BenchmarkForget(b *testing.B) {
	for _, o := range ownings {
		b.Run("owner="+o.name, func(b *testing.B) {
			l := o.open(b)
			b.ResetTimer()
			c := l.round(b, b.N)
			b.ReportMetric(float64(c.wall.Nanoseconds())/float64(b.N), "ns/op") // without the quiet before
			b.ReportMetric(float64(c.cpu.Nanoseconds())/float64(b.N), "cpu-ns/op")
			b.ReportMetric(float64(c.peak)/(1<<20), "peak-MiB")
		})
	}
}
