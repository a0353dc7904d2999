//go:build amd64 || arm64

package main

import (
	"context"
	"fmt"

	"github.com/cheapgo/cheap/cmem/heapprofile"
	"github.com/cheapgo/cheap/internal/page/figure"
	"github.com/cheapgo/cheap/internal/replay"
	"github.com/cheapgo/cheap/internal/replay/peers"
	"github.com/cheapgo/cheap/internal/replay/trace"
)

// A movable is what Go code has asked for by itself, by C.malloc, C.CString and C.CBytes: the part
// of the C heap that could be on a cheap.Heap.
type movable struct {
	calls int64 // allocations
	bytes int64
	ops   []trace.Op // the calls themselves, if they are in a trace
}

// movableOf returns what the samples say of that, or the trace, which knows the calls.
func movableOf(libraries []heapprofile.Library, t *traced) movable {
	if t != nil && len(t.movable) > 0 {
		return movable{int64(t.calls), int64(t.bytes), t.movable}
	}
	for _, l := range libraries {
		if l.Name == heapprofile.AskedByGo {
			return movable{calls: l.Calls, bytes: l.Allocs}
		}
	}
	return movable{}
}

// price measures what these calls cost through cgo, and on a Heap: it replays them, or, if they are
// not known, pairs of Malloc and Free of a block of their mean size. It returns a sentence, which
// ends with hint in that case.
func (m movable) price(ctx context.Context, hint string) (string, error) {
	var infos []peers.Info
	for _, name := range []string{"heap", "libc"} {
		info, err := peers.Lookup(name)
		if err != nil {
			return "", err
		}
		infos = append(infos, info)
	}
	tr := &trace.Trace{Threads: 1, Ops: m.ops}
	how := "by replaying them"
	if len(m.ops) == mostMovable {
		how = fmt.Sprintf("by replaying the first %s", figure.Thousands(mostMovable))
	}
	if len(m.ops) == 0 {
		size := int(m.bytes / m.calls)
		how = fmt.Sprintf("by pairs of %d bytes, the mean%s", size, hint)
		for range 20_000 {
			tr.Ops = append(tr.Ops, trace.Op{Kind: trace.Malloc, Size: size, Touch: size > 0}, trace.Op{Kind: trace.Free})
		}
	}
	for _, op := range tr.Ops {
		tr.Slots = max(tr.Slots, int(op.Slot)+1)
	}
	const rounds = 5
	perOp, err := replay.Time(ctx, tr, infos, rounds)
	if err != nil {
		return "", err
	}
	onHeap, byCgo := least(perOp[0]), least(perOp[1])
	return fmt.Sprintf("a call takes %s on a cheap.Heap and %s through cgo, measured now %s", figure.Duration(onHeap), figure.Duration(byCgo), how), nil
}

func least(all []float64) float64 {
	m := all[0]
	for _, v := range all {
		m = min(m, v)
	}
	return m
}
