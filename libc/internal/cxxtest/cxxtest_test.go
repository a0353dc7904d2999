//go:build cgo && cxx

package cxxtest_test

import (
	"runtime"
	"sync"
	"testing"
	"unsafe"

	"github.com/cheapgo/cheap/internal/test/testcall"
	"github.com/cheapgo/cheap/internal/test/testwait"
	"github.com/cheapgo/cheap/libc"
	"github.com/cheapgo/cheap/libc/internal/cxxtest"
	"github.com/cheapgo/cheap/own"
)

// counts are the counts of C++ at a moment.
type counts struct{ alive, destroyed, deleted int }

func now() counts {
	return counts{cxxtest.Alive(), cxxtest.Destroyed(), cxxtest.Deleted()}
}

// since returns how the counts have changed.
func (c counts) since() counts {
	n := now()
	return counts{n.alive - c.alive, n.destroyed - c.destroyed, n.deleted - c.deleted}
}

// TestKinds makes resources of each kind, and destroys them by a function of libc: one,
// some, and many in one call.
func TestKinds(t *testing.T) {
	for _, k := range cxxtest.Kinds() {
		t.Run(k.Name, func(t *testing.T) {
			for name, destroy := range map[string]func(any, []uintptr) error{
				"may call back": libc.Destructor(k.Destroy),
				"NoCallback":    libc.Destructor(k.Destroy, libc.NoCallback),
			} {
				for _, n := range []int{1, 2, 1000} {
					before, blocks := now(), cxxtest.Blocks()
					var resources []uintptr
					sum := 0
					for i := range n {
						p := k.Make(i + 5)
						if got := k.Number(p); got != i+5 {
							t.Fatalf("the resource has number %d, want %d", got, i+5)
						}
						resources = append(resources, uintptr(p))
						sum += i + 5
					}
					if got, want := before.since(), (counts{n, 0, 0}); got != want {
						t.Fatalf("%s, %d are made: %+v, want %+v", name, n, got, want)
					}
					testcall.Want(t, destroy(nil, resources))
					if got, want := before.since(), (counts{0, sum, n * k.Deleters}); got != want {
						t.Errorf("%s, %d are destroyed: %+v, want %+v", name, n, got, want)
					}
					if got := cxxtest.Blocks(); got != blocks {
						t.Errorf("%s, %d are destroyed, and %d blocks are not freed", name, n, got-blocks)
					}
				}
			}
		})
	}
}

// A thing is what a binding's type would be.
type thing struct{ h own.Handle[unsafe.Pointer] }

// TestForgotten has the collector release resources of each kind, all of them made and
// dropped by several goroutines. Every other one is closed.
func TestForgotten(t *testing.T) {
	for _, k := range cxxtest.Kinds() {
		t.Run(k.Name, func(t *testing.T) {
			pool := own.NewPool(own.Options{Name: cxxtest.Pool, Release: libc.Destructor(k.Destroy, libc.NoCallback), Size: 64})
			before := now()
			const goroutines, each = 4, 1000
			var all sync.WaitGroup
			for range goroutines {
				all.Go(func() {
					for i := range each {
						m := new(thing)
						if err := m.h.Own(pool, k.Make(i), 0); err != nil {
							t.Error(err)
							return
						}
						m.h.Use(func(p unsafe.Pointer) {
							if n := k.Number(p); n != i {
								t.Errorf("number %d, want %d", n, i)
							}
						})
						if i%2 == 0 {
							m.h.Close()
						}
					}
				})
			}
			all.Wait()
			testwait.Until(t, "all are destroyed", func() bool {
				runtime.GC()
				testcall.Must(t, own.Flush(t.Context()))
				return cxxtest.Alive() <= before.alive
			})
			want := counts{0, goroutines * each * (each - 1) / 2, goroutines * each * k.Deleters}
			if got := before.since(); got != want {
				t.Errorf("%+v, want %+v", got, want)
			}
			if got := pool.Stats(); got.Collected != goroutines*each/2 {
				t.Errorf("%+v", got)
			}
		})
	}
}

// TestShared destroys a resource whose object C++ keeps.
func TestShared(t *testing.T) {
	before := now()
	p, owners := cxxtest.Share(9)
	if owners != 2 {
		t.Errorf("%d owners of the object, want 2", owners)
	}
	libc.Destructor(cxxtest.DestroyShared)(nil, []uintptr{uintptr(p)})
	if got := before.since(); got != (counts{1, 0, 0}) {
		t.Errorf("the object of C++ is gone with the resource: %+v", got)
	}
	cxxtest.Unshare()
	if got := before.since(); got != (counts{0, 9, 0}) {
		t.Errorf("the object is not gone with its last owner: %+v", got)
	}
}

// TestEmpty makes resources of pointers to nothing.
func TestEmpty(t *testing.T) {
	for i, p := range cxxtest.Empties() {
		if p != nil {
			t.Errorf("resource %d of nothing is %p", i, p)
		}
	}
}

// TestNoMemory makes resources when there is no memory for a copy of their pointer. What
// needs none is made.
func TestNoMemory(t *testing.T) {
	refused := 0
	for _, k := range cxxtest.Kinds() {
		before, blocks := now(), cxxtest.Blocks()
		var p unsafe.Pointer
		cxxtest.Refuse(func() { p = k.Make(3) })
		want := counts{0, 3, k.Deleters}
		if p != nil {
			libc.Destructor(k.Destroy)(nil, []uintptr{uintptr(p)})
		} else {
			refused++
		}
		if got := before.since(); got != want || cxxtest.Blocks() != blocks {
			t.Errorf("%s: %+v, want %+v, and %d blocks are not freed", k.Name, got, want, cxxtest.Blocks()-blocks)
		}
	}
	if want := 7; refused != want {
		t.Errorf("%d kinds are refused, want %d: four deleters, three of shared_ptr", refused, want)
	}
}

// BenchmarkDestroy compares delete with cheap::destroy, of NULL, which is the cost of the
// call: 256 in one cgo call.
func BenchmarkDestroy(b *testing.B) {
	for _, c := range []struct {
		name string
		fn   unsafe.Pointer
	}{{"delete", cxxtest.DeleteSmall}, {"destroy", cxxtest.DestroySmall}} {
		destroy := libc.Destructor(c.fn, libc.NoCallback)
		resources := make([]uintptr, 256)
		b.Run("by="+c.name, func(b *testing.B) {
			for b.Loop() {
				destroy(nil, resources)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(resources)), "ns/resource")
		})
	}
}
