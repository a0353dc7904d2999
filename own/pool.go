package own

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/cheapgo/cheap/internal/account"
)

// Options say how a pool releases what it owns. One of Release and Destructor
// is needed; everything else may be left out.
type Options struct {
	// Name is the name of what is owned, in panics and errors: "git.Commit". It
	// is "own.Owner" if empty.
	Name string

	// Release destroys resources, one or many. It has Words words for each. The
	// slice is the function's only until it returns. It runs on a goroutine of
	// own's, in Close, in Destroy, or in Drain, and at several places at the
	// same time; it may own, close and allocate, also in its own pool.
	//
	// A panic counts all of the call's resources as released. In Close, Drain
	// and Destroy it reaches the caller; anywhere else it ends the program.
	Release func(resources []uintptr)

	// Destructor is a C function that destroys a resource: libc.Destructor
	// makes one. It is called for a whole batch in one cgo call.
	Destructor Destructor

	// NoCallback promises that the C function of Destructor never calls back
	// into Go. It is passed on to Destructor, which may have the call checked:
	// a destructor that calls back nonetheless may end the program.
	NoCallback bool

	// Construct makes resources ahead, for [Pool.Make]. It fills a prefix of
	// resources, with Words words each, and returns how many resources it made;
	// where that is not all of them, an error says why. It may be called from
	// several goroutines at a time. libc.Constructor makes one of a C function,
	// for resources of one word.
	Construct func(resources []uintptr) (n int, err error)

	// Words is how many words a resource has: 1, which 0 means as well, or 2,
	// a handle and a context. Release and Construct have them side by side.
	Words int

	// Batch is how many live owners share a registration with the collector at
	// most: 256 if 0, at most 65,536. 1 makes each of them exact.
	Batch int

	// Pinned is how many bytes of resources the owners of a batch may have
	// together, which is what one of them, still alive, may keep from being
	// released: 64 KiB if 0. A resource of that size or more is exact: it has a
	// batch of its own.
	Pinned int

	// Size is what a resource is taken to have where Own is told 0 bytes, and
	// what each from Construct has: 4 KiB if 0.
	Size int

	// Unshared drops the counting in Use. The program promises not to close an
	// owner, nor to destroy the pool, while somebody else may be in Use.
	Unshared bool

	// Trace remembers for each owner which stack made it, for the error of
	// Destroy and for OnCollect. That costs about a microsecond each.
	Trace bool

	// OnCollect is told when the collector, not Close, had resources released:
	// somebody forgot to close them. It is called after the release, on a
	// goroutine of own's; it must not panic.
	OnCollect func(Collected)

	// Drain leaves all releases to [Pool.Drain], for libraries that are bound
	// to one thread. Close, Destroy and the collector only queue.
	Drain bool

	// MaxQueued makes Own return [ErrQueueFull] while that many releases are
	// queued for Drain. 0 sets no bound.
	MaxQueued int

	// Parent is an owner that all resources of the pool depend on. Each is
	// released before it. See [Pool.OwnUnder]. It must not be closed yet. The
	// pool does not keep it alive: once it is closed, or found unreachable, Own
	// returns [ErrClosed].
	Parent *Owner
}

// A Destructor destroys resources, with words words each, in one go. It is
// implemented by package libc. noCallback is the pool's promise. It is called
// once without resources, by NewPool, and panics if the words do not fit.
type Destructor interface {
	ReleaseAll(resources []uintptr, words int, noCallback bool)
}

// Collected is what Options.OnCollect is told.
type Collected struct {
	Pool  string // Options.Name
	Count int    // owners of one batch that were found unreachable and never closed
	Stack string // what made one of them; with Options.Trace always there, else for a sample
}

const (
	defaultBatch  = 256
	mostBatch     = 1 << 16
	defaultPinned = 64 << 10
	defaultSize   = 4 << 10
)

// A Pool is what owners of one kind have in common: how they are released, and
// how they share registrations with the collector. It is made by [NewPool], and
// its methods may be called from any goroutine.
//
// A pool that is dropped without Destroy loses nothing: what it owned is
// released when its owners are unreachable, and then the pool is collected, also
// where its release function refers to it. A pool with Options.Drain is not to be
// dropped: what is queued then stays, and Flush waits for it.
type Pool struct {
	name      string
	release   func(resources []uintptr)
	construct func(resources []uintptr) (int, error)
	words     int
	batch     int
	pinned    int64
	size      int64
	unshared  bool
	trace     bool

	destructor Destructor // in the place of release, if not nil
	noCallback bool

	drain     bool
	maxQueued int64
	onCollect func(Collected)
	parent    *family // of Options.Parent

	carver *carver // of a Memory, whose blocks the resources are and whose heap keeps account; nil in other pools

	owning places // for Own
	making places // for Make; none without Construct
	single bool   // there was one P when the pool was made

	owners    atomic.Int64 // in sealed batches
	bytes     atomic.Int64 // likewise
	made      atomic.Int64 // made ahead and not handed out
	collected atomic.Int64 // released by the collector
	drained   atomic.Int64 // entries in jobs

	mu        sync.Mutex
	kin       map[*shard]bool // of families of parents anywhere; under mu
	destroyed bool            // under mu
	jobs      queue           // under mu; for Drain

	// Batches for the workers, under work.mu.
	batches, last *ledger
	running       int
	waiting       bool // in work.pools

	statsMu sync.Mutex    // held by Stats
	drainMu sync.Mutex    // held by Drain
	drainer atomic.Uint64 // the goroutine in Drain, 0 if there is none
}

// NewPool returns a pool. Options that contradict each other panic.
func NewPool(o Options) *Pool {
	p := &Pool{
		name:    o.Name,
		release: o.Release,

		destructor: o.Destructor,
		noCallback: o.NoCallback,

		construct: o.Construct,
		words:     o.Words,
		batch:     o.Batch,
		pinned:    int64(o.Pinned),
		size:      int64(o.Size),
		unshared:  o.Unshared,
		trace:     o.Trace,
		drain:     o.Drain,
		maxQueued: int64(o.MaxQueued),
		onCollect: o.OnCollect,
	}
	bad := func(format string, args ...any) { misuse("own", "NewPool", format, args...) }
	switch {
	case (o.Release == nil) == (o.Destructor == nil):
		bad("it takes either Release or Destructor")
	case o.Words < 0 || o.Words > 2:
		bad("a resource has 1 or 2 words, not %d", o.Words)
	case o.Batch < 0 || o.Batch > mostBatch:
		bad("a batch has up to %d owners, not %d", mostBatch, o.Batch)
	case o.Pinned < 0 || o.Size < 0 || o.MaxQueued < 0:
		bad("Pinned, Size and MaxQueued are not negative")
	case o.MaxQueued > 0 && !o.Drain:
		bad("MaxQueued is for a pool with Drain")
	case o.NoCallback && o.Destructor == nil:
		bad("NoCallback is for a Destructor")
	}
	if p.name == "" {
		p.name = "own.Owner"
	}
	p.words = max(p.words, 1)
	if p.destructor != nil {
		p.destructor.ReleaseAll(nil, p.words, p.noCallback)
	}
	if p.batch == 0 {
		p.batch = defaultBatch
	}
	if p.pinned == 0 {
		p.pinned = defaultPinned
	}
	p.pinned = min(p.pinned, maxSize)
	if p.size == 0 {
		p.size = defaultSize
	}
	p.size = min(p.size, maxSize)
	if o.Parent != nil {
		t := o.Parent.token
		if t == nil {
			bad("Parent owns nothing")
		}
		if p.parent = t.ledger.parent(o.Parent.index); p.parent == nil {
			bad("Parent is closed")
		}
		runtime.KeepAlive(t)
	}
	p.single = runtime.GOMAXPROCS(0) == 1
	p.owning = p.newPlaces(false)
	if p.construct != nil {
		p.making = p.newPlaces(true)
	}
	return p
}

// Own puts a resource of size bytes into o, and has it released when no copy of
// o can be reached any more, unless it is closed or disowned before. A size of 0
// says that it is not known: Options.Size.
//
// An error leaves the resource with the caller: [ErrDestroyed], [ErrQueueFull],
// in a pool with Options.Parent [ErrClosed], or one that wraps [cheap.ErrLimit],
// where package pace keeps a limit. A nil resource, a negative size, and
// an o that owns something panic.
func (p *Pool) Own(o *Owner, resource unsafe.Pointer, size int) error {
	if resource == nil || o == nil {
		p.ownsNothing(o)
	}
	n := p.sized(size)
	if n > 0 && o.token == nil {
		if t, i := p.owning.put(uintptr(resource), n); t != nil {
			o.token, o.index = t, i
			return nil
		}
	}
	if err := p.admit(n); err != nil {
		return err
	}
	return p.ownSlow(p.owning.lock(), o, uintptr(resource), 0, size)
}

// admit asks for room for what is there already, where package pace keeps a limit.
func (p *Pool) admit(n int64) error {
	if err := account.Admit(n); err != nil {
		return fmt.Errorf("cheap: %s.Own: %d bytes: %w", p.name, n, err)
	}
	return nil
}

// sized returns what size counts as. It leaves negative ones to the slow path.
func (p *Pool) sized(size int) int64 {
	if size == 0 {
		return p.size
	}
	return int64(size)
}

//go:noinline
func (p *Pool) ownsNothing(o *Owner) {
	if o == nil {
		misuse(p.name, "Own", "the Owner is nil; it is embedded in what the caller has made")
	}
	misuse(p.name, "Own", "the resource is nil; look at what C returned before it is owned")
}

// OwnHandle is [Pool.Own] for a resource that is no pointer, or that has two
// words. In a pool whose resources have one the context is ignored.
func (p *Pool) OwnHandle(o *Owner, resource, context uintptr, size int) error {
	// Where resources have two words no window is opened.
	n := p.sized(size)
	if n > 0 && o.token == nil {
		if t, i := p.owning.put(resource, n); t != nil {
			o.token, o.index = t, i
			return nil
		}
	}
	if err := p.admit(n); err != nil {
		return err
	}
	return p.ownSlow(p.owning.lock(), o, resource, context, size)
}

// OwnUnder is [Pool.Own] for a resource that depends on another one, as a commit
// depends on its repository. It is released before the parent, also when both
// become unreachable together, and also when the parent's pool is destroyed. A
// parent that is closed has its release put off until that of its last child.
// Parents may have parents.
//
// It returns [ErrClosed] if the parent is closed.
func (p *Pool) OwnUnder(o, parent *Owner, resource unsafe.Pointer, size int) error {
	if resource == nil {
		p.ownsNothing(o)
	}
	return p.OwnHandleUnder(o, parent, uintptr(resource), 0, size)
}

// OwnHandleUnder is [Pool.OwnUnder] for a resource that is no pointer, or that
// has two words.
func (p *Pool) OwnHandleUnder(o, parent *Owner, resource, context uintptr, size int) error {
	t := parent.token
	if t == nil {
		return ErrClosed
	}
	if p.parent != nil {
		misuse(p.name, "OwnUnder", "Options.Parent names the parent already")
	}
	f := t.ledger.parent(parent.index)
	if f == nil {
		return ErrClosed
	}
	err := p.ownUnder(o, f, resource, context, size)
	runtime.KeepAlive(t)
	return err
}

func (p *Pool) ownUnder(o *Owner, f *family, resource, context uintptr, size int) (err error) {
	if err := p.admit(p.sized(size)); err != nil {
		return err
	}
	s := f.join(p)
	if s == nil {
		return ErrClosed
	}
	owned := false
	defer func() {
		if !owned && f.leave(s, 1) {
			f.ledger.dispose(f.index)
		}
	}()
	s.mu.Lock()
	err = p.ownSlow(s, o, resource, context, size)
	owned = err == nil
	return err
}

// ownSlow is Own where there is something to look at. The caller holds s.mu, and
// ownSlow gives it up.
func (p *Pool) ownSlow(s *shard, o *Owner, resource, context uintptr, bytes int) error {
	if p.parent != nil && s.family == nil {
		s.mu.Unlock()
		return p.ownUnder(o, p.parent, resource, context, bytes)
	}
	batch, err := p.ownLocked(s, o, resource, context, bytes)
	if batch { // no lock is held
		account.Notify()
		p.giveWay()
	}
	return err
}

// ownLocked is ownSlow without what follows. It reports whether a batch was
// begun.
func (p *Pool) ownLocked(s *shard, o *Owner, resource, context uintptr, bytes int) (batch bool, err error) {
	defer s.unlock()
	if bytes < 0 {
		misuse(p.name, "Own", "the size %d is negative", bytes)
	}
	if !vacant(o) {
		p.occupied("Own")
	}
	if s.destroyed {
		return false, ErrDestroyed
	}
	if p.maxQueued != 0 && p.drained.Load() >= p.maxQueued {
		return false, ErrQueueFull
	}
	size := min(p.sized(bytes), maxSize)
	if size >= p.pinned || p.batch == 1 {
		s.exact(o, resource, context, size)
		return true, nil
	}
	if !s.look(size) {
		s.seal()
		s.begin(p.newLedger(s, s.grow))
		s.look(size)
		batch = true
	}
	s.put(resource, context, size)
	s.hand(o)
	return batch, nil
}

// vacant reports whether o owns nothing.
func vacant(o *Owner) bool { return o.token == nil || o.Closed() }

func (p *Pool) occupied(op string) {
	misuse(p.name, op, "the Owner owns something already; close or disown it first, or take another")
}

// put writes a resource into the next entry.
func (s *shard) put(resource, context uintptr, size int64) {
	l, i := s.open, int(s.n)
	if s.pool.words == 1 {
		l.words[i] = resource
	} else {
		l.words[2*i], l.words[2*i+1] = resource, context
	}
	l.states[i] = uint64(size)<<stateSize | stateOpen
	s.taken += size
}

// hand gives the next entry, which is written, to an owner.
func (s *shard) hand(o *Owner) {
	l, i := s.open, s.n
	if l.origins != nil {
		l.origins[i] = s.pool.here()
	} else if s.pool.onCollect != nil && i == l.sampleAt {
		l.sampled = s.pool.here()
	}
	s.n++
	o.token, o.index = s.token, i
	if s.n >= s.limit {
		s.look(1) // with what comes next in mind, whatever it is
	}
}

// exact gives a resource a batch of its own, which is sealed as soon as it is
// begun. The open batch is left alone.
func (s *shard) exact(o *Owner, resource, context uintptr, size int64) {
	alone := shard{pool: s.pool, family: s.family}
	l := s.pool.newLedger(s, 1)
	alone.open, alone.token = l, &token{ledger: l}
	alone.put(resource, context, size)
	if s.pool.carver != nil {
		l.chunk, l.exact = resource, true
	}
	alone.hand(o)
	l.n = 1
	l.gone.Or(goneSealed)
	s.pool.take(1, size)
	s.link(l)
	register(alone.token, l)
}

func (p *Pool) addKin(s *shard) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.kin == nil {
		p.kin = map[*shard]bool{}
	}
	p.kin[s] = true
	s.destroyed = p.destroyed
}

func (p *Pool) dropKin(s *shard) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.kin, s)
}

// Stats is what a pool says about itself at one moment.
type Stats struct {
	Live      int64 // resources that are owned and not released, queued ones included
	Bytes     int64 // their sizes, and those of Made
	Made      int64 // resources that were made ahead and not handed out
	Collected int64 // resources that the collector has had released, since the pool began
	Queued    int64 // releases that wait for Drain

	OldestQueued time.Duration // how long the first of them has waited
}

// Stats reads the pool's counters. It looks at what is open, and is exact while
// nobody owns, closes or releases.
func (p *Pool) Stats() Stats {
	// All shards are held at once, because sealing a batch moves numbers from
	// a shard to the pool. Nobody else holds two, and no two are in here.
	p.statsMu.Lock()
	defer p.statsMu.Unlock()
	shards := p.all()
	for _, s := range shards {
		s.mu.Lock()
	}
	st := Stats{
		Live:      p.owners.Load(),
		Bytes:     p.bytes.Load(),
		Made:      p.made.Load(),
		Collected: p.collected.Load(),
	}
	for _, s := range shards {
		if l := s.open; l != nil {
			gone := l.gone.Load()
			n, taken := s.inUse()
			st.Live += n - int64(gone>>goneOwners&goneMask)
			st.Bytes += taken - int64(gone>>goneBytes)
			if s.made > 0 { // what is handed out is taken from the stock at seal
				st.Made -= n
				st.Bytes -= n * p.size
			}
		}
		s.mu.Unlock()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	st.Queued = p.drained.Load()
	if since := p.jobs.oldest(); !since.IsZero() {
		st.OldestQueued = time.Since(since)
	}
	return st
}

// all returns the shards as they are now.
func (p *Pool) all() []*shard {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := slices.Concat(p.owning.shards, p.making.shards)
	for s := range p.kin {
		all = append(all, s)
	}
	return all
}
