package ledger

import "testing"

// splitBatch returns a sealed batch with n of size entries, and its tokens. It was split.
func splitBatch(t *testing.T, k *Kind, size, n uint32) (*Ledger, []*Token) {
	defer func(was bool) { Leak = was }(Leak)
	Leak = true // the test finds the tokens itself
	if k.Release == nil {
		k.Release = func(any, []uintptr) error { return nil }
	}
	l := New(k, nil, nil, size, FineShare)
	l.Probe = true
	tokens := l.NewTokens(nil, nil)
	for i := range n {
		l.Put(int(i), uintptr(i+1), 10, 0)
	}
	l.Seal(tokens[0], n, int64(10*n))
	if !l.outlived(tokens[0]) || l.parts == nil {
		t.Fatal("the batch was not split")
	}
	return l, tokens
}

// TestSplitUnused splits a batch that has room for more. What was never used is not taken
// for owners that are dead, and its pages are dropped.
func TestSplitUnused(t *testing.T) {
	var k Kind
	m := newModel(t)
	k.Sink = direct{m}
	l, tokens := splitBatch(t, &k, 8<<pageShift, 2<<FineShare)
	for i, p := range l.pages {
		if (p != nil) != (i == 0) {
			t.Errorf("page %d is there: %v", i, p != nil)
		}
	}
	expect := func(all, living int) {
		t.Helper()
		if m := &k.mix; m.tokens != all || m.living != living {
			t.Errorf("%d tokens and %d living, want %d and %d", m.tokens, m.living, all, living)
		}
	}
	l.outlived(tokens[1])
	expect(2, 2)
	l.lost(1)
	expect(2, 1)
	l.lost(0)
	expect(0, 0)
}

// TestSplitJobs passes three tokens to a sink. A job whose entries another one has taken
// does not look at all tokens again.
func TestSplitJobs(t *testing.T) {
	var k Kind
	m := newModel(t)
	k.Sink = direct{m}
	l, _ := splitBatch(t, &k, 8<<FineShare, 8<<FineShare)
	claim := func(j uint32, want int) {
		t.Helper()
		d := Dead{Ledger: l, Job: Lost | j, Others: true}
		if p := d.Claim(int(l.Len())); p.K != want || d.Next != l.Len() {
			t.Errorf("the job of token %d takes %d entries, want %d; the next one is %d", j, p.K, want, d.Next)
		}
	}
	l.lost(1)
	l.lost(2)
	claim(1, 2<<FineShare)
	l.lost(3)
	claim(2, 0)
	claim(3, 1<<FineShare)
	claim(3, 0)
}
