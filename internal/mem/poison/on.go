//go:build asan

package poison

import (
	"sync"
	"sync/atomic"
)

// Build says whether the program is built with -asan.
const Build = true

// sanitizer is nil in a program without package asan.
var sanitizer atomic.Pointer[Sanitizer]

// regions are the registered ones, those from before Set included.
var (
	mu      sync.Mutex
	regions []region
	heaps   Heaps // nil until SetHeaps
)

type region struct{ addr, size uintptr }

// On reports whether Set was called.
func On() bool { return sanitizer.Load() != nil }

// Set says what the sanitizer is, once. Package asan calls it while packages are initialized,
// which may be before package cheap calls SetHeaps, or after that.
func Set(s Sanitizer) {
	mu.Lock()
	sanitizer.Store(&s)
	for _, r := range regions {
		s.Register(r.addr, r.size)
	}
	h := heaps
	mu.Unlock()
	if h != nil {
		h.SanitizerSet()
	}
}

// SetHeaps says what the heaps are, once. Package cheap calls it while it is initialized.
func SetHeaps(h Heaps) {
	mu.Lock()
	heaps = h
	set := On()
	mu.Unlock()
	if set {
		h.SanitizerSet()
	}
}

// Poison is Sanitizer.Poison, if there is one.
func Poison(addr, size uintptr) {
	if s := sanitizer.Load(); s != nil && size > 0 {
		(*s).Poison(addr, size)
	}
}

// Unpoison is Sanitizer.Unpoison, if there is one.
func Unpoison(addr, size uintptr) {
	if s := sanitizer.Load(); s != nil && size > 0 {
		(*s).Unpoison(addr, size)
	}
}

// Seal is Sanitizer.Seal, if there is one.
func Seal(factor uint64) {
	if s := sanitizer.Load(); s != nil {
		(*s).Seal(factor)
	}
}

// Stack is Sanitizer.Stack, if there is one.
func Stack(id uint32, text string) {
	if s := sanitizer.Load(); s != nil {
		(*s).Stack(id, text)
	}
}

// Register says that the program reserves size bytes at addr.
func Register(addr, size uintptr) {
	mu.Lock()
	defer mu.Unlock()
	add(addr, size)
}

// add is Register of what may be nothing. The caller holds mu.
func add(addr, size uintptr) {
	if size == 0 {
		return
	}
	regions = append(regions, region{addr, size})
	if s := sanitizer.Load(); s != nil {
		(*s).Register(addr, size)
	}
}

// Unregister says that the program is about to release size bytes at addr, which are a
// registered region or a part of one.
func Unregister(addr, size uintptr) {
	mu.Lock()
	defer mu.Unlock()
	for i, r := range regions {
		if addr-r.addr >= r.size {
			continue
		}
		regions[i] = regions[len(regions)-1]
		regions = regions[:len(regions)-1]
		if s := sanitizer.Load(); s != nil {
			(*s).Unregister(r.addr, r.size)
		}
		add(r.addr, addr-r.addr)
		add(addr+size, r.addr+r.size-(addr+size))
		return
	}
}
