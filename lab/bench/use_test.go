//go:build cgo && unix

package bench

import (
	"runtime"
	"testing"
	"unsafe"

	"github.com/cheapgo/cheap/internal/cside"
	"github.com/cheapgo/cheap/lab/internal/lifetime"
	"github.com/cheapgo/cheap/libc"
	"github.com/cheapgo/cheap/own"
)

// BenchmarkUse reads a byte of a block through its owner: in Use, which counts; in Use
// of a pool that is Unshared; by Resource and KeepAlive; and through a pointer
// without protection.
func BenchmarkUse(b *testing.B) {
	var sum byte
	read := func(p unsafe.Pointer) { sum += *(*byte)(p) }
	for _, unshared := range []bool{false, true} {
		p := own.NewPool(own.Options{
			Name:     "bench.block",
			Release:  libc.Destructor(cside.DestroyBlock, libc.NoCallback),
			Unshared: unshared,
		})
		o := lifetime.NewOwned(p)
		defer o.Owner.Close()
		if unshared {
			b.Run("by=use-unshared", func(b *testing.B) {
				for b.Loop() {
					o.Owner.Use(read)
				}
			})
			continue
		}
		b.Run("by=use", func(b *testing.B) {
			for b.Loop() {
				o.Owner.Use(read)
			}
		})
		b.Run("by=use-parallel", func(b *testing.B) {
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					o.Owner.Use(func(p unsafe.Pointer) { _ = *(*byte)(p) })
				}
			})
		})
		b.Run("by=resource", func(b *testing.B) {
			for b.Loop() {
				read(o.Owner.Resource())
				runtime.KeepAlive(o)
			}
		})
		b.Run("by=pointer", func(b *testing.B) {
			q := o.Owner.Resource()
			for b.Loop() {
				read(q)
			}
			runtime.KeepAlive(o)
		})
	}
}
