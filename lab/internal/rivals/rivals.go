// Package rivals holds the allocators of other Go projects, as a replay compares them.
package rivals

import (
	"slices"

	"github.com/cheapgo/cheap/internal/replay/peers"
)

// Available returns the allocators that this build has: those of package peers, and behind
// them those of other projects.
func Available() []peers.Info {
	all := append(peers.Available(), cgoallocInfo, moderncInfo)
	return slices.DeleteFunc(all, func(i peers.Info) bool { return i.Miss != "" })
}
