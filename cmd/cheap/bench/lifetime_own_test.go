//go:build cgo && unix

package bench

import (
	"runtime"
	"testing"
	"time"
	"unsafe"

	"github.com/cheapgo/cheap/cmd/cheap/internal/cside"
	"github.com/cheapgo/cheap/libc"
	"github.com/cheapgo/cheap/own"
)

// ownings are the ways to own blocks of C that are compared.
var ownings = []struct {
	name string
	open owning
}{
	{"manual", manually},
	{"bulk", inBulk},
	{"addcleanup", withCleanup},
	{"setfinalizer", withFinalizer},
	{"own", byOwner},
	{"make", byMake},
	{"close", byClose},
	{"memory", byMemory},
	{"go", byGo},
	{"group", byGroup},
	{"sixteens", inSixteens},
}

// An owned object is as large as a plain one.
type owned struct{ own.Owner }

var _ = [1]struct{}{}[unsafe.Sizeof(owned{})-unsafe.Sizeof(plain{})]

// ownedSink makes objects escape.
var ownedSink *owned

// newPool returns a pool of blocks, which is destroyed with the test.
func newPool(tb testing.TB) *own.Pool {
	p := own.NewPool(own.Options{
		Name:       "bench.block",
		Destructor: libc.Destructor(cside.DestroyBlock),
		NoCallback: true,
		Construct:  libc.Constructor(cside.ConstructBlock, nil),
		Size:       cside.BlockSize,
	})
	tb.Cleanup(func() {
		ownedSink = nil // what is left of a benchmark is not what this is about
		runtime.GC()
		p.Destroy(time.Minute)
		if c := cside.Count(); c.Created != c.Destroyed {
			tb.Errorf("C has made %d blocks and destroyed %d", c.Created, c.Destroyed)
		}
	})
	return p
}

func newOwned(tb testing.TB, p *own.Pool) *owned {
	o := new(owned)
	if err := p.Own(&o.Owner, cside.CreateBlock(), cside.BlockSize); err != nil {
		tb.Fatal(err)
	}
	return o
}

// byOwner forgets owners.
func byOwner(tb testing.TB) *lifetime {
	p := newPool(tb)
	return &lifetime{run: func(n int) {
		for range n {
			ownedSink = newOwned(tb, p)
		}
		ownedSink = nil
	}}
}

// byMake forgets owners of blocks that were made in advance.
func byMake(tb testing.TB) *lifetime {
	p := newPool(tb)
	return &lifetime{
		run: func(n int) {
			for range n {
				o := new(owned)
				if err := p.Make(&o.Owner); err != nil {
					tb.Fatal(err)
				}
				ownedSink = o
			}
			ownedSink = nil
		},
		ahead: func() int { return int(p.Stats().Made) },
	}
}

// byClose closes owners.
func byClose(tb testing.TB) *lifetime {
	p := newPool(tb)
	return &lifetime{run: func(n int) {
		for range n {
			o := newOwned(tb, p)
			ownedSink = o
			o.Close()
		}
	}}
}

// BenchmarkForgetParallel makes objects and drops them on every P. Run it with
// -cpu=1,2. The time is that of making; release goes on beside it, and what is
// left at the end is not waited for.
func BenchmarkForgetParallel(b *testing.B) {
	var p *own.Pool
	for _, o := range []struct {
		owner string
		make  func() any
	}{
		{"manual", func() any {
			o := &plain{block: cside.CreateBlock()}
			cside.Destroy(o.block)
			return o
		}},
		{"addcleanup", func() any { return newWithCleanup() }},
		{"own", func() any { return newOwned(b, p) }},
	} {
		b.Run("owner="+o.owner, func(b *testing.B) {
			p = newPool(b)
			b.ResetTimer()
			b.RunParallel(func(pb *testing.PB) {
				sink := new([16]any) // on lines of its own
				for pb.Next() {
					sink[8] = o.make()
				}
			})
			b.StopTimer()
			new(lifetime).settle(b)
		})
	}
}
