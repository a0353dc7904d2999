package peers

import "github.com/cheapgo/cheap"

var localInfo = Info{
	Name:  "local",
	About: "cheap.Local, the cache of a heap that one goroutine owns",
	Align: 16,
	Open:  openLocal,
}

//go:generate go run github.com/cheapgo/cheap/internal/replay/expand -o local_loop.go ../loop.tmpl package=peers type=*local alloc=p.local

// local replays on a cheap.Local of a separate heap.
type local struct {
	heap  *cheap.Heap
	local *cheap.Local
}

func openLocal(int) (Peer, error) {
	h, err := cheap.NewHeap(cheap.HeapOptions{})
	if err != nil {
		return nil, err
	}
	return &local{h, h.NewLocal()}, nil
}

// Trim destroys the Local, which returns its blocks to the heap.
func (p *local) Trim() error {
	err := p.local.Destroy()
	p.local = nil
	p.heap.Trim()
	return err
}

func (p *local) Close() error {
	if p.local != nil {
		if err := p.local.Destroy(); err != nil {
			return err
		}
	}
	return p.heap.Destroy()
}
