package osmem

import "sync/atomic"

// A Purpose is what memory is for. It is the name of the memory in /proc/self/smaps, where
// the kernel has names: Linux since 5.17, with CONFIG_ANON_VMA_NAME. Go names its own
// memory there since 1.25.
type Purpose string

// The purposes.
const (
	Heap     Purpose = "cheap: heap"
	Owners   Purpose = "cheap: owners"
	Metadata Purpose = "cheap: metadata"
)

// unnamed is set when the kernel has refused a name. From then on it is not asked again.
var unnamed atomic.Bool

var setName = sysSetName

// ReplaceName has f called in place of the kernel, until restore is called. It is for tests,
// while no other goroutine asks for memory.
func ReplaceName(f func(addr, size uintptr, p Purpose) error) (restore func()) {
	was, wasUnnamed := setName, unnamed.Load()
	setName = f
	unnamed.Store(false)
	return func() {
		setName = was
		unnamed.Store(wasUnnamed)
	}
}

// Names reports whether Name may do something.
func Names() bool { return !GoBacked && !unnamed.Load() }

// Name gives size bytes at addr, which were reserved or mapped, the name of a purpose. It
// cannot fail: where there are no names it does nothing.
//
// The kernel does not join neighbouring mappings that have different names, and it bounds
// the number of mappings of a process. So Name is called for whole regions, and for few
// parts of them.
func Name(addr, size uintptr, p Purpose) {
	mustBePages("osmem.Name", addr, size)
	if !unnamed.Load() && setName(addr, size, p) != nil {
		unnamed.Store(true)
	}
}
