package batch

import (
	"fmt"
	"os"
	"sync"

	"github.com/cheapgo/cheap/internal/watch/gcwatch"
)

// Leak and Check say which value the environment variable CHEAP_OWN has. Leak turns automatic
// release off. Check looks for mistakes that cost time to find.
var (
	mode  = readMode()
	Leak  = mode == "leak"
	Check = mode == "check"
)

func readMode() string {
	v := os.Getenv("CHEAP_OWN")
	if v != "" && v != "leak" && v != "check" {
		fmt.Fprintf(os.Stderr, "cheap: CHEAP_OWN is %q; it may be leak or check\n", v)
	}
	return v
}

// owned has the specs of the pointers that have an owner in a checked spec. A pointer is taken
// out before the release function is called, because C may return it again before that ends.
var owned struct {
	sync.Mutex
	by map[uintptr]*Spec
}

// A maker is the goroutine that has made all owners of a spec. It is under the lock of owned.
type maker struct {
	id      uintptr // gcwatch.GoroutineID; 0 before the first
	several bool    // or it is known that others release
	sized   bool    // the spec's size was declared, or it was told that it was not
}

// StartChecks has the spec look at each resource. No batch is made yet. sized says that the program has declared
// the spec's size.
func (k *Spec) StartChecks(sized bool) {
	k.maker = &maker{sized: sized}
	release := k.Release
	k.Release = func(state any, resources []uintptr) error {
		k.leaving(resources)
		return release(state, resources)
	}
}

// Checked reports whether StartChecks was called.
func (k *Spec) Checked() bool { return k.maker != nil }

// Take notes that op gives the resource an owner. It panics if it has one.
func (k *Spec) Take(op string, resource uintptr) {
	owned.Lock()
	defer owned.Unlock()
	if id := gcwatch.GoroutineID(); k.maker.id == 0 {
		k.maker.id = id
	} else if k.maker.id != id {
		k.maker.several = true
	}
	if k.Numbers {
		return
	}
	if other := owned.by[resource]; other != nil {
		k.PanicMisuse(op, "the resource %#x has an owner already, in the pool %s; it would be released twice, which is right only if C counts references", resource, other.Name)
	}
	if owned.by == nil {
		owned.by = map[uintptr]*Spec{}
	}
	owned.by[resource] = k
}

// TakeUnsized tells, once, of a spec whose size was not declared, and that has a resource of which nobody says the size.
func (k *Spec) TakeUnsized() {
	owned.Lock()
	defer owned.Unlock()
	if !k.maker.sized {
		k.maker.sized = true
		fmt.Fprintf(os.Stderr, "cheap: %s: a resource has size 0, so it counts as %d bytes, and package pace knows no better; set Options.Size, or tell Own the size\n", k.Name, k.Size)
	}
}

// Leave notes that the resource, which is not released, has no owner.
func (k *Spec) Leave(resource uintptr) {
	if k.Checked() && !k.Numbers {
		owned.Lock()
		defer owned.Unlock()
		delete(owned.by, resource)
	}
}

// leaving notes that resources are about to be released. It tells, once, of a pool whose owners
// were all made on another goroutine: a library may be bound to the thread that was locked to it.
func (k *Spec) leaving(resources []uintptr) {
	owned.Lock()
	defer owned.Unlock()
	if !k.Numbers {
		for _, r := range resources {
			delete(owned.by, r)
		}
	}
	if m := k.maker; m.id != 0 && m.id != gcwatch.GoroutineID() && !m.several && !k.Queues {
		m.several = true
		fmt.Fprintf(os.Stderr, "cheap: %s: all resources were made on one goroutine, and one is released on another; if C needs the thread that made it, set Options.Run to a Thread or a Queue\n", k.Name)
	}
}
