package batch

import (
	"fmt"
	"slices"
	"testing"
)

// splitBatch returns a sealed batch with n of size entries, and its sentinels. It was split.
func splitBatch(t *testing.T, k *Spec, size, n uint32) (*Batch, []*Sentinel) {
	defer func(was bool) { Leak = was }(Leak)
	Leak = true // the test finds the sentinels itself
	if k.Release == nil {
		k.Release = func(any, []uintptr) error { return nil }
	}
	b := New(k, nil, nil, size, FineShare)
	b.Probe = true
	sentinels := b.NewSentinels(nil, nil)
	for i := range n {
		b.Put(int(i), uintptr(i+1), 10, 0)
	}
	b.Seal(sentinels[0], n, int64(10*n))
	if !b.outlived(sentinels[0]) || b.parts == nil {
		t.Fatal("the batch was not split")
	}
	return b, sentinels
}

// TestSplitUnused splits a batch that has room for more. What was never used is not taken
// for owners that are dead, and its pages are dropped.
func TestSplitUnused(t *testing.T) {
	var k Spec
	m := newModel(t)
	k.Releaser = direct{m}
	b, sentinels := splitBatch(t, &k, 8<<pageShift, 2<<FineShare)
	for i, p := range b.pages {
		if (p != nil) != (i == 0) {
			t.Errorf("page %d is there: %v", i, p != nil)
		}
	}
	expect := func(all, living int) {
		t.Helper()
		if m := &k.mix; m.sentinels != all || m.living != living {
			t.Errorf("%d sentinels and %d living, want %d and %d", m.sentinels, m.living, all, living)
		}
	}
	b.outlived(sentinels[1])
	expect(2, 2)
	b.lost(1)
	expect(2, 1)
	b.lost(0)
	expect(0, 0)
}

// TestSplitJobs passes three sentinels to a releaser. A job whose entries another one has taken
// does not look at all sentinels again.
func TestSplitJobs(t *testing.T) {
	var k Spec
	m := newModel(t)
	k.Releaser = direct{m}
	b, _ := splitBatch(t, &k, 8<<FineShare, 8<<FineShare)
	claim := func(j uint32, want int) {
		t.Helper()
		d := Claim{Job: JobOf(b, Lost|j), Others: true}
		if p := d.Step(int(b.Len())); p.K != want || d.Next != b.Len() {
			t.Errorf("the job of sentinel %d takes %d entries, want %d; the next one is %d", j, p.K, want, d.Next)
		}
	}
	b.lost(1)
	b.lost(2)
	claim(1, 2<<FineShare)
	b.lost(3)
	claim(2, 0)
	claim(3, 1<<FineShare)
	claim(3, 0)
}

// later is the releaser of kinds whose dead batches and queued entries the test releases.
type later struct{}

func (later) Closed(b *Batch, i uint32) Outcome { return Outcome{} }
func (later) Dead(Job)                          {}

// TestSplitPages has the sentinels of one page dead and claimed, and those of the other dead
// only. A page stays while an entry of it has to be released, and no longer.
func TestSplitPages(t *testing.T) {
	for _, queues := range []bool{false, true} {
		t.Run(fmt.Sprint("queues=", queues), func(t *testing.T) {
			const page, n = 1 << pageShift, 2 << pageShift
			const each = page >> FineShare // sentinels of a page
			var released []uintptr
			k := Spec{Releaser: later{}, Queues: queues}
			k.Release = func(_ any, r []uintptr) error {
				released = append(released, r...)
				return nil
			}
			used := Outside()
			b, sentinels := splitBatch(t, &k, n, n)
			closed := []uint32{0, page - 4, page - 3, page - 2, page - 1} // all of the last sentinel
			for _, i := range closed {
				sentinels[i>>FineShare].Close(i)
			}
			claim := func(j uint32) {
				d := Claim{Job: JobOf(b, Lost|j)}
				p := d.Step(n)
				p.Release()
			}
			for j := range uint32(each) {
				b.lost(each + j)
			}
			for j := range uint32(each) {
				b.lost(j)
				if j < each-1 {
					claim(j)
				}
			}
			for i, want := range []bool{queues, true} {
				if got := b.pages[i] != nil; got != want {
					t.Errorf("page %d is there: %v, want %v", i, got, want)
				}
			}
			if !queues {
				closed = nil
			}
			for _, i := range closed {
				if i != 0 {
					b.Release(i)
				}
			}
			for j := range uint32(each) {
				claim(each + j)
			}
			if queues {
				b.Release(0) // drops the pages before it returns
			}
			if noPage != [page]Entry{} {
				t.Error("an entry of a page that was dropped was written")
				noPage = [page]Entry{}
			}
			if slices.Sort(released); len(released) != n || released[0] != 1 || len(slices.Compact(released)) != n {
				t.Errorf("released: %v", released)
			}
			if now := Outside(); now != used {
				t.Errorf("%d bytes of pages are left", now-used)
			}
		})
	}
}

// TestClaimAfterDestroy has the collector find a batch whose entries a Close of the pool has closed.
// Nothing is left when the job of the batch begins, not even the pages.
func TestClaimAfterDestroy(t *testing.T) {
	defer func(was bool) { Leak = was }(Leak)
	Leak = true
	const n = 2 << pageShift
	released := 0
	k := Spec{Releaser: later{}}
	k.Release = func(_ any, r []uintptr) error { released += len(r); return nil }
	b := New(&k, nil, nil, n, FineShare)
	sentinels := b.NewSentinels(nil, nil)
	for i := range n {
		b.Put(i, uintptr(i+1), 10, 0)
	}
	b.Seal(sentinels[0], n, 10*n)
	p := Pick(b)
	for i := range uint32(n) {
		e, _, _ := b.Shut(i)
		p.Add(e)
	}
	b.lost(0)
	p.Release()
	d := Claim{Job: JobOf(b, All)}
	if p := d.Step(n); p.K != 0 || d.Found != 0 || d.Next != n {
		t.Errorf("%d entries are claimed, %d found, the next is %d", p.K, d.Found, d.Next)
	}
	if b.outside && b.pages[0] != nil || released != n {
		t.Errorf("the pages are dropped: %v; %d entries are released, want %d", b.pages[0] == nil, released, n)
	}
}

// TestSplitPagesOfClosed closes all owners of a batch that was split. One that is reachable
// may look at its entry, so its page stays.
func TestSplitPagesOfClosed(t *testing.T) {
	const n = 2 << pageShift
	k := Spec{Releaser: later{}}
	b, sentinels := splitBatch(t, &k, n, n)
	used := Outside()
	for i := range uint32(n) {
		sentinels[i>>FineShare].Close(i)
	}
	for j := range sentinels {
		first, last := j < len(sentinels)/2, j == len(sentinels)-1
		for page, want := range []bool{first, true} {
			if got := b.pages[page] != nil; got != want {
				t.Fatalf("%d sentinels are dead, page %d is there: %v, want %v", j, page, got, want)
			}
		}
		b.lost(uint32(j))
		if left := Outside() - used; last && b.outside && left != -2*int64(pageBytes) {
			t.Errorf("%d bytes of pages went back", -left)
		}
	}
}
