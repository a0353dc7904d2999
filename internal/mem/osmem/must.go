package osmem

import "fmt"

// Must panics if ok is false. ok says whether an argument can be right: op is a function of this
// module, arg the name of the argument, and value its value. Without the check, an address or a
// size that is rounded in the wrong direction would reach memory of another owner.
//
// Functions that make a system call or take a lock call it: it takes an instruction or two. Those that
// are hot do not, and pinned code must not.
//
//go:norace
func Must(ok bool, op, arg string, value uintptr) {
	if !ok {
		panicWrong(op, arg, value)
	}
}

//go:noinline
func panicWrong(op, arg string, value uintptr) {
	panic(fmt.Sprintf("cheap: %s: %s is %#x, which cannot be; this is a fault of the module cheap, please report it", op, arg, value))
}

// mustBePages panics if addr or size is no multiple of PageSize.
//
//go:norace
func mustBePages(op string, addr, size uintptr) {
	Must(addr&(PageSize-1) == 0, op, "addr", addr)
	Must(size&(PageSize-1) == 0, op, "size", size)
}

// IsPower reports whether n is a power of two.
func IsPower(n uintptr) bool { return n != 0 && n&(n-1) == 0 }
