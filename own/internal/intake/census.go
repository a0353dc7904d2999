package intake

import (
	"slices"

	"github.com/cheapgo/cheap/internal/watch/census"
)

// Census adds the counts of the intake to c, and reports whether it could. Unlike Totals it
// waits for no lock, because a goroutine may ask the system for memory with the lock of a
// shard held. If a lock is held, or a batch is sealed meanwhile, Census returns false, and c
// has some of the counts added.
//
// It locks one shard at a time. A goroutine that makes an owner and finds its shard locked
// uses another one.
func (in *Intake) Census(c *census.Pool) bool {
	if !in.mu.TryLock() {
		return false
	}
	shards := slices.Concat(in.owning.all(), in.making.all())
	for _, s := range in.families {
		shards = append(shards, s)
	}
	in.mu.Unlock()

	counts := &in.spec.Counts
	sealed := counts.Sealed.Load()
	c.Live += counts.Owners.Load()
	c.Bytes += counts.Bytes.Load()
	c.Made += counts.Made.Load()
	c.Created += sealed
	for _, s := range shards {
		if !s.mu.TryLock() {
			return false
		}
		if b := s.open; b != nil {
			gone, given := b.Gone()
			n, taken := s.inUse()
			c.Open++
			c.Created += n
			c.Live += n - int64(gone)
			c.Bytes += taken - given
			if s.made > 0 {
				c.Made -= n
				c.Bytes -= n * in.spec.Size
			}
		}
		s.mu.Unlock()
	}
	c.Live, c.Bytes, c.Made = max(c.Live, 0), max(c.Bytes, 0), max(c.Made, 0)
	return counts.Sealed.Load() == sealed // else owners are counted twice, or not at all
}
