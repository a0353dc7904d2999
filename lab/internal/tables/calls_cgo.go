//go:build cgo && unix

package tables

import "github.com/cheapgo/cheap/internal/test/cside"

// cgoCalls lists the calls of C functions.
func cgoCalls() []call {
	return []call{
		{
			name: "cgo",
			open: openAdder(add), in: sourceHansen,
			calls:   map[int]float64{1: 40, 16: 4.28},
			scaling: map[int]float64{1: 38.93, 2: 20.30, 4: 10.46, 8: 6.13, 16: 4.95, 32: 4.33},
		},
		{
			name: "cgo-noescape-nocallback",
			note: "noescape and nocallback save time only if a pointer to Go memory is passed; here none is, and nocallback has to be enforced",
			open: openAdder(addQuiet),
		},
	}
}

// An adder counts calls by their results.
type adder struct {
	_   line
	sum int32
	_   line
}

func openAdder(add func(n int, sum int32) int32) func() (worker, error) {
	return func() (worker, error) {
		a, last, all := new(adder), int32(0), 0
		return worker{
			run: func(n int) { a.sum = add(n, a.sum) },
			count: func() int {
				all += int(a.sum - last) // the difference wraps as the sum does
				last = a.sum
				return all
			},
		}, nil
	}
}

//go:noinline
func add(n int, sum int32) int32 {
	for range n {
		sum = cside.Add(sum, 1)
	}
	return sum
}

//go:noinline
func addQuiet(n int, sum int32) int32 {
	for range n {
		sum = cside.AddQuiet(sum, 1)
	}
	return sum
}
