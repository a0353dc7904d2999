// Package peers holds the allocators that a replay compares: those of cheap,
// the C library's, and those that Go programs use today.
//
// Each replays in a loop of its own, with direct calls. One loop over an
// interface, or a generic one (whose calls go through a dictionary, also for a
// struct type), would add an indirect call to each operation, which is a tenth
// of what the faster allocators take.
package peers

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cheapgo/cheap/cmd/cheap/internal/trace"
)

// A Peer is one allocator under replay. One goroutine at a time uses it, and
// stays on one thread, since a C library may keep caches by thread.
type Peer interface {
	// Replay performs ops, of which there is at least one, in order, and keeps
	// slots, which has one for each that they name. It returns nil, or the
	// operation at which it stopped because there was no memory for it, and
	// whose slot is as it was. Of each block that an operation with Touch
	// returns it writes the first and the last byte.
	Replay(ops []trace.Op, slots Slots) (failed *trace.Op)

	// Trim gives back to the system what it can. No block is live, and only
	// Close follows.
	Trim() error

	// Close gives back everything. No block is live.
	Close() error
}

// Slots holds the address of the block in each slot that has one. What the
// other slots hold says nothing.
//
// Addresses and not pointers: storing a pointer into Go memory is a write
// barrier to test for, which a C program does not pay either, and the blocks
// are not the collector's business.
type Slots []uintptr

// An Info describes an allocator that a replay knows.
type Info struct {
	Name  string
	About string // one line
	Align int    // every block is aligned to this; 0 if to what C promises
	Miss  string // why this build has not got it; "" if it has

	// Open makes one for a trace with so many slots.
	Open func(slots int) (Peer, error)
}

// All returns every allocator, those that this build lacks included, in the
// order in which reports list them.
func All() []Info {
	return slices.Concat(ours, clib, others)
}

// Available returns those that this build has.
func Available() []Info {
	return slices.DeleteFunc(All(), func(i Info) bool { return i.Miss != "" })
}

// Lookup returns the allocator of a name that this build has, or an error that
// names the ones to choose from.
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
	return Info{}, fmt.Errorf("unknown allocator %q; there are %s", name, strings.Join(have, ", "))
}
