package replay

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cheapgo/cheap/internal/replay/peers"
	"github.com/cheapgo/cheap/internal/replay/trace"
	"github.com/cheapgo/cheap/internal/test/testcall"
)

// random returns a trace of n operations of every kind.
func random(n int) *trace.Trace {
	rng := rand.New(rand.NewPCG(1, 2))
	tr := &trace.Trace{Slots: 300, Threads: 1}
	live := make([]bool, tr.Slots)
	for len(tr.Ops) < n {
		op := trace.Op{Slot: rng.Uint32N(uint32(tr.Slots))}
		switch {
		case !live[op.Slot]:
			op.Kind = []trace.Kind{trace.Malloc, trace.Malloc, trace.Calloc, trace.Aligned}[rng.IntN(4)]
		case rng.IntN(4) == 0:
			op.Kind = trace.Realloc
		default:
			op.Kind = trace.Free
		}
		if op.Kind != trace.Free {
			op.Size = rng.IntN(1 << rng.IntN(18)) // 0 among them
			op.Touch = op.Size != 0
		}
		if op.Kind == trace.Aligned {
			op.AlignLog = uint8(rng.IntN(14))
		}
		live[op.Slot] = op.Kind != trace.Free
		tr.Ops = append(tr.Ops, op)
	}
	return tr
}

// recorded returns a trace that the command embeds.
func recorded(t *testing.T, name string) *trace.Trace {
	t.Helper()
	f, err := os.Open(filepath.Join("recorded", name+".fht.gz"))
	testcall.Must(t, err)
	defer f.Close()
	tr, err := trace.Read(f)
	testcall.Must(t, err)
	return tr
}

func TestVerifyEveryAllocator(t *testing.T) {
	synthetic, gcc := random(20000), recorded(t, "gcc")
	for _, info := range peers.Available() {
		t.Run("trace=random/allocator="+info.Name, func(t *testing.T) {
			testcall.Want(t, Verify(t.Context(), synthetic, info))
		})
		t.Run("trace=gcc/allocator="+info.Name, func(t *testing.T) {
			testcall.Want(t, Verify(t.Context(), gcc, info))
		})
	}
}

// TestVerifyFinds has fakes make each mistake that Verify detects.
func TestVerifyFinds(t *testing.T) {
	tr := &trace.Trace{Slots: 3, Ops: []trace.Op{
		{Kind: trace.Malloc, Slot: 0, Size: 16},
		{Kind: trace.Malloc, Slot: 1, Size: 33},
		{Kind: trace.Calloc, Slot: 2, Size: 48},
		{Kind: trace.Realloc, Slot: 1, Size: 64},
		{Kind: trace.Free, Slot: 2},
		{Kind: trace.Aligned, Slot: 2, Size: 16, AlignLog: 10},
		{Kind: trace.Free, Slot: 0},
	}}
	for _, c := range []struct {
		mistake string
		index   int
		want    string
	}{
		{"dirty", 2, "operation 2, calloc of slot 2: byte 0 of its 48 is 0xff, not zero"},
		{"lossy", 3, "operation 3, realloc of slot 1: byte 32 of the 33 that it keeps was lost"},
		{"unaligned", 5, "operation 5, aligned_alloc of slot 2: its address"},
		{"misaligned", 2, "operation 2, calloc of slot 2: its address"},
		{"", -1, ""},
	} {
		err := Verify(t.Context(), tr, fake{name: "fake", mistake: c.mistake}.info())
		if c.index < 0 {
			if err != nil {
				t.Errorf("no mistake: %v", err)
			}
			continue
		}
		var wrong *MismatchError
		if !errors.As(err, &wrong) || wrong.Index != c.index || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error is %v, want %q", c.mistake, err, c.want)
		}
	}

	// Blocks of 16 that share a byte with the next: found when the first is
	// freed, at the end.
	overlap := &trace.Trace{Slots: 2, Ops: []trace.Op{
		{Kind: trace.Malloc, Slot: 0, Size: 17},
		{Kind: trace.Malloc, Slot: 1, Size: 17},
	}}
	err := Verify(t.Context(), overlap, fake{name: "fake", mistake: "overlap"}.info())
	if want := "operation 2, free of slot 0: byte 16 of its 17 was overwritten"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("overlap: error is %v, want %q", err, want)
	}
}

func TestVerifyStops(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Verify(ctx, random(10), fake{}.info()); !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v, want that of the context", err)
	}
}

func TestTime(t *testing.T) {
	tr := random(2000)
	infos := peers.Available()
	times, err := Time(t.Context(), tr, infos, 3)
	testcall.Must(t, err)
	if len(times) != len(infos) {
		t.Fatalf("%d timings of %d allocators", len(times), len(infos))
	}
	for i, perOp := range times {
		if len(perOp) != 3 || slices.Min(perOp) <= 0 {
			t.Errorf("%s: %v", infos[i].Name, perOp)
		}
	}
}

// TestTimeRotates checks the order of turns, and what an allocator is
// asked to do besides.
func TestTimeRotates(t *testing.T) {
	var log []string
	infos := []peers.Info{fake{name: "a", log: &log}.info(), fake{name: "b", log: &log}.info()}
	tr := &trace.Trace{Slots: 1, Ops: []trace.Op{{Kind: trace.Malloc, Size: 8}}}
	if _, err := Time(t.Context(), tr, infos, 2); err != nil {
		t.Fatal(err)
	}
	// Each turn is a replay and one of what frees the rest.
	want := "a a b b b b a a close a close b"
	if got := strings.Join(log, " "); got != want {
		t.Errorf("order is %q, want %q", got, want)
	}
}

func TestTimeOutOfMemory(t *testing.T) {
	tr := &trace.Trace{Slots: 2, Ops: []trace.Op{
		{Kind: trace.Malloc, Slot: 0, Size: 8},
		{Kind: trace.Malloc, Slot: 1, Size: 1 << 20},
	}}
	_, err := Time(t.Context(), tr, []peers.Info{fake{name: "small"}.info()}, 1)
	var memory *MemoryError
	if !errors.As(err, &memory) || err.Error() != "allocator small: operation 1: no memory for malloc of 1048576 bytes" {
		t.Errorf("error is %v, want a *MemoryError", err)
	}
}

// TestReplayEveryAllocator checks what Verify leaves out of the timed loop:
// the two bytes, and where a replay stops when memory is out.
func TestReplayEveryAllocator(t *testing.T) {
	ops := []trace.Op{
		{Kind: trace.Malloc, Slot: 0, Size: 100, Touch: true},
		{Kind: trace.Calloc, Slot: 1, Size: 5000, Touch: true},
		{Kind: trace.Aligned, Slot: 2, Size: 1, AlignLog: 8, Touch: true},
		{Kind: trace.Malloc, Slot: 3},
		{Kind: trace.Realloc, Slot: 0, Size: 3000, Touch: true},
	}
	for _, info := range peers.Available() {
		t.Run("allocator="+info.Name, func(t *testing.T) {
			p, err := info.Open(5)
			testcall.Must(t, err)
			v := verifier{slots: newSlots(5)}
			if failed := p.Replay(ops, v.slots); failed != nil {
				t.Fatalf("no memory for %+v", *failed)
			}
			for slot, size := range map[uint32]int{0: 3000, 1: 5000, 2: 1} {
				if mem := v.bytes(slot, size); mem[0] != 0xa5 || mem[size-1] != 0xa5 {
					t.Errorf("slot %d: first and last byte are %#x and %#x, want 0xa5", slot, mem[0], mem[size-1])
				}
			}
			if mem := v.bytes(1, 5000); mem[1] != 0 || mem[4998] != 0 {
				t.Errorf("the bytes next to those two were written as well")
			}
			// There may be room for all that a 32-bit int can ask for; and
			// cgoalloc's malloc ends the process when memory is out.
			if strconv.IntSize == 64 && info.Name != "cgoalloc" {
				huge := []trace.Op{
					{Kind: trace.Malloc, Slot: 4, Size: 10},
					{Kind: trace.Realloc, Slot: 4, Size: math.MaxInt - 1<<20, Touch: true},
					{Kind: trace.Free, Slot: 4},
				}
				if failed := p.Replay(huge, v.slots); failed != &huge[1] {
					t.Fatalf("stopped at %v, want the realloc that cannot be", failed)
				}
				p.Replay(huge[2:], v.slots) // the block is still there
			}
			p.Replay(frees(ops, 5), v.slots)
			testcall.Want(t, p.Trim())
			testcall.Want(t, p.Close())
		})
	}
}
