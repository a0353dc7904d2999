package main

import (
	"math"
	"math/rand/v2"
)

// theta is the constant of YCSB.
const theta = 0.99

// A zipf chooses numbers below n as YCSB does: k about as often as 1/(k+1) to the power of theta. The
// formula is that of Gray et al., Quickly Generating Billion-Record Synthetic Databases. Package
// rand has powers above 1 only.
type zipf struct {
	random        *rand.Rand
	n, zetan, eta float64
}

func newZipf(random *rand.Rand, n int) *zipf {
	z := &zipf{random: random, n: float64(n)}
	for i := range n {
		z.zetan += 1 / math.Pow(float64(i+1), theta)
	}
	zeta2 := 1 + math.Pow(0.5, theta)
	z.eta = (1 - math.Pow(2/z.n, 1-theta)) / (1 - zeta2/z.zetan)
	return z
}

func (z *zipf) next() uint64 {
	u := z.random.Float64()
	switch uz := u * z.zetan; {
	case uz < 1:
		return 0
	case uz < 1+math.Pow(0.5, theta):
		return 1
	}
	return uint64(z.n * math.Pow(z.eta*u-z.eta+1, 1/(1-theta)))
}
