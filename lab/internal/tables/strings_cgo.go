//go:build cgo && unix

package tables

import (
	"fmt"
	"runtime"
	"unsafe"

	"github.com/CannibalVox/cgoalloc"
	"github.com/CannibalVox/cgoparam"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/internal/test/cside"
	"github.com/cheapgo/cheap/lab/internal/loops"
	"github.com/cheapgo/cheap/lab/internal/measure"
)

// passes are the ways to pass a text to C. Open prepares one; run passes the text n
// times.
var passes = []struct {
	name string
	open func(text string) (run func(n int), done func(), err error)
}{
	{"cstring", passCString},
	{"cgoalloc", passCgoalloc},
	{"cgoparam", passCgoparam},
	{"arena", passArena},
	{"go-bytes", passBytes},
}

func stringRows() []measure.Row {
	var rows []measure.Row
	for _, size := range []int{20, 1024} {
		for _, p := range passes {
			row := measure.Row{
				Name:  fmt.Sprintf("%s-%d", p.name, size),
				Group: fmt.Sprint(size),
				Open: func(int) (measure.Work, error) {
					run, done, err := p.open(cside.Text(size))
					if err != nil {
						return measure.Work{}, err
					}
					w := counted(noError(run), taken, 1)
					w.Close = done
					return w, nil
				},
			}
			if p.name != "cstring" {
				row.Versus = fmt.Sprintf("cstring-%d", size)
			}
			rows = append(rows, row)
		}
	}
	return rows
}

func passCString(text string) (func(int), func(), error) {
	return func(n int) {
		for range n {
			cside.TakeCString(text)
		}
	}, nil, nil
}

func passCgoalloc(text string) (func(int), func(), error) {
	alloc, err := layered()
	if err != nil {
		return nil, nil, err
	}
	return func(n int) {
		for range n {
			p := unsafe.Pointer(cgoalloc.CString(alloc, text))
			cside.Take(p, len(text))
			alloc.Free(p)
		}
	}, func() { alloc.Destroy() }, nil // no block is live
}

// layered returns an allocator of cgoalloc as a program would set it up for strings
// and other arguments: fixed blocks of 64 and of 2,048 bytes, and malloc above that.
func layered() (cgoalloc.Allocator, error) {
	malloc := &cgoalloc.DefaultAllocator{}
	large, err := cgoalloc.CreateFixedBlockAllocator(malloc, 64<<10, 2048, 8)
	if err != nil {
		return nil, err
	}
	small, err := cgoalloc.CreateFixedBlockAllocator(malloc, 4096, 64, 8)
	if err != nil {
		return nil, err
	}
	return cgoalloc.CreateFallbackAllocator(small, cgoalloc.CreateFallbackAllocator(large, malloc)), nil
}

func passCgoparam(text string) (func(int), func(), error) {
	return func(n int) {
		for range n {
			alloc := cgoparam.GetAlloc()
			cside.Take(alloc.CString(text), len(text))
			cgoparam.ReturnAlloc(alloc)
		}
	}, nil, nil
}

func passArena(text string) (func(int), func(), error) {
	return func(n int) {
		for range n {
			arena := cheap.GetArena()
			cside.Take(cheap.CString(arena, text), len(text))
			arena.Put()
		}
	}, nil, nil
}

func passBytes(text string) (func(int), func(), error) {
	b := []byte(text)
	return func(n int) {
		for range n {
			cside.Take(unsafe.Pointer(unsafe.SliceData(b)), len(b))
		}
	}, nil, nil
}

// cgoBatches are the source's benchmark on C's malloc, on cgoalloc and on
// cgoparam.
func cgoBatches() []measure.Row {
	const name = "four-parameters-"
	return []measure.Row{
		{
			Name:      name + "malloc",
			Published: figure(sourceCgoparam, 374.9),
			Open: func(int) (measure.Work, error) {
				return counted(noError(func(n int) { loops.Batch(&cgoalloc.DefaultAllocator{}, n) }), runtime.NumCgoCall, 8), nil
			},
		},
		{
			Name:   name + "cgoalloc",
			Versus: name + "malloc",
			Open: func(int) (measure.Work, error) {
				alloc, err := layered()
				if err != nil {
					return measure.Work{}, err
				}
				return measure.Work{
					Run:   func(n int) { loops.Batch(alloc, n) },
					Close: func() { alloc.Destroy() }, // no block is live
				}, nil
			},
		},
		{
			Name:      name + "cgoparam",
			Published: figure(sourceCgoparam, 19.74),
			Versus:    name + "malloc",
			Open:      func(int) (measure.Work, error) { return measure.Work{Run: loops.BatchCgoparam}, nil },
		},
	}
}

func taken() int64 { return int64(cside.Taken()) }
