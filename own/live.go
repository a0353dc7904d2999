package own

import (
	"iter"
	"runtime"

	"github.com/cheapgo/cheap/own/internal/batch"
	"github.com/cheapgo/cheap/own/internal/intake"
)

// A LiveOwner describes a resource whose owner is open: neither closed, nor disowned,
// nor found unreachable.
type LiveOwner struct {
	Label string // what [Handle.SetLabel] has set
	Size  int    // size of the resource in bytes, as Own or Resize was told
	Uses  int64  // calls of Use that are running
	Stack string // stack that made the owner: with Options.Trace, and of a sample with OnCollect or a LeakLevel
}

// Live returns the pool's open owners, in no order. It is for reports and for
// debugging: which resources hold the memory, and who made them. A batch is read
// when the iteration comes to it, so owners that are made, closed or collected meanwhile
// may be missing, or there although they are closed. The body of the loop may call
// package own.
//
// Live keeps no owner reachable. It takes about 10 ns for each entry of the pool's
// batches, the closed ones included.
func (p *Pool) Live() iter.Seq[LiveOwner] {
	return func(yield func(LiveOwner) bool) {
		var entries []batch.OpenEntry
		for _, b := range p.intake.Batches() {
			entries = intake.OpenOnes(b, entries[:0])
			for _, e := range entries {
				o := LiveOwner{Label: e.Label, Size: int(e.Size), Uses: int64(e.Uses)}
				if e.Origin != nil {
					o.Stack = e.Origin.String()
				}
				if !yield(o) {
					return
				}
			}
		}
	}
}

// Live returns the open blocks and groups; see [Pool.Live]. The size of a group is that
// of its own block, without what was allocated in it since.
func (m *Memory) Live() iter.Seq[LiveOwner] {
	return func(yield func(LiveOwner) bool) {
		for o := range m.blocks.pool.Live() {
			if !yield(o) {
				return
			}
		}
		for o := range m.groups.pool.Live() {
			if !yield(o) {
				return
			}
		}
	}
}

// SetLabel sets a text that names the resource in reports: in [Pool.Live], and in the
// error of [Pool.CloseWait] if the owner was never closed. It may be called again. It does
// nothing if o is closed.
func (o *owner) SetLabel(label string) {
	if t := o.ref.Sentinel(); t != nil {
		t.Batch.SetLabel(o.ref.Index, label)
		runtime.KeepAlive(t)
	}
}
