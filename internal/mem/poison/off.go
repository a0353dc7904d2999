//go:build !asan

package poison

// Build says whether the program is built with -asan.
const Build = false

// On reports false without -asan.
func On() bool { return false }

// SetHeaps does nothing without -asan.
func SetHeaps(h Heaps) {}

// Poison does nothing without -asan.
func Poison(addr, size uintptr) {}

// Unpoison does nothing without -asan.
func Unpoison(addr, size uintptr) {}

// Seal does nothing without -asan.
func Seal(factor uint64) {}

// Stack does nothing without -asan.
func Stack(id uint32, text string) {}

// Register does nothing without -asan.
func Register(addr, size uintptr) {}

// Unregister does nothing without -asan.
func Unregister(addr, size uintptr) {}
