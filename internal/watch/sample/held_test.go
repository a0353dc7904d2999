package sample

import (
	"runtime"
	"slices"
	"testing"

	"github.com/cheapgo/cheap/internal/watch/stacks"
)

// even and odd call hold by a stack that the lowest bits of n choose.
//
//go:noinline
func even(n, bits int) uint32 { return byBits(n, bits) }

//go:noinline
func odd(n, bits int) uint32 { return byBits(n, bits) }

func byBits(n, bits int) uint32 {
	switch {
	case bits == 0:
		return hold()
	case n&1 == 0:
		return even(n>>1, bits-1)
	}
	return odd(n>>1, bits-1)
}

//go:noinline
func hold() uint32 { return holdHere() }

// holdHere is Hold, whose caller it stands for.
//
//go:noinline
func holdHere() uint32 { return Hold() }

// TestHold holds stacks, most of them several times, and lets them go. Each has the functions that
// it came by, and a number of its own as long as it is held. Nothing is left.
func TestHold(t *testing.T) {
	const bits = 6
	known, was := func() int { table.mu.Lock(); defer table.mu.Unlock(); return table.numStacks }(), Held()
	var frames [stacks.MostFrames]uintptr
	short := stacks.Frames(&frames) != 0 // the processor has them
	var ids []uint32
	for n := range 1 << bits {
		var twice [2]uint32
		for i := range twice {
			twice[i] = byBits(n, bits)
		}
		if !slices.Equal(PCs(twice[0]), PCs(twice[1])) || (twice[0] == twice[1]) != short {
			t.Errorf("stack %d has the numbers %#x and %#x", n, twice[0], twice[1])
		}
		LetGo(twice[1])
		if PCs(twice[0]) == nil {
			t.Error("a stack is gone that has another user")
		}
		ids = append(ids, twice[0])
	}
	seen := map[uint32]bool{}
	for n, id := range ids {
		if id < heldBit || seen[id] {
			t.Errorf("number %#x", id)
		}
		seen[id] = true
		fs := functions(PCs(id))
		at := slices.Index(fs, "github.com/cheapgo/cheap/internal/watch/sample.hold")
		for b := range bits {
			want := "github.com/cheapgo/cheap/internal/watch/sample.even"
			if n>>b&1 == 1 {
				want = "github.com/cheapgo/cheap/internal/watch/sample.odd"
			}
			// From hold outwards, the last bit comes first.
			calls := slices.DeleteFunc(slices.Clone(fs[at+1:]), func(f string) bool {
				return f != "github.com/cheapgo/cheap/internal/watch/sample.even" && f != "github.com/cheapgo/cheap/internal/watch/sample.odd"
			})
			if got := calls[bits-1-b]; got != want {
				t.Fatalf("call %d of stack %d is %s, want %s", b, n, got, want)
			}
		}
	}
	if n := Held() - was; n != 1<<bits {
		t.Errorf("%d stacks are held, want %d", n, 1<<bits)
	}
	for _, id := range ids {
		LetGo(id)
		if PCs(id) != nil {
			t.Error("a stack is known that was let go")
		}
		LetGo(id) // nothing
	}
	LetGo(0)
	if n := Held() - was; n != 0 {
		t.Errorf("%d stacks are held", n)
	}
	table.mu.Lock()
	defer table.mu.Unlock()
	if table.numStacks != known || len(held.byFrames) > len(held.stacks) {
		t.Errorf("%d stacks are in the table, %d before; %d held ones by their frames", table.numStacks, known, len(held.byFrames))
	}
}

// functions returns the names of the functions of a stack.
func functions(pcs []uintptr) (all []string) {
	for frames := runtime.CallersFrames(pcs); ; {
		f, more := frames.Next()
		all = append(all, f.Function)
		if !more {
			return all
		}
	}
}
