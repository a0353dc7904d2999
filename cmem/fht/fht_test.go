package fht

import (
	"bytes"
	"compress/gzip"
	"io"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cheapgo/cheap/internal/test/testcall"
)

func event(address uint64, kind uint64, thread uint64, size uint64) [2]uint64 {
	return [2]uint64{address | kind<<48 | thread<<52, size}
}

// TestDecode has each kind of event, and calls that overlap.
func TestDecode(t *testing.T) {
	aligned := event(0x3000, uint64(Aligned), 0, 33)
	aligned[0] |= 12 << 56
	for _, c := range []struct {
		name            string
		events          [][2]uint64
		ops             []Op
		unknown, missed int
	}{
		{name: "kinds", events: [][2]uint64{
			event(0x1000, uint64(Malloc), 1, 10), event(0x2000, uint64(Calloc), 2, 20), aligned,
			event(0x2000, uint64(Free), 3, 0), event(0x4000, uint64(Malloc)|marked, 15, 40), event(0x4000, uint64(Free), 0, 0),
		}, ops: []Op{
			{Kind: Malloc, Thread: 1, Slot: 0, Size: 10}, {Kind: Calloc, Thread: 2, Slot: 1, Size: 20},
			{Kind: Aligned, AlignLog: 12, Slot: 2, Size: 33}, {Kind: Free, Thread: 3, Slot: 1},
			{Kind: Malloc, Thread: 15, Slot: 1, Size: 40, Marked: true}, {Kind: Free, Slot: 1, Marked: true},
		}},
		{name: "a realloc whose address comes again before it ends", events: [][2]uint64{
			event(0x1000, uint64(Malloc), 0, 10), event(0x1000, uint64(Realloc), 0, 99), event(0x1000, uint64(Malloc), 1, 11),
			event(0x2000, moved, 0, 1), event(0x1000, uint64(Free), 1, 0), event(0x2000, uint64(Free), 0, 0),
		}, ops: []Op{
			{Kind: Malloc, Slot: 0, Size: 10}, {Kind: Malloc, Thread: 1, Slot: 1, Size: 11}, {Kind: Realloc, Slot: 0, Size: 99},
			{Kind: Free, Thread: 1, Slot: 1}, {Kind: Free, Slot: 0},
		}},
		{name: "a realloc that fails, and one that frees", events: [][2]uint64{
			event(0x1000, uint64(Malloc), 0, 10), event(0x1000, uint64(Realloc), 0, 1<<60), event(0x1000, kept, 0, 1),
			event(0x1000, uint64(Realloc), 0, 0), event(0, uint64(Free), 0, 3),
		}, ops: []Op{{Kind: Malloc, Slot: 0, Size: 10}, {Kind: Free, Slot: 0}}},
		{name: "older blocks", events: [][2]uint64{
			event(0x1000, uint64(Free), 0, 0), event(0x2000, uint64(Realloc), 0, 7), event(0x3000, moved, 0, 1), event(0x4000, moved, 0, 99),
		}, ops: []Op{{Kind: Malloc, Slot: 0, Size: 7}}, unknown: 1},
		{name: "a free that was not seen", events: [][2]uint64{
			event(0x1000, uint64(Malloc), 0, 10), event(0x1000, uint64(Malloc), 0, 11),
		}, ops: []Op{{Kind: Malloc, Slot: 0, Size: 10}, {Kind: Free, Slot: 0}, {Kind: Malloc, Slot: 0, Size: 11}}, missed: 1},
	} {
		var d Decoder
		d.Start(0)
		var got []Op
		for _, e := range c.events {
			d.Decode(e[:], func(op Op) { got = append(got, op) })
		}
		if !slices.Equal(got, c.ops) {
			t.Errorf("%s: got %+v, want %+v", c.name, got, c.ops)
		}
		if d.Unknown != c.unknown || d.Missed != c.missed {
			t.Errorf("%s: %d unknown and %d missed, want %d and %d", c.name, d.Unknown, d.Missed, c.unknown, c.missed)
		}
	}
}

// TestReader writes events from two goroutines, as threads of C do, into a ring that is short.
func TestReader(t *testing.T) {
	const size, each = 4096, 50_000
	ring := &Ring{Words: make([]uint64, 2*size), Head: new(uint64), Read: new(uint64), Over: new(uint64)}
	n := map[uint8]int{}
	r := Read(ring, func(op Op) { n[op.Thread]++ })
	var all sync.WaitGroup
	for thread := range uint64(2) {
		all.Go(func() {
			for i := range uint64(each) {
				at := atomic.AddUint64(ring.Head, 1) - 1
				for at-atomic.LoadUint64(ring.Read) >= size {
					runtime.Gosched()
				}
				e := ring.Words[2*(at%size):]
				atomic.StoreUint64(&e[1], i)
				atomic.StoreUint64(&e[0], event((at+1)<<4, uint64(Malloc), thread, 0)[0])
			}
		})
	}
	all.Wait()
	if !r.Stop() {
		t.Error("events are missing")
	}
	if n[0] != each || n[1] != each {
		t.Errorf("%v", n)
	}
}

func TestWriter(t *testing.T) {
	var file bytes.Buffer
	w, err := NewWriter(&file)
	testcall.Must(t, err)
	for _, op := range []Op{
		{Kind: Malloc, Slot: 0, Size: 300, Thread: 1}, {Kind: Aligned, AlignLog: 12, Slot: 1, Size: 5, Thread: 15}, {Kind: Free, Slot: 0},
	} {
		w.Write(op)
	}
	testcall.Must(t, w.Close(17))
	zip, err := gzip.NewReader(&file)
	testcall.Must(t, err)
	got, err := io.ReadAll(zip)
	const want = "FHT1\x02\x03\x11" + "\x11\x00\xac\x02" + "\xf5\x01\x05\x80\x20" + "\x02\x00"
	if err != nil || string(got) != want {
		t.Errorf("%q, %v, want %q", got, err, want)
	}
}
