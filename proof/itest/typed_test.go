package itest

import (
	"slices"
	"testing"
	"unsafe"

	"pgregory.net/rapid"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/internal/test/shadow"
)

// TestSliceModel does to a slice of cheap's what it does to one of Go's.
func TestSliceModel(t *testing.T) {
	t.Run("elem=byte", func(t *testing.T) { sliceModel(t, rapid.Byte()) })
	t.Run("elem=int64", func(t *testing.T) { sliceModel(t, rapid.Int64()) })
	t.Run("elem=struct{}", func(t *testing.T) { sliceModel(t, rapid.Just(struct{}{})) })
	t.Run("elem=[3]uint16", func(t *testing.T) {
		sliceModel(t, rapid.Custom(func(t *rapid.T) [3]uint16 { return [3]uint16{rapid.Uint16().Draw(t, "elem"), 1, 2} }))
	})
}

func sliceModel[T comparable](t *testing.T, elem *rapid.Generator[T]) {
	rapid.Check(t, func(t *rapid.T) {
		h := newHeap(t)
		var a cheap.Allocator = h
		if rapid.Bool().Draw(t, "arena") {
			a = cheap.NewArena(h, 0)
		}
		var got, want []T
		add := func(elems []T) {
			was := slices.Clone(elems) // they may lie in what is freed
			grown, err := cheap.Append(a, got, elems...)
			if err != nil {
				t.Fatal(err)
			}
			got = grown
			want = append(want, was...)
		}
		t.Repeat(map[string]func(*rapid.T){
			"": func(t *rapid.T) {
				if !slices.Equal(got, want) {
					t.Fatalf("%v, want %v", got, want)
				}
				if s := h.Stats(); a == h && (s.Blocks == 1) != (got != nil) {
					t.Fatalf("%+v, there is one slice", s)
				}
			},
			"Append": func(t *rapid.T) { add(rapid.SliceOfN(elem, 0, 100).Draw(t, "elems")) },
			"AppendOwn": func(t *rapid.T) { // elements that lie in what grows
				if len(got) < 2000 {
					add(got[len(got)/2:])
				}
			},
			"Truncate": func(t *rapid.T) {
				n := rapid.IntRange(0, len(got)).Draw(t, "n")
				got, want = got[:n], want[:n]
			},
			"MakeSlice": func(t *rapid.T) {
				cheap.FreeSlice(a, got)
				n := rapid.OneOf(rapid.IntRange(0, 50), rapid.IntRange(0, 20_000)).Draw(t, "len")
				more := rapid.IntRange(0, 50).Draw(t, "cap")
				got, want = cheap.MakeSlice[T](a, n, n+more), make([]T, n)
				if got == nil || cap(got) != n+more {
					t.Fatalf("capacity %d, want %d", cap(got), n+more)
				}
				var zero T
				for i, e := range got[:cap(got)] {
					if e != zero {
						t.Fatalf("element %d of a new slice is %v", i, e)
					}
				}
			},
			"FreeSlice": func(t *rapid.T) {
				cheap.FreeSlice(a, got)
				got, want = nil, nil
			},
			"New": func(t *rapid.T) {
				p := cheap.New[T](a)
				var zero T
				if *p != zero {
					t.Fatalf("New gives %v", *p)
				}
				*p = elem.Draw(t, "elem")
				a.Free(unsafe.Pointer(p))
			},
			"Dirt": func(t *rapid.T) { // what is taken next is not zero by accident
				n := sizes.Draw(t, "size")
				p := a.Malloc(n)
				shadow.Fill(p, n, 1)
				a.Free(p)
			},
		})
		cheap.FreeSlice(a, got)
	})
}
