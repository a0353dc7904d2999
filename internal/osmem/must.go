package osmem

import "fmt"

// Must panics if ok, which says whether an argument of a function of this module can be right, is
// false. op is the function, arg the argument, and value what it is. An address or a size that is
// rounded in the wrong direction would else be memory of someone else.
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
