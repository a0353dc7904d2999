package sample

import (
	"math"
	"slices"
)

// A Site describes what one place in the program has allocated: blocks of one size, from
// heaps of one name. The numbers are estimates, sums over the samples.
type Site struct {
	Heap string
	Pool string  // for which pool of package own the blocks were allocated, or ""
	Size uintptr // of a block in bytes, or the mean if there are several
	PCs  []uintptr

	Allocs, Frees float64 // blocks
	Space         float64 // bytes of Allocs

	// Lives has the blocks in Frees by how long they lived: range i ends at AgeLimit(i). Those
	// whose heap was destroyed are missing.
	Lives [Ages]Life
}

// Sites returns all sites, in no order.
func Sites() []Site {
	table.mu.Lock()
	defer table.mu.Unlock()
	var all []Site
	for st := range table.stacks.All {
		for _, s := range st.sites {
			if s.allocs < 0.5 {
				continue // SetPool has taken the only one
			}
			o := Site{Heap: s.of.heap, Pool: s.of.pool, Size: s.size, PCs: st.pcs, Allocs: s.allocs, Frees: s.frees, Space: s.space}
			if s.size == manySizes {
				o.Size = uintptr(math.Round(s.space / s.allocs))
			}
			for _, l := range s.lives {
				o.Lives[l.age] = l.Life
			}
			all = append(all, o)
		}
	}
	return all
}

// A Place is a stack, with the bytes in use of the blocks that it has allocated.
type Place struct {
	PCs  []uintptr
	Live float64 // an estimate
}

// Top returns the n stacks with the most bytes in use, the largest first. It takes some
// nanoseconds for each stack of the program.
func Top(n int) []Place {
	var top []Place
	table.mu.Lock()
	for s := range table.stacks.All {
		if s.live < 1 || len(top) == n && s.live <= top[n-1].Live {
			continue
		}
		at := len(top)
		for at > 0 && top[at-1].Live < s.live {
			at--
		}
		top = slices.Insert(top, at, Place{s.pcs, s.live})
		top = top[:min(n, len(top))]
	}
	table.mu.Unlock()
	return top
}
