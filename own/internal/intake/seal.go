package intake

import (
	"sync"

	"github.com/cheapgo/cheap/internal/mem/percpu"
	"github.com/cheapgo/cheap/internal/watch/gcwatch"
	"github.com/cheapgo/cheap/own/internal/batch"
)

// A batch is registered with the collector when it is sealed, and not before. The sentinel of
// an open batch would be reachable from its own registration, and never be found unreachable:
//
//	registration --> Batch --> shard --> the sentinel of its open batch
//
// A batch that does not fill up must be registered as well. So every open batch is sealed
// after each collection. opened has the shards with an open batch. If a pool is dropped, the
// list keeps its shards reachable until the next collection.
var opened struct {
	mu     sync.Mutex
	shards []*shard
	armed  bool // the batches are sealed after the next collection
}

// sealAfterGC adds the shard to the list. The caller holds s.mu.
func (s *shard) sealAfterGC() {
	if s.listed {
		return
	}
	s.listed = true
	opened.mu.Lock()
	defer opened.mu.Unlock()
	opened.shards = append(opened.shards, s)
	if !opened.armed {
		opened.armed = true
		gcwatch.Next(sealOpened)
	}
}

// sealOpened seals the open batches of the list. It runs after a collection.
func sealOpened() {
	opened.mu.Lock()
	shards := opened.shards
	opened.shards, opened.armed = nil, false
	opened.mu.Unlock()
	used := map[*Intake]bool{}
	for _, s := range shards {
		s.mu.Lock()
		used[s.in] = used[s.in] || s.used && s.makes
		s.mu.Unlock()
	}
	for _, s := range shards {
		s.mu.Lock()
		s.listed = false
		s.afterGC(!used[s.in])
		s.used = false
		s.mu.Unlock()
	}
}

// afterGC seals the open batch after a collection. It also releases the stock if
// idle, which means that no Make of the pool was called since the collection
// before, or if the shard's P no longer runs because GOMAXPROCS was lowered. The stock of a
// shard without a window, which a goroutine may not meet again, goes if no Make has used that
// shard since the collection before. The caller holds s.mu.
func (s *shard) afterGC(idle bool) {
	if !s.sealOrRequest() {
		return
	}
	if s.family != nil {
		s.remove()
	}
	if !s.makes {
		return // there is no stock
	}
	if w := s.window; w == nil && !s.used || w != nil && percpu.Beyond(int(w.Place)) {
		idle = true
	}
	if !idle || batch.Leak {
		if len(s.spare) > 0 {
			s.sealAfterGC()
		}
		return
	}
	for _, b := range s.spare {
		b.SealStock()
		b.Link(s.list) // so that CloseWait of the pool waits for it
		s.spec.Releaser.Dead(batch.JobOf(b, batch.All))
	}
	s.spare, s.failed = nil, nil
}
