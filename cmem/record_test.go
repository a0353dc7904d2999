//go:build cgo && linux && !cheap_nocmem && !asan && !msan

package cmem

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/cheapgo/cheap/cmem/fht"
	"github.com/cheapgo/cheap/cmem/internal/cwork"
	"github.com/cheapgo/cheap/internal/test/testcall"
)

// A recorded is a recording that was read.
type recorded struct {
	threads uint64
	ops     []fht.Op
	live    map[uint32]uint64 // sizes, at the end
}

// readRecording reads a recording, and looks whether each operation is possible.
func readRecording(t *testing.T, r io.Reader) *recorded {
	t.Helper()
	zip, err := gzip.NewReader(r)
	testcall.Must(t, err)
	in := bufio.NewReader(zip)
	number := func() uint64 {
		n, err := binary.ReadUvarint(in)
		testcall.Must(t, err)
		return n
	}
	magic := make([]byte, 4)
	if _, err := io.ReadFull(in, magic); err != nil || string(magic) != "FHT1" {
		t.Fatalf("magic %q, %v", magic, err)
	}
	slots, ops := number(), number()
	all := &recorded{threads: number(), live: map[uint32]uint64{}}
	for range ops {
		b, err := in.ReadByte()
		if err != nil {
			t.Fatal(err)
		}
		op := fht.Op{Kind: fht.OpKind(b & 15), Thread: b >> 4, Slot: uint32(number())}
		if op.Kind != fht.Free {
			op.Size = number()
		}
		if op.Kind == fht.Aligned {
			for align := number(); align > 1; align /= 2 {
				op.AlignLog++
			}
		}
		_, live := all.live[op.Slot]
		if uint64(op.Slot) >= slots || live != (op.Kind == fht.Free || op.Kind == fht.Realloc) {
			t.Fatalf("%+v with %d slots, live: %v", op, slots, live)
		}
		if op.Kind == fht.Free {
			delete(all.live, op.Slot)
		} else {
			all.live[op.Slot] = op.Size
		}
		all.ops = append(all.ops, op)
	}
	if _, err := in.ReadByte(); err != io.EOF {
		t.Fatalf("more follows: %v", err)
	}
	return all
}

// count returns how many operations are of a kind and size.
func (r *recorded) count(kind fht.OpKind, size uint64) int {
	n := 0
	for _, op := range r.ops {
		if op.Kind == kind && op.Size == size {
			n++
		}
	}
	return n
}

// TestRecord compares a recording with the calls, and with the counts.
func TestRecord(t *testing.T) {
	old := cwork.Alloc(0, 111)
	other := cwork.Alloc(0, 112)
	var file bytes.Buffer
	r, err := record(&file)
	testcall.Must(t, err)
	if _, err := Record(io.Discard); !errors.Is(err, ErrRecording) {
		t.Errorf("a second recording: %v", err)
	}
	before := ReadStats()
	const threads, pairs, size = 4, 100_000, 4567
	cwork.Threads(threads, pairs, size)
	after := ReadStats()

	p := cwork.Alloc(0, 1111)
	p = cwork.Realloc(p, 222_222)
	if q := cwork.Realloc(p, math.MaxInt64); q != nil { //cheapvet:ignore cfree there is none
		t.Error("memory that no system has")
	}
	p = cwork.Realloc(p, 333_333)
	cwork.Free(old)
	other = cwork.Realloc(other, 44_444)
	if s := cwork.Conform(); s != "" {
		t.Errorf("while calls are recorded: %s", s)
	}
	testcall.Must(t, r.stop())
	cwork.Free(p)
	cwork.Free(other)

	all := readRecording(t, &file)
	if n := all.count(fht.Malloc, size); n != threads*pairs {
		t.Errorf("%d mallocs in threads, want %d", n, threads*pairs)
	}
	if n := after.Mallocs - before.Mallocs; n < threads*pairs || n > threads*pairs+100 {
		t.Errorf("%d mallocs were counted", n)
	}
	if all.threads < threads || all.threads > 30 {
		t.Errorf("%d threads", all.threads)
	}
	for _, c := range []struct {
		kind fht.OpKind
		size uint64
		want int
	}{
		{fht.Malloc, 1111, 1}, {fht.Realloc, 222_222, 1}, {fht.Realloc, math.MaxInt64, 0}, {fht.Realloc, 333_333, 1},
		{fht.Malloc, 44_444, 1}, // a realloc of an older block
		{fht.Malloc, 111, 0}, {fht.Malloc, 112, 0},
	} {
		if n := all.count(c.kind, c.size); n != c.want {
			t.Errorf("kind %d of %d bytes: %d, want %d", c.kind, c.size, n, c.want)
		}
	}
	sizes := map[uint64]int{}
	for _, n := range all.live {
		sizes[n]++
	}
	if sizes[333_333] != 1 || sizes[44_444] != 1 || sizes[1111]+sizes[222_222] != 0 {
		t.Errorf("in use at the end: %v", sizes)
	}
	if r.reader.Decoder.Unknown == 0 || r.reader.Decoder.Missed > 0 {
		t.Errorf("%d frees of older blocks, %d missed", r.reader.Decoder.Unknown, r.reader.Decoder.Missed)
	}
	for _, kind := range []fht.OpKind{fht.Calloc, fht.Aligned} {
		n := 0
		for _, op := range all.ops {
			if op.Kind == kind && (kind != fht.Aligned || op.AlignLog > 0) {
				n++
			}
		}
		if n == 0 {
			t.Errorf("no operation of kind %d, which cwork.Conform calls", kind)
		}
	}
}

// TestRecordOrder has threads free and reallocate what others have allocated, so that addresses
// come again in other threads at once: none may come before its free.
func TestRecordOrder(t *testing.T) {
	for range 3 {
		var file bytes.Buffer
		r, err := record(&file)
		testcall.Must(t, err)
		blocks := make(chan unsafe.Pointer, 16)
		var makers, takers sync.WaitGroup
		for i := range 4 {
			makers.Go(func() {
				for range 20_000 {
					blocks <- cwork.Alloc(0, 2000)
				}
			})
			takers.Go(func() {
				for p := range blocks {
					if i%2 == 0 {
						p = cwork.Realloc(p, 3000)
					}
					cwork.Free(p)
				}
			})
		}
		makers.Wait()
		close(blocks)
		takers.Wait()
		testcall.Must(t, r.stop())
		all := readRecording(t, &file)
		if n := all.count(fht.Malloc, 2000); n != 80_000 {
			t.Errorf("%d mallocs, want 80,000", n)
		}
		if r.reader.Decoder.Missed > 0 {
			t.Errorf("%d addresses came again before they were freed", r.reader.Decoder.Missed)
		}
		for _, n := range all.live {
			if n == 2000 || n == 3000 {
				t.Error("a block is in use at the end")
			}
		}
	}
}

// TestRecordCut lets nothing read the events. From three quarters of the ring on, each call of a
// thread waits a millisecond. The recording is cut when that lasts too long, or when the ring is full.
func TestRecordCut(t *testing.T) {
	ring, err := traceBegin(traceSize{64, 3_600_000})
	testcall.Must(t, err)
	var blocks []unsafe.Pointer
	for full := atomic.LoadUint64(ring.Read) + 64; atomic.LoadUint64(ring.Head) <= full; {
		if n := atomic.LoadUint64(ring.Over); n != 0 {
			t.Errorf("a ring of 64 events is over after %d", len(blocks))
			break
		}
		blocks = append(blocks, cwork.Alloc(0, 100))
	}
	if atomic.LoadUint64(ring.Over) == 0 {
		t.Error("an event that was not read is lost, and the recording goes on")
	}
	traceEnd()
	for _, p := range blocks {
		cwork.Free(p)
	}
	for _, row := range []struct {
		name  string
		size  traceSize
		pairs int // of malloc and free, in each of two threads
		cut   bool
		ops   int // at least
	}{
		{"whole", traceSize{1 << 10, 3_600_000}, (3<<8 + 40) / 4, false, 3 << 8},
		{"full", traceSize{1 << 10, 3_600_000}, 1 << 10, true, 1<<10 - 100}, // there may be frees of older blocks
		// There is room for all events, and 200 of them wait: 100 ms, if both threads wait at a time.
		{"stuck", traceSize{1 << 14, 50}, (3<<12 + 200) / 4, true, 3 << 12},
	} {
		if !recording.CompareAndSwap(false, true) {
			t.Fatal("a recording")
		}
		ring, err := traceBegin(row.size)
		testcall.Must(t, err)
		if n := len(ring.Words) / 2; n != row.size.events {
			t.Errorf("%s: a ring of %d events, want %d", row.name, n, row.size.events)
		}
		cwork.Threads(2, row.pairs, 100)
		var file bytes.Buffer
		to, err := fht.NewWriter(&file)
		testcall.Must(t, err)
		r := &recorder{ring, to, fht.Read(ring, to.Write)}
		if err := r.stop(); errors.Is(err, ErrRecordCut) != row.cut || err != nil && !row.cut {
			t.Errorf("%s: the error is %v", row.name, err)
		}
		if n := len(readRecording(t, &file).ops); n < row.ops {
			t.Errorf("%s: %d operations, want %d", row.name, n, row.ops)
		}
	}
	// The next one is whole.
	var file bytes.Buffer
	stop, err := Record(&file)
	testcall.Must(t, err)
	cwork.Pairs(1000, 7654)
	testcall.Must(t, stop())
	if n := readRecording(t, &file).count(fht.Malloc, 7654); n != 1000 {
		t.Errorf("%d mallocs, want 1,000", n)
	}
}

// TestRecordFork records while children are forked, which record nothing.
func TestRecordFork(t *testing.T) {
	var file bytes.Buffer
	stop, err := Record(&file)
	testcall.Must(t, err)
	if bad := cwork.Fork(5); bad != 0 {
		t.Errorf("%d children have failed", bad)
	}
	testcall.Must(t, stop())
	readRecording(t, &file)
}

// BenchmarkRecord is a pair of malloc and free in C while it is recorded.
func BenchmarkRecord(b *testing.B) {
	for _, threads := range []int{1, 2} {
		for _, on := range []bool{false, true} {
			b.Run(map[bool]string{false: "off", true: "on"}[on]+"/threads="+string(rune('0'+threads)), func(b *testing.B) {
				stop := func() error { return nil }
				if on {
					var err error
					if stop, err = Record(io.Discard); err != nil {
						b.Fatal(err)
					}
				}
				b.ResetTimer()
				cwork.Threads(threads, b.N, 64)
				b.StopTimer()
				testcall.Must(b, stop())
			})
		}
	}
}
