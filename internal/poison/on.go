//go:build asan

package poison

import (
	"sync"
	"sync/atomic"
)

// Build says whether the program is built with -asan.
const Build = true

// hooks is nil in a program without package asan.
var hooks atomic.Pointer[Hooks]

// regions are the registered ones, those from before Set included. whenSet has the
// functions of OnSet.
var (
	mu      sync.Mutex
	regions []region
	whenSet []func()
)

type region struct{ addr, size uintptr }

// On reports whether Set was called.
func On() bool { return hooks.Load() != nil }

// Set sets the hooks, once. Package asan calls it while packages are initialized.
func Set(h Hooks) {
	mu.Lock()
	hooks.Store(&h)
	for _, r := range regions {
		h.Register(r.addr, r.size)
	}
	fs := whenSet
	mu.Unlock()
	for _, f := range fs {
		f()
	}
}

// OnSet has Set call f, or calls it at once if Set was called before. It is for init
// functions.
func OnSet(f func()) {
	mu.Lock()
	whenSet = append(whenSet, f)
	mu.Unlock()
	if On() {
		f()
	}
}

// Poison is Hooks.Poison, if there are hooks.
func Poison(addr, size uintptr) {
	if h := hooks.Load(); h != nil && size > 0 {
		h.Poison(addr, size)
	}
}

// Unpoison is Hooks.Unpoison, if there are hooks.
func Unpoison(addr, size uintptr) {
	if h := hooks.Load(); h != nil && size > 0 {
		h.Unpoison(addr, size)
	}
}

// Seal is Hooks.Seal, if there are hooks.
func Seal(factor uint64) {
	if h := hooks.Load(); h != nil {
		h.Seal(factor)
	}
}

// Stack is Hooks.Stack, if there are hooks.
func Stack(id uint32, text string) {
	if h := hooks.Load(); h != nil {
		h.Stack(id, text)
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
	if h := hooks.Load(); h != nil {
		h.Register(addr, size)
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
		if h := hooks.Load(); h != nil {
			h.Unregister(r.addr, r.size)
		}
		add(r.addr, addr-r.addr)
		add(addr+size, r.addr+r.size-(addr+size))
		return
	}
}
