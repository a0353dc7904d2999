package workloads

import (
	"math/bits"
	"unsafe"

	"github.com/cheapgo/cheap"
)

// The workloads of one goroutine on a Heap. Each allocator has its own: a call through an
// interface or a type parameter would cost a tenth of the faster workloads.

func simpleOnHeap(m *cheap.Heap, s table, n int) (t Tally) {
	left := uint32(n)
	for {
		for size := uint32(simpleLeast); size <= simpleMost; size *= 2 {
			for batch := uint32(simpleBatch); batch <= simplePlaces; batch *= 4 {
				for range simplePlaces / batch {
					b := min(batch, left)
					left -= b
					for i := range b {
						block := m.Malloc(int(size))
						t.put(block, size, i)
						s.set(i, block)
					}
					for i := range b / 2 {
						t.take(s.at(i))
						m.Free(s.at(i))
					}
					for i := b; i > b/2; i-- {
						t.take(s.at(i - 1))
						m.Free(s.at(i - 1))
					}
					if left == 0 {
						return t
					}
				}
			}
		}
	}
}

func allocTestOnHeap(m *cheap.Heap, s table, n int) (t Tally) {
	r := newRandom(0)
	for left := n; left > 0; {
		i := allocTestPlace(&r)
		if block := s.at(i); block != nil {
			t.take(block)
			m.Free(block)
			s.set(i, nil)
			continue
		}
		x := r.next()
		base := uint32(allocTestLeast) << bits.TrailingZeros32(x|allocTestDoublings)
		size := base + x>>8&(base-1)
		block := m.Malloc(int(size))
		t.put(block, size, x)
		s.set(i, block)
		left--
	}
	freeAllOnHeap(m, s, allocTestPlaces, &t)
	return t
}

func shOnHeap(m *cheap.Heap, s table, n int) (t Tally) {
	size, run := uint32(shLeast), shRun(shLeast)
	for pass := 0; ; pass++ {
		for i := range uint32(3 * shThird) {
			if s.at(i) != nil {
				continue
			}
			block := m.Malloc(int(size))
			t.put(block, size, i)
			s.set(i, block)
			if n--; n == 0 {
				freeAllOnHeap(m, s, 3*shThird, &t)
				return t
			}
			if run--; run == 0 {
				if size += size/4 + 4; size > shMost {
					size = shLeast
				}
				run = shRun(size)
			}
		}
		// One third stays until the next pass.
		from := uint32((pass + 1) % 3 * shThird)
		for i := from; i < from+shThird; i++ {
			t.take(s.at(i))
			m.Free(s.at(i))
			s.set(i, nil)
		}
		from = uint32((pass + 2) % 3 * shThird)
		for i := from + shThird; i > from; i-- {
			t.take(s.at(i - 1))
			m.Free(s.at(i - 1))
			s.set(i-1, nil)
		}
	}
}

func mixtureOnHeap(m *cheap.Heap, s table, n int) (t Tally) {
	r := newRandom(0)
	for range n {
		i, kind, size := r.below(mixturePlaces), r.below(100), mixtureSize(&r)
		block := s.at(i)
		if block != nil {
			t.take(block)
			if kind < mixtureReallocs {
				block = m.Realloc(block, int(size))
				t.Sum += *word(block) // is kept
				t.put(block, size, i)
				s.set(i, block)
				continue
			}
			m.Free(block)
		}
		switch {
		case kind < mixtureMallocs:
			block = m.Malloc(int(size))
		case kind < mixtureCallocs:
			block = m.Calloc(1, int(size))
			t.Sum += *word(block) // is zero
		default:
			block = m.AlignedMalloc(int(size), mixtureAlign)
			t.Sum += uint64(uintptr(block) % mixtureAlign)
		}
		t.put(block, size, i)
		s.set(i, block)
	}
	freeAllOnHeap(m, s, mixturePlaces, &t)
	return t
}

func sawtoothOnHeap(m *cheap.Heap, s table, n int) (t Tally) {
	r := newRandom(0)
	kept, survivors := s.from(toothPlaces), uint32(0)
	for base := uint32(toothLeast); n > 0; {
		count := uint32(0)
		for bytes := uint32(0); bytes < toothBytes && n > 0; n-- {
			size := base + r.below(base)
			block := m.Malloc(int(size))
			t.put(block, size, count)
			s.set(count, block)
			count++
			bytes += size
		}
		for i := range count {
			block := s.at(i)
			s.set(i, nil)
			if r.below(toothSurvivors) == 0 && survivors < keptPlaces {
				kept.set(survivors, block)
				survivors++
				continue
			}
			t.take(block)
			m.Free(block)
		}
		if base *= 2; base > toothMost {
			base = toothLeast
		}
	}
	freeAllOnHeap(m, kept, keptPlaces, &t)
	return t
}

func largeOnHeap(m *cheap.Heap, s table, n int) (t Tally) {
	r := newRandom(0)
	for range n {
		i := r.below(largePlaces)
		if block := s.at(i); block != nil {
			t.take(block)
			m.Free(block)
		}
		size := largeLeast + r.below(largeMost-largeLeast)
		block := m.Malloc(int(size))
		t.put(block, size, i)
		for at := uint32(largePage); at < size-largePage; at += largePage {
			*word(unsafe.Add(block, at)) = uint64(at)
		}
		s.set(i, block)
	}
	freeAllOnHeap(m, s, largePlaces, &t)
	return t
}

// freeAllOnHeap empties a table.
func freeAllOnHeap(m *cheap.Heap, s table, places uint32, t *Tally) {
	for i := range places {
		if block := s.at(i); block != nil {
			t.take(block)
			m.Free(block)
			s.set(i, nil)
		}
	}
}
