package own

import (
	"os"
	"runtime"
	"sync"
)

// Batches are registered when they are sealed, and not before: the pool reaches
// an open one, and a ledger that is registered may reach the pool, through a
// release function that holds a context that holds the pool. What the pool
// reaches, and a registration reaches the pool, is never found dead.
//
// So that the owners of a batch that does not fill up are not forgotten, every
// open batch is sealed after each collection. This list has the shards with one
// open; it is what keeps them if the pool is dropped, until the next collection.
var opened struct {
	mu     sync.Mutex
	shards []*shard
	armed  bool // the cleanup that seals them is registered
}

// leak turns automatic release off: the environment variable CHEAPOWN is "leak".
var leak = os.Getenv("CHEAPOWN") == "leak"

// A sentinel is dropped so that its cleanup runs after the next collection. It
// is large enough not to share its slot with something that lives on.
type sentinel struct{ _ [16]byte }

// list puts the shard on the list. The caller holds s.mu.
func (s *shard) list() {
	if s.listed {
		return
	}
	s.listed = true
	opened.mu.Lock()
	defer opened.mu.Unlock()
	opened.shards = append(opened.shards, s)
	if !opened.armed {
		opened.armed = true
		runtime.AddCleanup(&sentinel{}, sealOpened, struct{}{})
	}
}

// sealOpened runs after a collection.
func sealOpened(struct{}) {
	opened.mu.Lock()
	shards := opened.shards
	opened.shards, opened.armed = nil, false
	opened.mu.Unlock()
	used := map[*Pool]bool{}
	for _, s := range shards {
		s.mu.Lock()
		used[s.pool] = used[s.pool] || s.used && s.makes
		s.used = false
		s.mu.Unlock()
	}
	for _, s := range shards {
		s.mu.Lock()
		s.listed = false
		s.restock(!used[s.pool])
		s.mu.Unlock()
		if f := s.family; f != nil {
			f.drop(s)
		}
	}
}

// isListed reports whether sealOpened will come to the shard.
func (s *shard) isListed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.listed
}
