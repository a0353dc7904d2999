package account

import "sync"

// The C heap: what malloc of the C library has handed out, to whichever code. Package cmem, if the
// program has it, knows how many bytes these are. Some of them are in other accounts as well: the
// resources of a pool, or what a program has reported. The account of the C heap holds the rest.
var cHeap struct {
	mu      sync.Mutex // guards what follows; the last lock that is taken
	account *Account   // nil without package cmem
	read    func() (blocks, bytes int64)
	watch   func(on bool)
	held    int64 // what the account holds
}

// OpenCHeap opens the account of the C heap, once in a process. read returns what it has in use,
// and waits for no lock of this package. watch(true) has [Refresh] and [Look] called from then on
// when that has changed by much, until watch(false). It does not block.
func OpenCHeap(read func() (blocks, bytes int64), watch func(on bool)) {
	a := OpenQuick("C heap", 0, read)
	a.Declared() // malloc has it from the system, and more
	cHeap.mu.Lock()
	cHeap.account, cHeap.read, cHeap.watch = a, read, watch
	cHeap.mu.Unlock()
	Refresh()
	watchCHeap(pace.Load() != nil)
}

func watchCHeap(on bool) {
	cHeap.mu.Lock()
	watch := cHeap.watch
	cHeap.mu.Unlock()
	if watch != nil {
		watch(on)
	}
}

// InCHeap says that the bytes of the account are part of the C heap. It is called before any are
// taken.
func (a *Account) InCHeap() { a.inC = true }

// Refresh sets what the account of the C heap holds: what is in use now, less what other accounts
// count of it. A collection could give back all of it, as far as is known. It may be called under
// any lock. Without package cmem it does nothing.
func Refresh() {
	cHeap.mu.Lock()
	defer cHeap.mu.Unlock()
	if cHeap.account == nil {
		return
	}
	_, bytes := cHeap.read()
	rest := max(0, bytes-inCHeap.Load())
	by := rest - cHeap.held
	cHeap.held = rest
	if by > 0 {
		cHeap.account.Charge(by)
		addReclaimable(by)
	} else if by < 0 {
		cHeap.account.Uncharge(-by)
		UnchargeReclaimable(-by)
	}
}
