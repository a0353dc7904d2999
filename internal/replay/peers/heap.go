package peers

import "github.com/cheapgo/cheap"

// ours lists the allocators of package cheap.
var ours = []Info{
	{
		Name:  "heap",
		About: "cheap.Heap, for any number of goroutines",
		Align: 16,
		Open:  openHeap,
	},
	localInfo,
}

//go:generate go run github.com/cheapgo/cheap/internal/replay/expand -o heap_loop.go ../loop.tmpl package=peers type=heap alloc=p.heap

// heap replays on a cheap.Heap.
type heap struct{ heap *cheap.Heap }

func openHeap(int) (Peer, error) {
	h, err := cheap.NewHeap(cheap.HeapOptions{})
	if err != nil {
		return nil, err
	}
	return heap{h}, nil
}

func (p heap) Trim() error {
	p.heap.Trim()
	return nil
}

func (p heap) Close() error { return p.heap.Destroy() }
