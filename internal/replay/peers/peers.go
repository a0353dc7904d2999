// Package peers holds the allocators that a replay compares: those of cheap, and the
// malloc of the C library.
//
// Each allocator has its own loop with direct calls, which go generate makes of one template. One
// loop over an interface, or a generic one (whose calls go through a dictionary, also for a struct
// type), would add an indirect call to each operation, which is a tenth of the time of the faster
// allocators.
package peers

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cheapgo/cheap/internal/replay/trace"
)

// A Peer is one allocator under replay. One goroutine at a time may use it, and must
// stay on one thread, because a C library may keep caches by thread.
type Peer interface {
	// Replay performs ops, at least one, in order. It stores the addresses of the
	// blocks in slots, which has an entry for each slot of ops. It returns nil, or
	// the operation for which there was no memory; the slot of that one is
	// unchanged. If an operation has Touch, Replay writes the first and the last
	// byte of its block.
	Replay(ops []trace.Op, slots Slots) (failed *trace.Op)

	// Trim releases unused memory to the system. No block is live, and only Close
	// may follow.
	Trim() error

	// Close releases all memory. No block is live.
	Close() error
}

// Slots holds the address of the block in each slot that has one. The other entries
// have no meaning.
//
// They are addresses and not pointers: to store a pointer in Go memory, the program
// tests for the write barrier, which a C program does not pay for, and the
// collector need not see the blocks.
type Slots []uintptr

// An Info describes an allocator that a replay knows.
type Info struct {
	Name  string
	About string // one line
	Align int    // the alignment of every block; 0 if it is that which C promises
	Miss  string // why this build does not have it; "" if it does

	// Open makes one for a trace with a number of slots.
	Open func(slots int) (Peer, error)
}

// All returns every allocator in the order of reports, including those that this
// build does not have.
func All() []Info {
	return slices.Concat(ours, clib)
}

// Available returns the allocators that this build has.
func Available() []Info {
	return slices.DeleteFunc(All(), func(i Info) bool { return i.Miss != "" })
}

// Lookup returns the allocator of a name. If this build does not have it, the error
// names those that it has.
func Lookup(name string) (Info, error) {
	var have []string
	for _, info := range All() {
		switch {
		case info.Name == name && info.Miss != "":
			return Info{}, fmt.Errorf("allocator %q is not in this build: %s", name, info.Miss)
		case info.Name == name:
			return info, nil
		case info.Miss == "":
			have = append(have, info.Name)
		}
	}
	return Info{}, fmt.Errorf("unknown allocator %q; the allocators are %s", name, strings.Join(have, ", "))
}
