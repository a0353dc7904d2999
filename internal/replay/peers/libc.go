//go:build cgo

package peers

import "github.com/cheapgo/cheap/libc"

// clib lists the ways to the C library's malloc.
var clib = []Info{
	{
		Name:  "libc",
		About: "the malloc of the C library, called from Go through cgo",
		Open:  func(int) (Peer, error) { return viaCgo{}, nil },
	},
	nativeInfo,
}

//go:generate go run github.com/cheapgo/cheap/internal/replay/expand -o libc_loop.go ../loop.tmpl build=cgo package=peers type=viaCgo alloc=p.alloc

// viaCgo replays on the C library's malloc with a cgo call for each operation.
type viaCgo struct{ alloc libc.Allocator }

func (v viaCgo) Trim() error {
	v.alloc.Trim()
	return nil
}

func (v viaCgo) Close() error { return nil }
