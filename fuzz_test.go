package cheap

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/cheapgo/cheap/internal/mem/span"
	"github.com/cheapgo/cheap/internal/test/testheap"
)

// runProgram does what a program of bytes says. The first byte chooses the limit.
func runProgram(t testing.TB, program []byte) {
	next := func() int {
		if len(program) == 0 {
			return 0
		}
		b := program[0]
		program = program[1:]
		return int(b)
	}
	limit := int64(0)
	if n := next(); n%4 == 0 {
		limit = int64(n+4) << 16
	}
	m := newMachine(t, limit)
	defer m.stop()
	testheap.SetDecay(t, DefaultDecay)
	for len(program) > 0 {
		op := next()
		i := op >> 6
		switch op & 31 {
		default:
			m.malloc(i, sizeOf(next(), next()))
		case 8, 9, 10, 11, 12, 13, 14, 15, 16, 17:
			m.free(i, next()<<8+next())
		case 18, 19:
			count := next()%8 + 1
			m.calloc(i, count, sizeOf(next(), next())/count)
		case 20, 21, 22:
			m.realloc(i, next()<<8+next(), sizeOf(next(), next()))
		case 23:
			m.aligned(i, sizeOf(next(), next()), 1<<(next()%22))
		case 24, 25, 26, 27:
			m.misuse(i, next()<<8+next())
		case 28, 29:
			m.local(i)
		case 30:
			m.on(i, m.h.Trim)
			SetDecay([]time.Duration{-1, 0, time.Microsecond, time.Millisecond, time.Second}[next()%5])
		case 31:
			for range next() { // of one size, to fill caches and batches
				m.malloc(i, 16<<(op>>5&1))
			}
		}
		m.check()
	}
	m.finish()
}

// sizeOf turns two bytes into a size: most are small, some fill a good part of
// a span, few are large, and very few have a mapping of their own.
func sizeOf(a, b int) int {
	switch {
	case a < 128:
		return (a<<8 + b) % 1100
	case a < 192:
		return a<<8 + b - 128<<8
	case a < 250:
		return (a<<8 + b - 192<<8) * 3
	case a < 255:
		return (a-249)<<18 + b<<8
	}
	return span.OwnMapping + b<<14
}

func FuzzHeap(f *testing.F) {
	for seed := range uint64(testheap.HammerRounds(20)) {
		r := rand.New(rand.NewPCG(seed, 0))
		program := make([]byte, 600+r.IntN(600))
		for i := range program {
			program[i] = byte(r.Uint32())
		}
		f.Add(program)
	}
	f.Add([]byte{1, 31, 255, 31, 255, 30, 28, 31, 100, 31 | 1<<6, 255, 28, 30})
	f.Fuzz(func(t *testing.T, program []byte) { runProgram(t, program) })
}
