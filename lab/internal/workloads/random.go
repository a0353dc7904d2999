package workloads

// A random is the generator of both languages: xorshift64* by Vigna.
type random uint64

// newRandom returns the generator of a thread.
func newRandom(thread int) random { return random((uint64(thread)+1)*0x9e3779b97f4a7c15 | 1) }

func (r *random) next() uint32 {
	x := uint64(*r)
	x ^= x >> 12
	x ^= x << 25
	x ^= x >> 27
	*r = random(x)
	return uint32(x * 0x2545f4914f6cdd1d >> 32)
}

// below returns a number from 0 to n-1.
func (r *random) below(n uint32) uint32 { return uint32(uint64(r.next()) * uint64(n) >> 32) }
