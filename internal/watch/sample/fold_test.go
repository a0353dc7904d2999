package sample

import (
	"math"
	"testing"
)

// TestFold has one place allocate and free blocks of very many sizes. The table stays small, and
// no count is lost. What is in use keeps its size.
func TestFold(t *testing.T) {
	defer SetRate(SetRate(1))
	const sizes, each = 20_000, 3
	h := &Holder{Name: unique("fold")}
	defer Drop(h)
	const inUse = uintptr(1 << 20)
	for i := range uintptr(10) {
		Add(inUse+i, 1000+i, h)
	}
	p, blocks, space := uintptr(1<<21), 10.0, 10*1000+45.0
	for range each {
		for size := range uintptr(sizes) {
			p += 16
			Add(p, size+1, h)
			if size%2 == 0 {
				SetPool(p, "pool")
			}
			Remove(p)
			blocks++
			space += float64(size + 1)
		}
	}
	var sum Site
	lives, kept, n := Life{}, 0, 0
	for _, s := range Sites() {
		if s.Heap != h.Name {
			continue
		}
		n++
		sum.Allocs += s.Allocs
		sum.Frees += s.Frees
		sum.Space += s.Space
		for _, l := range s.Lives {
			lives.Blocks += l.Blocks
			lives.Total += l.Total
		}
		if s.Allocs > s.Frees {
			kept++
			if s.Size < 1000 || s.Size >= 1010 {
				t.Errorf("a block in use has %d bytes", s.Size)
			}
		} else if math.Abs(s.Space/s.Allocs-float64(s.Size)) > 0.5 {
			t.Errorf("%v blocks of %v bytes are said to have %d each", s.Allocs, s.Space, s.Size)
		}
	}
	if sum.Allocs != blocks || sum.Frees != blocks-10 || sum.Space != space || lives.Blocks != blocks-10 || lives.Total <= 0 {
		t.Errorf("%v allocated, %v freed, %v bytes, lives of %v; want %v, %v, %v, %v", sum.Allocs, sum.Frees, sum.Space, lives.Blocks, blocks, blocks-10, space, blocks-10)
	}
	if kept != 10 {
		t.Errorf("%d sites have blocks in use, want 10", kept)
	}
	if most := int64(512 << 10); Bytes() > most || n > int(most)/siteBytes {
		t.Errorf("%d sites, %d bytes of tables; want at most %d", n, Bytes(), most)
	}

	// The counters agree with what is there.
	table.mu.Lock()
	defer table.mu.Unlock()
	var c counted
	for st := range table.stacks.All {
		c.numStacks++
		c.frames += len(st.pcs)
		c.sites += len(st.sites)
		for _, s := range st.sites {
			c.lives += len(s.lives)
		}
	}
	if c.numStacks != table.numStacks || c.frames != table.frames || c.sites != table.sites || c.lives != table.lives {
		t.Errorf("%d stacks, %d frames, %d sites and %d lives; counted %d, %d, %d and %d", c.numStacks, c.frames, c.sites, c.lives, table.numStacks, table.frames, table.sites, table.lives)
	}
	if table.inUse < -1 || int64(len(table.live)) != Count() {
		t.Errorf("%v bytes in use, %d samples, counted %d", table.inUse, len(table.live), Count())
	}
}
