package account

import "sync"

// A CHeap is what package cmem knows of the C heap: what malloc of the C library has handed out, to
// whichever code.
type CHeap interface {
	// InUse returns what is handed out. It waits for no lock of this package.
	InUse() (blocks, bytes int64)

	// After Watch(true), and until Watch(false), Ledger.Refresh and Ledger.Check are called
	// whenever that number has changed by much. It does not block. Calls come one at a time.
	Watch(on bool)
}

// A cHeap is the account of the C heap. Some bytes of that are in other accounts as well: the
// resources of a pool, or what a program has reported. The account holds the rest.
type cHeap struct {
	mu      sync.Mutex // guards what follows; the last lock that is taken
	account *Account   // nil without package cmem
	is      CHeap
	held    int64 // what the account holds
}

// OpenCHeap opens the account of the C heap, once.
func (l *Ledger) OpenCHeap(c CHeap) {
	// Declared, because malloc has it from the system, and more.
	a := l.Open(Options{Name: "C heap", Live: c.InUse, Quick: true, Declared: true})
	l.cHeap.mu.Lock()
	l.cHeap.account, l.cHeap.is = a, c
	l.cHeap.mu.Unlock()
	l.Refresh()
	l.switchOver.Lock()
	defer l.switchOver.Unlock()
	l.tellCHeap()
}

// tellCHeap tells the CHeap whether package pace is at work. The caller holds l.switchOver, so the last
// call is right, whichever of the two came first.
func (l *Ledger) tellCHeap() {
	l.cHeap.mu.Lock()
	c := l.cHeap.is
	l.cHeap.mu.Unlock()
	if c != nil {
		c.Watch(l.pacer.Load() != nil)
	}
}

// Refresh sets what the account of the C heap holds: what is in use now, less what other accounts
// count of it. A collection could give back all of it, as far as is known. It may be called under
// any lock. Without package cmem it does nothing.
func (l *Ledger) Refresh() {
	c := &l.cHeap
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.account == nil {
		return
	}
	_, bytes := c.is.InUse()
	rest := max(0, bytes-l.heldInCHeap.Load())
	by := rest - c.held
	c.held = rest
	if by > 0 {
		c.account.Charge(by)
		l.addReclaimable(by)
	} else if by < 0 {
		c.account.Uncharge(-by)
		l.UnchargeReclaimable(-by)
	}
}
