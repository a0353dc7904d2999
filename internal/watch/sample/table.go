package sample

import (
	"sync"
	"time"

	"github.com/cheapgo/cheap/internal/watch/stacks"
)

// table has all samples, by their stacks and by the addresses of their blocks.
var table struct {
	mu sync.Mutex
	// The rest is under mu, except the counts size and now; see fold.go.

	stacks stacks.Table[*stack]
	live   map[uintptr]*record // by address

	numbered []*stack // by id, less 1

	// spare has up to mostSpare records of samples that have ended, so that a program that frees
	// what it allocates makes no Go object for each sample.
	spare  *record
	spares int

	names   map[names]*names
	inUse   float64 // bytes of blocks in use
	foldAt  int64   // see mayFold
	counted         // what the table has
}

var start = time.Now()

// Now returns a time in nanoseconds, of a clock that only goes forward.
func Now() int64 { return int64(time.Since(start)) }

// Add records a block that was handed out at p and is to be sampled. The stack is that of the
// caller of Add. If there is still a sample for p, Add ends it.
func Add(p, size uintptr, of *Holder) {
	now := time.Since(start)
	rate := Rate()
	if rate == 0 {
		return
	}

	table.mu.Lock()
	prepare()
	end(p, now)
	s := here().site(namesOf(of.Name, ""), size)
	weight := 1 / probability(size, rate)
	s.take(weight, size)
	r := newRecord(record{of: of, site: s, p: p, size: size, weight: weight, since: now})
	r.link()
	table.live[p] = r
	table.records = max(table.records, len(table.live))
	table.now.Store(int64(len(table.live)))
	mayFold()
	table.mu.Unlock()
}

// prepare makes the maps. The lock is held.
func prepare() {
	if table.live == nil {
		table.live, table.names = map[uintptr]*record{}, map[names]*names{}
	}
}

// Remove records that the block at p was freed, or is about to be. It does nothing if the
// block was not sampled.
func Remove(p uintptr) {
	now := time.Since(start)
	table.mu.Lock()
	end(p, now)
	table.mu.Unlock()
}

// SetPool says for which pool the block at p was allocated. It does nothing if the block was
// not sampled. It must be called once for a block, and not long after Add.
func SetPool(p uintptr, name string) {
	if Rate() == 0 {
		return
	}
	table.mu.Lock()
	defer table.mu.Unlock()
	r, ok := table.live[p]
	if !ok {
		return
	}
	old := r.site
	old.take(-r.weight, r.size)
	old.inUse -= 2 // take has counted it as another one
	r.site = old.stack.site(namesOf(old.of.heap, name), r.size)
	r.site.take(r.weight, r.size)
}

// Drop ends all samples of a holder, whose blocks are gone. Their lives are not counted.
func Drop(of *Holder) {
	table.mu.Lock()
	for r := of.first; r != nil; r = r.next {
		r.site.free(r.weight, r.size)
		delete(table.live, r.p)
	}
	of.first = nil
	table.now.Store(int64(len(table.live)))
	table.mu.Unlock()
}

// end ends the sample of the block at p, if there is one. The lock is held.
func end(p uintptr, now time.Duration) {
	r, ok := table.live[p]
	if !ok {
		return
	}
	r.unlink()
	delete(table.live, p)
	table.now.Store(int64(len(table.live)))
	s := r.site
	s.free(r.weight, r.size)
	d := now - r.since
	s.life(ageOf(d), Life{r.weight, r.weight * float64(d)})
	r.release()
}

// Live returns how many samples are of blocks in use.
func Live() int {
	table.mu.Lock()
	defer table.mu.Unlock()
	return len(table.live)
}
