package intake

import (
	"sync"

	"github.com/cheapgo/cheap/internal/mem/account"
	"github.com/cheapgo/cheap/internal/watch/gcwatch"
	"github.com/cheapgo/cheap/own/internal/batch"
	"github.com/cheapgo/cheap/own/internal/window"
)

// A shard has at most one open batch of a pool. A pool has a shard for each P, so
// that goroutines on different Ps do not contend, as many again for Make, and one
// for each family of children that has an open batch. See places.
type shard struct {
	mu sync.Mutex
	// The rest is under mu; in, spec, family, list, makes and window do not change.

	window.Fill // of the open batch. While the window is open, it is in the window

	sentinels []*batch.Sentinel // of the open batch, none if there is none. The array is used again
	open      *batch.Batch      // nil if there is none
	grow      uint32            // number of entries of the next batch

	begun     uint8  // batches begun, modulo 256
	unprobed  uint32 // owners since the last batch that is a probe
	listed    bool   // in opened.shards
	destroyed bool   // no owner is added any more
	removed   bool   // of a family: Intake.families does not have it any more

	made   uint32         // for Make: entries of the open batch that have a resource, N or more; else 0
	makes  bool           // the shard is for Make
	used   bool           // a batch was begun since the last collection
	spare  []*batch.Batch // for Make: batches made in advance; each entry has a resource
	failed error          // the constructor's error after the last of these

	carving // for Memory

	window              *window.Window // nil if there is none
	requests, requested uint32         // requests to seal the batch while its window is open; which one is pending, or 0

	in     *Intake
	spec   *batch.Spec
	family *batch.Family // whose children the entries are, or nil

	// list is where the batches are that are not ended: batches, or in a family a
	// list that all families of the pool share.
	list    *batch.List
	batches batch.List
}

// newShard returns a shard whose first batch has first entries. The caller holds
// Intake.mu.
func newShard(in *Intake, first uint32) *shard {
	s := &shard{in: in, spec: in.spec, grow: first, destroyed: in.destroyed}
	s.list = &s.batches
	return s
}

const (
	firstBatch    = 16
	firstChildren = 4

	// mostEntries is the largest number of entries in a batch, unless
	// Options.Batch is larger. It may exceed Options.Batch, because closed entries
	// delay no release and do not count for Options.Batch.
	mostEntries = 512

	// mostTaken keeps gone within its bits.
	mostTaken = 1 << 39
)

// newBatch returns a batch with room for n entries, which are children of the family if that is
// not nil.
func (s *shard) newBatch(family *batch.Family, n uint32) *batch.Batch {
	share, probe := s.spec.Share(n, s.mean), s.probe(n)
	switch {
	case s.spec.Heap != nil:
		share = batch.OneSentinel // the blocks have one chunk
	case probe:
		share = min(share, batch.FineShare)
	}
	b := batch.New(s.spec, s, family, n, share)
	b.Probe = probe
	return b
}

// probe reports whether the next batch, of n entries, is a probe.
func (s *shard) probe(n uint32) bool {
	s.unprobed += n
	probe := s.unprobed >= ownersAProbe || n <= fewEntries && s.begun%fewProbes == 0
	if probe && s.spec.Heap == nil {
		s.unprobed = 0
	}
	return probe
}

// A batch is a probe if ownersAProbe owners were made since the last one, or if it is one of
// fewProbes batches with fewEntries entries or less: a small batch tells little.
const (
	ownersAProbe = 1 << 14
	fewEntries   = 32
	fewProbes    = 8
)

// begin opens a batch. The shard has none. t is the sentinel of all owners if there is one
// already, or nil.
func (s *shard) begin(b *batch.Batch, t *batch.Sentinel) {
	s.sentinels = b.NewSentinels(s.sentinels, t)
	b.StartSampling()
	b.Link(s.list)
	s.open = b
	s.N, s.Taken, s.made = 0, 0, 0
	s.used = true
	s.sealAfterGC()
	// If the runtime does not report the collection after which the open batches
	// are sealed, a goroutine that makes owners detects that.
	if s.begun++; s.begun%16 == 0 {
		gcwatch.Poll()
	}
}

// setLimits sets Limit and Room for the open batch. Closed owners count for neither:
//
//	Limit = the least of Size(), N + Spec.Batch - (N - gone), and the next sampled entry
//	Room  = Spec.Declared() + bytes of what is gone
//
// It reports whether there is room for one more resource of size bytes.
func (s *shard) setLimits(size int64) bool {
	b := s.open
	if b == nil {
		return false
	}
	gone, given := b.Gone()
	k := s.spec
	s.Limit = min(b.Size(), s.N+uint32(max(k.Batch-(int(s.N)-gone), 0)))
	s.Room = min(k.Declared()+given, mostTaken)
	if s.N >= s.Limit || s.Taken+size > s.Room {
		return false
	}
	switch {
	case b.Every() || k.MaxQueued != 0 || k.Checked():
		s.Limit = s.N // the slow path sees each
	case b.SampleAt >= s.N:
		s.Limit = min(s.Limit, b.SampleAt) // the slow path sees the sample
	}
	return true
}

// put writes the next entry of the open batch, and gives it to an owner.
func (s *shard) put(r *batch.Ref, resource uintptr, size int64, flags uint64) {
	s.open.Put(int(s.N), resource, size, flags)
	s.Taken += size
	s.hand(r)
}

// hand gives the next entry to an owner.
func (s *shard) hand(r *batch.Ref) {
	s.open.Record(s.N)
	*r = batch.RefTo(s.sentinels[s.N>>s.open.Share], s.N)
	s.N++
	if s.N >= s.Limit {
		s.setLimits(1) // for the next resource, of at least 1 byte
	}
}

// alone puts a resource into b, a batch of its own with the sentinel t, whose only owner has index 0, and
// seals that batch at once. The open batch does not change.
func (s *shard) alone(b *batch.Batch, t *batch.Sentinel, resource uintptr, size int64, flags uint64) {
	b.StartSampling()
	b.Put(0, resource, size, flags)
	b.Record(0)
	b.Link(s.list)
	b.Seal(t, 1, size)
}

// seal ends the open batch.
func (s *shard) seal() {
	b := s.open
	if b == nil {
		return
	}
	t, n, taken := s.sentinels[0], s.N, s.Taken
	if s.made > 0 {
		s.spec.Counts.Made.Add(-int64(n))
		s.spec.Count(0, -int64(n)*s.spec.Size)
		if n < s.made {
			// The entries from n on are made and not handed out.
			rest := s.newBatch(nil, s.made-n)
			words := make([]uintptr, 0, s.made-n)
			for i := n; i < s.made; i++ {
				words = append(words, b.Word(i))
			}
			rest.Fill(words)
			s.spare = append(s.spare, rest)
		}
	}
	s.open = nil
	clear(s.sentinels)
	s.sentinels = s.sentinels[:0]
	s.Fill, s.made = window.Fill{}, 0
	if s.spec.Heap != nil {
		s.uncarve(n, taken)
	} else if n > 0 {
		s.mean = taken / int64(n)
	}
	gone, full := b.Seal(t, n, taken)

	// The next batch has twice as many entries if this one is full, or as many as
	// this one used. More than Options.Batch are useful only if most get closed.
	most := uint32(s.spec.Batch)
	if gone > n/2 {
		most = max(most, mostEntries)
	}
	if full {
		s.grow = min(2*n, most)
	} else {
		s.grow = max(min(n, most), 1)
	}
}

// unlock opens the shard's window, and unlocks the shard.
func (s *shard) unlock() {
	s.openWindow()
	s.mu.Unlock()
}

// Resize changes the size of an entry.
func Resize(b *batch.Batch, i uint32, bytes int) {
	defer func() { account.Process.Notify() }() // with no lock held
	s := b.Home.(*shard)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open == b {
		s.closeWindow()
	}
	grown, open := b.Resize(i, min(int64(bytes), batch.MaxSize))
	switch {
	case s.open != b:
		s.spec.Count(0, grown)
		return
	case s.window.Opened():
		s.window.Resize(grown)
		return
	case open:
		s.Taken += grown
		if !s.setLimits(0) {
			s.seal()
		}
	}
	if s.open == b {
		s.openWindow()
	}
}

// OpenOnes appends the open entries of a batch to buf. Only a window may write
// entries meanwhile.
func OpenOnes(b *batch.Batch, buf []batch.OpenEntry) []batch.OpenEntry {
	s, ok := b.Home.(*shard)
	if !ok {
		return buf // a resource without an owner
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return b.OpenOnes(buf)
}

// Tally adds the open entries of a batch to t, as OpenOnes does.
func Tally(b *batch.Batch, t *batch.Tally) {
	s, ok := b.Home.(*shard)
	if !ok {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	t.Add(b)
}

// Retire seals the open batches, now or before the next owner is added to them.
func (in *Intake) Retire() {
	for _, s := range in.shards() {
		s.mu.Lock()
		if s.open != nil {
			s.sealOrRequest()
		}
		s.mu.Unlock()
	}
}

// Retire seals a batch if it is open, now or soon. A batch of children is sealed
// when Retire returns.
func Retire(b *batch.Batch) {
	s := b.Home.(*shard)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open == b {
		s.sealOrRequest()
	}
}
