package cmem

import (
	"math"
	"math/rand/v2"
	"testing"
)

// A simulated program has objects of parts, each of which a stack of its own has allocated, below one function
// of Go. The samples are drawn as cmem_note does.
type simulated struct {
	random *rand.Rand
	sites  []*site
	blocks [][]sampledBlock // in use, of each stack
}

type sampledBlock struct {
	until              int // the look before which it is freed
	weight, size, vary float64
}

func newSimulated(seed uint64, functions, parts int) *simulated {
	s := &simulated{random: rand.New(rand.NewPCG(seed, 1)), blocks: make([][]sampledBlock, functions*parts)}
	for i := range functions * parts {
		s.sites = append(s.sites, &site{number: i, c: []uintptr{uintptr(0x5000 + i)}, goPart: []uintptr{0x10000, uintptr(0x20000 + i/parts)}})
	}
	return s
}

// add allocates blocks that are freed before a look.
func (s *simulated) add(stack, blocks int, size float64, until int) {
	p := -math.Expm1(-size / DefaultRate)
	one := s.sites[stack]
	for {
		// How many are not sampled before the next one that is.
		skipped := math.Log(1-s.random.Float64()) / math.Log1p(-p)
		if skipped >= float64(blocks) {
			return
		}
		blocks -= int(skipped) + 1
		b := sampledBlock{until, 1 / p, size, (1/p - 1) / p * size * size}
		one.allocs += b.weight
		one.allocBytes += b.weight * size
		one.allocVar += b.vary
		s.blocks[stack] = append(s.blocks[stack], b)
	}
}

// each frees what is to be freed before a look, and has the look see all stacks.
func (s *simulated) each(look int) func(func(*site)) {
	for i, one := range s.sites {
		kept := s.blocks[i][:0]
		for _, b := range s.blocks[i] {
			if b.until > look {
				kept = append(kept, b)
				continue
			}
			one.frees += b.weight
			one.freeBytes += b.weight * b.size
			one.freeVar += b.vary
		}
		s.blocks[i] = kept
	}
	return func(f func(*site)) {
		for i := len(s.sites) - 1; i >= 0; i-- {
			copied := *s.sites[i]
			f(&copied)
		}
	}
}

// forever is after the last look.
const forever = math.MaxInt

// TestSum has an object of 40 parts leak 3.5 MB in a second, of which no part grows fast enough to be seen, and a
// Watch that looks twice in a second, in 200 programs: it is a suspect within ten seconds, in all but two.
func TestSum(t *testing.T) {
	t.Parallel()
	const parts, looks = 40, 20
	missing := 0
	for seed := range uint64(200) {
		s, w := newSimulated(seed, 1, parts), NewWatch(6)
		found := -1
		for look := range looks {
			for part := range parts {
				s.add(part, 1_750_000/parts/1000, 1000, forever)
			}
			if all, _ := w.look(s.each(look)); len(all) > 0 && found < 0 {
				found = look
				if one := all[0]; len(all) != 1 || one.Stacks < 5 || one.stack < 0 || one.stack >= parts || one.GrownError == 0 {
					t.Errorf("program %d: %+v", seed, one)
				}
			}
		}
		if found < 0 {
			missing++
		}
	}
	if missing > 2 {
		t.Errorf("not found in %d programs", missing)
	}
}

// TestNoSuspect has 200 programs whose bytes in use stay as they are, while all, a part, or hardly any of the blocks
// are replaced from look to look. None has a suspect.
func TestNoSuspect(t *testing.T) {
	t.Parallel()
	const functions, parts, looks = 9, 8, 40
	for seed := range uint64(200) {
		s, w := newSimulated(seed, functions, parts), NewWatch(6)
		for look := -30; look < looks; look++ {
			for stack := range functions * parts {
				life := []int{1, 3, 30}[stack/parts%3]
				size := []float64{1000, 50_000, 2 << 20}[stack/parts/3]
				s.add(stack, int(math.Ceil(4_000_000/size/float64(life))), size, look+life)
			}
			each := s.each(look)
			if look < 0 {
				continue // until as many are freed as are made
			}
			steady, _ := w.look(each)
			for _, one := range steady {
				t.Errorf("program %d, look %d: %+v", seed, look, one)
			}
		}
	}
}

// TestLately has a leak of 20 MB from one look to the next that begins at look 9. Two looks later it has grown lately, and six
// looks later it grows.
func TestLately(t *testing.T) {
	t.Parallel()
	s, w := newSimulated(1, 1, 1), NewWatch(6)
	for look := range 20 {
		if look >= 9 {
			s.add(0, 20_000, 1000, forever)
		}
		steady, lately := w.look(s.each(look))
		if len(lately) > 0 != (look >= 10) || len(steady) > 0 != (look >= 14) {
			t.Errorf("look %d: %d grow, %d have grown lately", look, len(steady), len(lately))
		}
		for _, one := range lately {
			if one.Grown < 20_000_000 || one.Grown > 60_000_000 || one.stack != 0 {
				t.Errorf("look %d: %+v", look, one)
			}
		}
	}
}
