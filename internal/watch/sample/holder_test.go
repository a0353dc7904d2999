package sample

import (
	"maps"
	"math/rand/v2"
	"testing"
)

// TestDropManyHolders has very many holders with few samples each, and drops one after the other.
// Drop goes through the list of the holder, and not through all samples: one that is not on the
// list stays.
func TestDropManyHolders(t *testing.T) {
	defer SetRate(SetRate(1))
	const holders, each = 10_000, 10
	live := Live()
	all := make([]*Holder, holders)
	p := uintptr(1 << 30)
	for i := range all {
		all[i] = &Holder{Name: "drop"}
		for range each {
			p += 16
			Add(p, 64, all[i])
		}
	}
	defer func() { // the map does not shrink, and other tests look at its size
		table.mu.Lock()
		defer table.mu.Unlock()
		small := map[uintptr]*record{}
		maps.Copy(small, table.live)
		table.live, table.records = small, len(small)
	}()
	off := all[0].first.next
	off.unlink()
	Drop(all[0])
	if n, want := Live()-live, (holders-1)*each+1; n != want {
		t.Errorf("%d samples after the first holder was dropped, want %d: one is not on its list", n, want)
	}
	off.prev = nil
	off.link()
	for i, h := range all {
		Drop(h)
		if n, want := Live()-live, (holders-1-i)*each; n != want {
			t.Fatalf("%d samples after %d holders were dropped, want %d", n, i+1, want)
		}
	}
}

// TestDropModel adds and ends samples of several holders at random, and compares what is live with
// a list of them.
func TestDropModel(t *testing.T) {
	defer SetRate(SetRate(1))
	r := rand.New(rand.NewPCG(1, 2))
	var all [5]*Holder
	of := map[uintptr]*Holder{}
	for i := range all {
		all[i] = &Holder{Name: "model"}
	}
	live := Live()
	for i := range 20_000 {
		p, h := uintptr(1<<30+r.IntN(60)*16), all[r.IntN(len(all))]
		switch n := r.IntN(100); {
		case n < 55:
			Add(p, 16, h) // perhaps of another holder, whose block was freed unseen
			of[p] = h
		case n < 98:
			Remove(p)
			delete(of, p)
		default:
			Drop(h)
			maps.DeleteFunc(of, func(_ uintptr, o *Holder) bool { return o == h })
		}
		if n := Live() - live; n != len(of) {
			t.Fatalf("step %d: %d samples are live, want %d", i, n, len(of))
		}
	}
	for _, h := range all {
		for r := h.first; r != nil; r = r.next {
			if of[r.p] != h || table.live[r.p] != r || r.prev == nil && h.first != r {
				t.Fatal("a list has a sample that is not the holder's")
			}
			delete(of, r.p)
		}
		Drop(h)
	}
	if n := Live() - live; n != 0 || len(of) != 0 {
		t.Errorf("%d samples are left, %d are in no list", n, len(of))
	}
}
