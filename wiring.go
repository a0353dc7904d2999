package cheap

import (
	"github.com/cheapgo/cheap/internal/heap"
	"github.com/cheapgo/cheap/internal/mem/span"
)

// spanHolder and heapErrors implement interfaces of packages below this one, through which they
// call it. Only this file gives them to these.
type (
	spanHolder struct{}
	heapErrors struct{}
)

func init() {
	span.SetHolder(spanHolder{})
	heap.SetErrors(heapErrors{}, ErrNoMemory, ErrLimit, ErrDestroyed)
}

func (spanHolder) Tick() {
	dropStranded()
	heap.Tick()
}

func (heapErrors) Misuse(op string, addr uintptr, reason string) error {
	return &MisuseError{Op: op, Addr: addr, Reason: reason}
}

func (heapErrors) Renamed(v any, op string) any {
	if m, ok := v.(*MisuseError); ok {
		m.Op = op
	}
	return v
}

func (heapErrors) Live(op string, blocks, bytes int64) error {
	return &LiveError{Op: op, Blocks: blocks, Bytes: bytes}
}
