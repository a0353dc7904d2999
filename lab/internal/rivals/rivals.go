// Package rivals holds the allocators of other Go projects, as a replay compares them.
package rivals

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cheapgo/cheap/internal/replay/peers"
)

// Available returns the allocators that this build has: those of package peers, and behind
// them those of other projects.
func Available() []peers.Info {
	all := append(peers.Available(), cgoallocInfo, moderncInfo)
	return slices.DeleteFunc(all, func(i peers.Info) bool { return i.Miss != "" })
}

// Lookup returns the allocator of a name, if this build has it.
func Lookup(name string) (peers.Info, error) {
	all := Available()
	i := slices.IndexFunc(all, func(i peers.Info) bool { return i.Name == name })
	if i >= 0 {
		return all[i], nil
	}
	var have []string
	for _, info := range all {
		have = append(have, info.Name)
	}
	return peers.Info{}, fmt.Errorf("unknown allocator %q; the allocators are %s", name, strings.Join(have, ", "))
}
