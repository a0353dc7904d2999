package testheap

import (
	"errors"
	"math"
	"sync/atomic"

	"github.com/cheapgo/cheap/internal/mem/osmem"
)

// A Refusal lets calls of the system fail.
type Refusal struct {
	Calls  atomic.Int64 // how many there were
	Raised atomic.Int64 // how many of them failed
	First  osmem.Op     // what the first of these was; read it after End
}

// Forever, as the number of calls that fail, is all.
const Forever = math.MaxInt32

// Refuse lets so many calls of the system fail, from the n-th on, counted from 1.
func Refuse(n, times int) *Refusal {
	return RefuseIf(func(call int) bool { return call >= n && call-n < times })
}

// RefuseIf lets the calls of the system fail for which f returns true.
func RefuseIf(f func(call int) bool) *Refusal {
	r := &Refusal{}
	fault := func(op osmem.Op, _ uintptr) error {
		if !f(int(r.Calls.Add(1))) {
			return nil
		}
		if r.Raised.Add(1) == 1 {
			r.First = op
		}
		return ErrRefused
	}
	osmem.Fault.Store(&fault)
	return r
}

// End ends that, and returns how many calls there were.
func (r *Refusal) End() (calls int) {
	osmem.Fault.Store(nil)
	return int(r.Calls.Load())
}

// ErrRefused is what the system says in these tests.
var ErrRefused = errors.New("refused by the test")
