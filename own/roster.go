package own

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"sync"
	"weak"
)

// roster has all pools of the program, those of each Memory included, and keeps none of
// them reachable. Collected pools are taken out whenever the roster has twice as many
// entries as the last such removal left.
var roster struct {
	mu    sync.Mutex
	pools map[weak.Pointer[Pool]]member
	made  uint64 // how many pools were ever made
	prune int    // length of pools from which on collected ones are taken out
}

// A member is what the roster knows of a pool.
type member struct {
	serial uint64
	memory weak.Pointer[Memory] // nil for a pool that NewPool has made
}

// noteMade adds a new pool to the roster. memory is what it is part of, or nil.
func (p *Pool) noteMade(memory *Memory) {
	// After the pool is in the roster, so that a level that is set meanwhile is not missed.
	defer p.setLevel()
	roster.mu.Lock()
	defer roster.mu.Unlock()
	if roster.pools == nil {
		roster.pools = map[weak.Pointer[Pool]]member{}
	}
	roster.made++
	p.serial = roster.made
	roster.pools[weak.Make(p)] = member{roster.made, weak.Make(memory)}
	if len(roster.pools) < roster.prune {
		return
	}
	maps.DeleteFunc(roster.pools, func(w weak.Pointer[Pool], _ member) bool { return w.Value() == nil })
	roster.prune = max(64, 2*len(roster.pools))
}

// noteClosed takes a pool out of the roster if it owns nothing any more.
func (p *Pool) noteClosed() {
	if st := p.Stats(); st.Live+st.Made != 0 {
		return
	}
	roster.mu.Lock()
	defer roster.mu.Unlock()
	delete(roster.pools, weak.Make(p))
}

// rostered returns a copy of the roster.
func rostered() map[weak.Pointer[Pool]]member {
	roster.mu.Lock()
	defer roster.mu.Unlock()
	return maps.Clone(roster.pools)
}

// poolsMade returns how many pools the program has made.
func poolsMade() uint64 {
	roster.mu.Lock()
	defer roster.mu.Unlock()
	return roster.made
}

// A PoolInfo describes a [Pool] or a [Memory] of the program. It keeps the pool reachable.
type PoolInfo struct {
	Name   string // Options.Name or MemoryOptions.Name, or their defaults
	Memory bool   // it is a Memory

	pools []*Pool // one, or the two of a Memory
}

// Pools describes the pools and memories of the program, those made first at the front. It is
// for tools that show what a program owns. A pool that was dropped, or destroyed, is there
// as long as it owns something.
func Pools() []PoolInfo {
	all := rostered()
	order := slices.SortedFunc(maps.Keys(all), func(x, y weak.Pointer[Pool]) int {
		return cmp.Compare(all[x].serial, all[y].serial)
	})
	var infos []PoolInfo
	index := map[weak.Pointer[Memory]]int{} // of a Memory in infos
	for _, w := range order {
		p, m := w.Value(), all[w].memory
		if p == nil {
			continue
		}
		if i, ok := index[m]; ok {
			infos[i].pools = append(infos[i].pools, p)
			continue
		}
		memory := m != weak.Pointer[Memory]{}
		if memory {
			index[m] = len(infos)
		}
		infos = append(infos, PoolInfo{Name: p.spec.Name, Memory: memory, pools: []*Pool{p}})
	}
	return infos
}

// Stats returns the counters of the pool: [Pool.Stats] or [Memory.Stats].
func (i PoolInfo) Stats() (sum Stats) {
	for _, p := range i.pools {
		sum = sum.plus(p.Stats())
	}
	return sum
}

// Live returns the open owners of the pool: [Pool.Live] or [Memory.Live].
func (i PoolInfo) Live() iter.Seq[LiveOwner] {
	return func(yield func(LiveOwner) bool) {
		for _, p := range i.pools {
			for o := range p.Live() {
				if !yield(o) {
					return
				}
			}
		}
	}
}
