package own

import (
	"cmp"
	"maps"
	"slices"
	"weak"

	"github.com/cheapgo/cheap/internal/watch/census"
)

// The counts of pools that tools read. Package own has no bound on them, and warns of
// none: package inspect shows them as metrics, and an alert is a rule of whoever reads these.

// readPools appends the counts of the pools of the program, those made first at the front. The
// two pools of a Memory are one.
func readPools(list []census.Pool) []census.Pool {
	all := rostered()
	order := slices.SortedFunc(maps.Keys(all), func(x, y weak.Pointer[Pool]) int {
		return cmp.Compare(all[x].serial, all[y].serial)
	})
	index := map[weak.Pointer[Memory]]int{} // of a Memory in list
	for _, w := range order {
		p, m := w.Value(), all[w].memory
		if p == nil {
			continue
		}
		i, second := index[m]
		if !second {
			i = len(list)
			list = append(list, census.Pool{Number: all[w].serial, Name: p.spec.Name, Memory: m != weak.Pointer[Memory]{}})
			if list[i].Memory {
				index[m] = i
			}
		}
		p.census(&list[i])
	}
	return list
}

// census adds the counts of the pool to c.
func (p *Pool) census(c *census.Pool) {
	if c.Busy {
		return
	}
	var n census.Pool
	for range 3 { // a batch that is sealed meanwhile is sealed by now
		n = census.Pool{}
		if n.Busy = !p.intake.Census(&n); !n.Busy {
			break
		}
	}
	if n.Busy {
		*c = census.Pool{Number: c.Number, Name: c.Name, Memory: c.Memory, Busy: true}
		return
	}
	c.Live, c.Bytes, c.Made, c.Created, c.Open = c.Live+n.Live, c.Bytes+n.Bytes, c.Made+n.Made, c.Created+n.Created, c.Open+n.Open
	c.Collected += p.spec.Counts.Collected.Load()
	c.Queued += p.spec.Counts.Queued.Load()
	if p.queue != nil && p.spec.Counts.Queued.Load() > 0 {
		c.Oldest = max(c.Oldest, int64(p.queue.Oldest()))
	}
	if b, ok := p.spec.Releaser.(*blockPool); ok {
		c.Bytes += b.grown.Load()
	}
}
