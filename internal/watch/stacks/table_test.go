package stacks

import (
	"slices"
	"testing"
)

type entry struct{ pcs []uintptr }

func (e *entry) Callers() []uintptr { return e.pcs }

// TestTable adds stacks, some of which have one sum, and finds each again.
func TestTable(t *testing.T) {
	var table Table[*entry]
	all := [][]uintptr{nil, {0}, {1}, {1, 2}, {2, 1}, {1, 2, 3}}
	for i, pcs := range all {
		e, place := table.Find(pcs)
		if e != nil {
			t.Fatalf("%v is there", pcs)
		}
		table.Add(&entry{pcs}, place)
		if e, _ := table.Find(pcs); e == nil || !slices.Equal(e.pcs, pcs) || table.Len() != i+1 {
			t.Errorf("%v: %v; there are %d", pcs, e, table.Len())
		}
	}
	// An entry of another stack is in the place of this one, and in the next.
	stack := []uintptr{7, 8, 9}
	table.Add(&entry{[]uintptr{70}}, Sum(stack))
	table.Add(&entry{[]uintptr{71}}, Sum(stack)+1)
	e, place := table.Find(stack)
	if e != nil || place != Sum(stack)+2 {
		t.Errorf("%v at %#x, want none at %#x", e, place, Sum(stack)+2)
	}
	e = &entry{stack}
	table.Add(e, place)
	if found, _ := table.Find(stack); found != e {
		t.Errorf("found %v", found)
	}
	if table.Known(5) != nil {
		t.Error("a key is known that was not noted")
	}
	table.Note(5, e)
	table.Note(6, e)
	if table.Known(5) != e || table.Known(6) != e || table.Keys() != 2 {
		t.Errorf("%v and %v", table.Known(5), table.Known(6))
	}
	n := 0
	for range table.All {
		n++
	}
	if n != len(all)+3 || n != table.Len() {
		t.Errorf("All yields %d entries of %d", n, table.Len())
	}
}

// TestSum compares the sums of many stacks that differ little.
func TestSum(t *testing.T) {
	seen := map[uint64]bool{}
	n := 0
	add := func(pcs ...uintptr) {
		n++
		for i := range pcs {
			pcs[i] += 1 << 22 // where code begins on linux
		}
		seen[Sum(pcs)] = true
	}
	for i := range uintptr(100) {
		add(i)
		for j := range uintptr(100) {
			add(i, j)
			add(i<<20, j<<20)
			add(j, i, 0)
		}
	}
	if want := n - 1; len(seen) != want { // {0, 0} comes twice
		t.Errorf("%d sums of %d stacks", len(seen), want)
	}
}

func BenchmarkKnown(b *testing.B) {
	var table Table[*entry]
	table.Note(5, &entry{})
	for b.Loop() {
		table.Known(5)
	}
}
