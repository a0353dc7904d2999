//go:build cgo && (amd64 || arm64) && !windows

package calls_test

import (
	"math"
	"testing"

	"github.com/cheapgo/cheap/calls"
	"github.com/cheapgo/cheap/calls/internal/ctest"
)

// TestCall calls functions by their addresses.
func TestCall(t *testing.T) {
	c, m, other := newCalls(), newMachine(t), newMachine(t)
	word := func(x int32) uint64 { return uint64(x) }
	sum := c.List.Call(calls.Func{Address: ctest.AddressOfAdd, Result: calls.Int32}, []uint64{word(-5), 2})
	c.List.StopIf(calls.AtLeast(sum, 0))
	unsigned := c.List.Call(calls.Func{Address: ctest.AddressOfUint, Result: calls.Uint32}, []uint64{0})
	mix := c.List.Call(calls.Func{Address: ctest.AddressOfMix, Result: calls.Double}, []uint64{1, 2, 3, 4}, 5, 6, 7, 8)
	mul := c.List.Call(calls.Func{Address: ctest.AddressOfMul}, []uint64{calls.Address(ctest.Pointer(m)), 1 << 60, 9})
	typed := c.AddArgs(sum.Arg(), calls.Int(1))
	mustRun(t, c.List)
	if sum.Int() != -3 || unsigned.Int() != math.MaxUint32 || typed.Int() != -2 {
		t.Errorf("results are %d, %d and %d", sum.Int(), unsigned.Int(), typed.Int())
	}
	if got, want := mix.Float(), ctest.Mix(1, 2, 3, 4, 5, 6, 7, 8); got != want {
		t.Errorf("mix is %v, want %v", got, want)
	}
	if got, want := mul.Int(), ctest.Mul(other, 1<<60, 9); got != want {
		t.Errorf("mul is %d, want %d", got, want)
	}
	mustPanic(t, "the function is nil", func() { c.List.Call(calls.Func{}, nil) })
	mustPanic(t, "the most are", func() {
		c.List.Call(calls.Func{Address: ctest.AddressOfAdd}, make([]uint64, calls.MaxIntegers+1))
	})
	mustPanic(t, "the most are", func() {
		c.List.Call(calls.Func{Address: ctest.AddressOfAdd}, nil, make([]float64, calls.MaxDoubles+1)...)
	})
}
