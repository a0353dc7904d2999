package heap

import (
	"fmt"
	"math/bits"
)

// Errors makes the errors that a program gets: their types are those of package cheap.
type Errors interface {
	// Misuse returns a MisuseError, for a panic.
	Misuse(op string, addr uintptr, reason string) error

	// Renamed returns v, the value of a panic. If that is a MisuseError, it gets op.
	Renamed(v any, op string) any

	// Live returns a LiveError.
	Live(op string, blocks, bytes int64) error
}

var (
	errs                                Errors
	errNoMemory, errLimit, errDestroyed error // ErrNoMemory and so on
)

// SetErrors says how errors are made. Package cheap calls it while it is initialized, before it
// uses a heap.
func SetErrors(e Errors, noMemory, limit, destroyed error) {
	errs, errNoMemory, errLimit, errDestroyed = e, noMemory, limit, destroyed
}

// Functions that never return are called panicX, functions that may panic mustX.

// panicMisuse panics with a MisuseError.
func panicMisuse(op string, addr uintptr, format string, args ...any) {
	panic(errs.Misuse(op, addr, fmt.Sprintf(format, args...)))
}

// MustBePowerOfTwo panics if align is not a power of two.
func MustBePowerOfTwo(op string, align int) {
	if align <= 0 || align&(align-1) != 0 {
		panicMisuse(op, 0, "the alignment %d is not a power of two", align)
	}
}

// Mul returns n*size, and false if that overflows an int.
func Mul(n int, size uintptr) (uintptr, bool) {
	hi, lo := bits.Mul(uint(n), uint(size))
	return uintptr(lo), hi == 0 && int(lo) >= 0
}

// mustMul is Mul of two numbers; it panics if one of them is negative.
func mustMul(op string, count, size int) (n int, ok bool) {
	if count < 0 || size < 0 {
		panicMisuse(op, 0, "negative count or size (%d × %d)", count, size)
	}
	p, ok := Mul(count, uintptr(size))
	return int(p), ok
}

// noMemory wraps an error of the operating system. It is called under locks, and between
// Enter and Leave of package race, where the detector would misread the locks of package
// fmt. So the text is made when it is asked for. It is not inlined, to keep its callers
// small.
//
//go:noinline
func noMemory(err error) error { return &refusedError{err} }

// A refusedError is an ErrNoMemory with its cause.
type refusedError struct{ cause error }

func (e *refusedError) Error() string { return errNoMemory.Error() + ": " + e.cause.Error() }

// Unwrap returns ErrNoMemory and the cause.
func (e *refusedError) Unwrap() []error { return []error{errNoMemory, e.cause} }
