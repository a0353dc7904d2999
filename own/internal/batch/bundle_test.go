package batch

import (
	"cmp"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
)

// inOrder reports whether addresses are in the order of their cache lines.
func inOrder(words []uintptr) bool {
	return slices.IsSortedFunc(words, func(a, b uintptr) int { return cmp.Compare(a>>lineShift, b>>lineShift) })
}

// TestSortAddresses sorts addresses that are near each other, far from each other, and equal.
func TestSortAddresses(t *testing.T) {
	var spare []uintptr
	for _, n := range []int{0, 1, 2, fewAddresses - 1, fewAddresses, 255, 256, 1000, 8192, 20_000} {
		for name, next := range map[string]func(i int) uintptr{
			"near":       func(int) uintptr { return 0xc0000000 + uintptr(rand.Uint32N(1<<22)) },
			"far":        func(int) uintptr { return uintptr(rand.Uint64()) },
			"two arenas": func(i int) uintptr { return uintptr(i%2)*(^uintptr(0)>>1) + uintptr(rand.Uint32N(1<<20)) },
			"descending": func(i int) uintptr { return ^uintptr(0) - uintptr(i)*112 },
			"ascending":  func(i int) uintptr { return uintptr(i) * 112 },
			"equal":      func(int) uintptr { return 1 << 20 },
			"runs":       func(i int) uintptr { return uintptr(uint32(i)*0x9e3779b1>>7&0xff)<<20 + uintptr(i%40)*112 },
			"slabs":      func(i int) uintptr { return uintptr((i>>7)*89%97)<<20 + uintptr(i&127)*112 },
			"slabs down": func(i int) uintptr { return uintptr((i>>7)*89%97)<<20 - uintptr(i&127)*112 + 1<<16 },
			"within":     func(i int) uintptr { return uintptr(i>>6)<<12 + uintptr(i&63)*448 },
			"one line":   func(int) uintptr { return 1<<20 + rand.N[uintptr](1<<lineShift) },
		} {
			words := make([]uintptr, n, n+n/3)
			for i := range words {
				words[i] = next(i)
			}
			want := slices.Sorted(slices.Values(words))
			words, spare = sortAddresses(words, spare)
			if !inOrder(words) {
				t.Errorf("%d addresses, %s: they are not in order", n, name)
			}
			slices.Sort(words)
			if !slices.Equal(words, want) {
				t.Errorf("%d addresses, %s: some are lost", n, name)
			}
		}
	}
}

// TestBundle releases dead batches, lost sentinels and a batch of which some entries were
// closed, all in one call, in the order of their addresses.
func TestBundle(t *testing.T) {
	var k Spec
	var calls, told int
	var got []uintptr
	failure := errors.New("failed")
	k.Release = func(_ any, words []uintptr) error {
		calls++
		got = append(got, words...)
		if k.Counts.Owners.Load() == 0 {
			t.Error("entries count as released within the release function")
		}
		return failure
	}
	k.OnCollect = func(count int, _ string) { told += count }
	k.Releaser = later{}
	const n, size = 3, 8 << FineShare
	var b Bundle
	for range 2 { // a bundle is used again
		calls, told, got = 0, 0, nil
		want := size*n + 2<<FineShare
		for range n {
			l, _ := splitBatch(t, &k, size, size)
			for j := range l.sentinels() {
				l.lost(j)
			}
			if JobOf(l, Lost|1).Size != 1<<FineShare {
				t.Error("a sentinel of a batch has another number of entries")
			}
			b.add(JobOf(l, Lost|1)) // and all others
			b.add(JobOf(l, Lost))   // finds nothing
		}
		l, _ := splitBatch(t, &k, size, size)
		l.lost(2)
		l.lost(5)
		b.add(JobOf(l, Lost|5))
		if b.n != want {
			t.Errorf("the bundle has %d entries, want %d", b.n, want)
		}
		before := k.Counts.Owners.Load()
		if o := b.releaseSome(b.left()); o.Err != failure || o.Parent != nil {
			t.Errorf("releaseSome returns %v", o)
		}
		if calls != 1 || len(got) != want || !inOrder(got) {
			t.Errorf("%d calls, %d resources, want %d; in order: %v", calls, len(got), want, inOrder(got))
		}
		if n := k.Counts.Owners.Load(); n != before-int64(want) {
			t.Errorf("%d entries are left, want %d", n, before-int64(want))
		}
		tell(&b)
		if told != want {
			t.Errorf("OnCollect is told of %d, want %d", told, want)
		}
		b.reset()
		l.lost(0) // and the rest, so that nothing is left
		for j := range l.sentinels() {
			if j != 0 && j != 2 && j != 5 {
				l.lost(j)
			}
		}
		b.add(JobOf(l, Lost))
		b.releaseSome(b.left())
		tell(&b)
		b.reset()
	}
	if n := k.Counts.Owners.Load(); n != 0 {
		t.Errorf("%d entries are left", n)
	}
}

// TestBundlePanics lets the release function panic. All its entries count as released.
func TestBundlePanics(t *testing.T) {
	var k Spec
	k.Release = func(any, []uintptr) error { panic("planned") }
	k.Releaser = later{}
	var b Bundle
	for range 3 {
		l, _ := splitBatch(t, &k, 8, 8)
		l.lost(0)
		b.add(JobOf(l, Lost))
	}
	func() {
		defer func() {
			if recover() != "planned" {
				t.Error("the panic is lost")
			}
		}()
		b.releaseSome(b.left())
	}()
	if n := k.Counts.Owners.Load(); n != 3*8-3<<FineShare {
		t.Errorf("%d entries are left", n)
	}
}

// TestJobs asks which jobs may be bundled.
func TestJobs(t *testing.T) {
	var k Spec
	k.Release = func(any, []uintptr) error { return nil }
	k.Releaser = later{}
	one := New(&k, nil, nil, 1, OneSentinel)
	one.SealStock()
	many := New(&k, nil, nil, 9, OneSentinel)
	many.SealStock()
	child := New(&k, nil, &Family{}, 9, OneSentinel)
	child.n = 9
	if JobOf(child, All).Parent != child.kin.family || JobOf(many, All).Parent != nil {
		t.Error("a job has the wrong parent")
	}
	for _, c := range []struct {
		name string
		b    *Batch
		job  uint32
		want int32
	}{
		{"a batch of one", one, All, 0},
		{"a batch", many, All, 9},
		{"a parent", many, 3, 0},
		{"children", child, All, 9},
	} {
		if got := JobOf(c.b, c.job).Size; got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}

// TestLargeBundle releases more than fits into Go memory that the bundle keeps. After that
// its memory has gone back.
func TestLargeBundle(t *testing.T) {
	var k Spec
	var got []uintptr
	k.Release = func(_ any, words []uintptr) error {
		got = append(got, words...)
		return nil
	}
	k.Releaser = later{}
	for _, n := range []int{smallBundle, smallBundle + 1, 9000, 40_000} {
		var b Bundle
		got = nil
		b.grow(n - n/10) // it gets more than was said
		if large := n-n/10 > smallBundle; useStore && (b.base != 0) != large {
			t.Errorf("%d entries: units are taken: %v", n, b.base != 0)
		}
		const size = 250
		for i := 0; i < n; i += size {
			m := min(size, n-i)
			l := New(&k, nil, nil, uint32(m), OneSentinel)
			words := make([]uintptr, m)
			for j := range words {
				words[j] = uintptr(rand.Uint32N(1<<26)) << lineShift
			}
			l.Fill(words)
			l.SealStock()
			b.add(JobOf(l, All))
		}
		if o := b.releaseSome(b.left()); o != (Outcome{}) || len(got) != n || !slices.IsSorted(got) {
			t.Errorf("%d entries: %d are released, in order: %v", n, len(got), slices.IsSorted(got))
		}
		b.reset()
		if b.base != 0 || cap(b.words) > smallBundle && n-n/10 > smallBundle && useStore {
			t.Errorf("%d entries: the bundle keeps memory for %d words", n, cap(b.words))
		}
	}
	if n := k.Counts.Owners.Load(); n != 0 {
		t.Errorf("%d entries are left", n)
	}
}

// tell tells of all jobs.
func tell(b *Bundle) {
	for len(b.parts) > 0 {
		b.tell()
	}
}
