package intake

import (
	"cmp"
	"errors"
	"slices"

	"github.com/cheapgo/cheap/internal/mem/account"
	"github.com/cheapgo/cheap/own/internal/batch"
)

// ErrMadeNone is what Make returns if the constructor made nothing, and no error.
var ErrMadeNone = errors.New("cheap: own: the constructor made nothing, and returned no error")

// Make is the slow path of Next. r owns nothing.
func (in *Intake) Make(r *batch.Ref) error {
	return in.make(in.making.lock(), r)
}

// make hands out an entry of the stock. The caller holds s.mu, and make unlocks it.
// The constructor is called without a lock, because it may call package own again.
func (in *Intake) make(s *shard, r *batch.Ref) error {
	k := in.spec
	if in.full() {
		s.mu.Unlock()
		return ErrQueueFull
	}
	for {
		if s.destroyed {
			s.mu.Unlock()
			return ErrPoolClosed
		}
		if s.N < s.made {
			s.open.Hand(s.N)
			s.Taken += k.Size
			s.hand(r)
			s.stocked()
			if s.N == s.made {
				s.seal() // no entry is left to hand out
			}
			s.unlock()
			return nil
		}
		s.seal()
		if last := len(s.spare) - 1; last >= 0 {
			b := s.spare[last]
			s.spare[last] = nil
			s.spare = s.spare[:last]
			s.begin(b, nil)
			s.made = b.Size()
			s.stocked()
			continue
		}
		if err := s.failed; err != nil {
			s.failed = nil
			s.mu.Unlock()
			return err
		}
		n := uint32(max(min(int64(s.grow), int64(k.Batch), k.Pinned/k.Size), 1))
		s.mu.Unlock()
		if in.before != nil {
			in.before()
		}
		b, err := in.constructAhead(n)
		if b == nil {
			return err
		}
		s = in.making.lock()
		b.Home = s
		if s.destroyed {
			s.mu.Unlock()
			b.ReleaseStock()
			return ErrPoolClosed
		}
		s.spare = append(s.spare, b)
		if err != nil { // or keep the error that another goroutine left here
			s.failed = err
		}
		s.sealAfterGC()
	}
}

// stocked sets the limit up to which Make takes its fast path.
func (s *shard) stocked() {
	s.Limit = s.made
	switch b := s.open; {
	case b.Every() || s.spec.MaxQueued != 0:
		s.Limit = s.N // the slow path sees each
	case b.SampleAt >= s.N:
		s.Limit = min(s.Limit, b.SampleAt)
	}
}

// constructAhead calls the constructor for n resources, and returns a batch of
// those that it made. The error is the constructor's. The batch is nil if it
// made none.
func (in *Intake) constructAhead(n uint32) (*batch.Batch, error) {
	k := in.spec
	words := make([]uintptr, n)
	made, err := in.construct(words)
	switch {
	case made < 0 || made > int(n):
		k.PanicMisuse("Make", "Options.Construct returned %d for a slice of %d resources; return how many it made", made, n)
	case made == 0:
		return nil, cmp.Or(err, ErrMadeNone)
	}
	// If they are fewer, without an error, the constructor is called again later.
	words = words[:made]
	b := batch.New(k, nil, nil, uint32(made), k.Share(uint32(made), k.Size))
	b.Fill(words)
	k.Counts.Made.Add(int64(made))
	k.Count(0, int64(made)*k.Size)
	if !k.Numbers {
		if i := slices.IndexFunc(words, func(w uintptr) bool { return 0 < w && w < batch.LeastAddress }); i >= 0 {
			number := words[i]
			b.ReleaseStock()
			k.PanicMisuse("Make", "Options.Construct made the resource %#x, which is not an address; set Options.Numbers, and use a Number", number)
		}
	}
	account.Process.Notify()
	return b, err
}
