package heap

import "github.com/cheapgo/cheap/internal/mem/race"

// begin and end enclose the code that writes to a block between taking it and
// returning it. Destroy waits for that code.
//
//go:norace
func (h *Heap) begin(op string) {
	race.Enter()
	h.busy.Add(1)
	if h.closed.Load() || h.id == 0 {
		h.panicNotBegun(op)
	}
	race.Leave()
}

// panicNotBegun is the end of begin where the heap is not open. It is apart from begin so that the
// compiler can inline that.
//
//go:noinline
//go:norace
func (h *Heap) panicNotBegun(op string) {
	h.busy.Add(-1)
	race.Leave()
	h.panicNotOpen(op)
}

// end ends what begin began.
//
//go:norace
func (h *Heap) end() {
	race.Enter()
	h.busy.Add(-1)
	race.Leave()
}
