package intake

import (
	"cmp"
	"errors"
	"slices"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/internal/account"
	"github.com/cheapgo/cheap/own/internal/ledger"
)

// ErrMadeNone is what Make returns if the constructor made nothing, and no error.
var ErrMadeNone = errors.New("cheap: own: the constructor made nothing, and returned no error")

// Make is the slow path of Next. r owns nothing.
func (in *Intake) Make(r *ledger.Ref) error {
	return in.make(in.making.lock(), r)
}

// make hands out an entry of the stock. The caller holds s.mu, and make unlocks it.
// The constructor is called without a lock, because it may call package own again.
func (in *Intake) make(s *shard, r *ledger.Ref) error {
	k := in.kind
	if in.full() {
		s.mu.Unlock()
		return ErrQueueFull
	}
	for {
		if s.destroyed {
			s.mu.Unlock()
			return cheap.ErrDestroyed
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
			l := s.spare[last]
			s.spare[last] = nil
			s.spare = s.spare[:last]
			s.begin(l, nil)
			s.made = l.Size()
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
		l, err := in.constructAhead(n)
		if l == nil {
			return err
		}
		s = in.making.lock()
		l.Home = s
		if s.destroyed {
			s.mu.Unlock()
			l.ReleaseStock()
			return cheap.ErrDestroyed
		}
		s.spare = append(s.spare, l)
		if err != nil { // or keep the error that another goroutine left here
			s.failed = err
		}
		s.sealAfterGC()
	}
}

// stocked sets the limit up to which Make takes its fast path.
func (s *shard) stocked() {
	s.Limit = s.made
	switch l := s.open; {
	case l.Every() || s.kind.MaxQueued != 0:
		s.Limit = s.N // the slow path sees each
	case l.SampleAt >= s.N:
		s.Limit = min(s.Limit, l.SampleAt)
	}
}

// constructAhead calls the constructor for n resources, and returns a ledger of
// those that it made. The error is the constructor's. The ledger is nil if it
// made none.
func (in *Intake) constructAhead(n uint32) (*ledger.Ledger, error) {
	k := in.kind
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
	l := ledger.New(k, nil, nil, uint32(made), k.Share(uint32(made)))
	l.Fill(words)
	k.Counts.Made.Add(int64(made))
	k.Count(0, int64(made)*k.Size)
	if !k.Numbers {
		if i := slices.IndexFunc(words, func(w uintptr) bool { return 0 < w && w < ledger.LeastAddress }); i >= 0 {
			number := words[i]
			l.ReleaseStock()
			k.PanicMisuse("Make", "Options.Construct made the resource %#x, which is not an address; set Options.Numbers, and use a Number", number)
		}
	}
	account.Notify()
	return l, err
}
