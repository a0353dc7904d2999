//go:build cgo && unix

package cside

import (
	"sync"
	"testing"
	"unsafe"

	"github.com/cheapgo/cheap"
)

func TestBlocks(t *testing.T) {
	const each, goroutines = 10_000, 4
	ResetPeak()
	before := Count()
	var all sync.WaitGroup
	for g := range goroutines {
		all.Go(func() {
			blocks := make([]uintptr, each)
			for i := range blocks {
				blocks[i] = uintptr(CreateBlock())
			}
			if g == 0 {
				for i := range blocks {
					Destroy(cheap.Pointer(blocks[i]))
				}
			} else {
				DestroyAll(blocks)
			}
		})
	}
	all.Wait()
	after := Count()
	if c, d := after.Created-before.Created, after.Destroyed-before.Destroyed; c != each*goroutines || d != c {
		t.Errorf("created %d, destroyed %d, want %d", c, d, each*goroutines)
	}
	if after.Peak < each*BlockSize*99/100 || after.Peak > each*goroutines*BlockSize {
		t.Errorf("the peak is %d bytes", after.Peak)
	}
	ResetPeak()
	if c := Count(); c.Peak != int64(before.Created-before.Destroyed)*BlockSize {
		t.Errorf("after a reset the peak is %d bytes", c.Peak)
	}
}

// TestPeak makes blocks on one thread and destroys them on others, a part of
// them at a time.
func TestPeak(t *testing.T) {
	ResetPeak()
	live := int64(Count().Created - Count().Destroyed)
	for range 5 {
		blocks := make([]uintptr, 20_000)
		for i := range blocks {
			blocks[i] = uintptr(CreateBlock())
		}
		var all sync.WaitGroup
		for rest := blocks; len(rest) > 0; rest = rest[1000:] {
			all.Go(func() { DestroyAll(rest[:1000]) })
		}
		all.Wait()
	}
	want := (live + 20_000) * BlockSize
	if got := Count().Peak; got < want*99/100 || got > want*101/100 {
		t.Errorf("the peak is %d bytes, want %d", got, want)
	}
}

func TestLedger(t *testing.T) {
	for _, reuse := range []bool{false, true} {
		l := NewLedger(10, reuse)
		defer l.Close()
		a, b := l.Create(), l.Create()
		l.Depend(a, b)
		if !l.Use(a, 3) || !l.Use(b, 1) {
			t.Error("not alive")
		}
		l.Destroy(a)
		if c := l.Create(); (c == a) != reuse {
			t.Errorf("reuse %v: %p, then %p", reuse, a, c)
		} else {
			l.DestroyAll(nil, []uintptr{uintptr(c), uintptr(b)})
		}
		if r := l.Report(); r.Err() != nil || r.Created != 3 || r.Destroyed != 3 {
			t.Errorf("%+v", r)
		}
	}
}

// TestLedgerSees makes each of the mistakes that a ledger detects.
func TestLedgerSees(t *testing.T) {
	for _, c := range []struct {
		name string
		do   func(l *Ledger)
		want Report
	}{
		{"leak", func(l *Ledger) { l.Create() }, Report{Created: 1, Live: 1}},
		{"twice", func(l *Ledger) {
			p := l.Create()
			l.Destroy(p)
			l.DestroyAll(nil, []uintptr{uintptr(p)})
		}, Report{Created: 1, Destroyed: 1, Twice: 1}},
		{"use", func(l *Ledger) {
			p := l.Create()
			l.Destroy(p)
			if l.Use(p, 2) {
				t.Error("alive")
			}
		}, Report{Created: 1, Destroyed: 1, DeadUses: 2}},
		{"orphan", func(l *Ledger) {
			child, parent := l.Create(), l.Create()
			l.Depend(child, parent)
			l.Destroy(parent)
			l.Destroy(child)
		}, Report{Created: 2, Destroyed: 2, Orphans: 1}},
	} {
		l := NewLedger(2, false)
		c.do(l)
		if r := l.Report(); r != c.want || r.Err() == nil {
			t.Errorf("%s: %+v, %v", c.name, r, r.Err())
		}
		l.Close()
	}
}

func TestCPUTime(t *testing.T) {
	for before := CPUTime(); CPUTime() <= before; { // until the test program is ended, if it stands still
	}
}

func TestCalls(t *testing.T) {
	if got := Add(2, 3); got != 5 {
		t.Errorf("Add(2, 3) = %d", got)
	}
	if got := AddQuiet(2, 3); got != 5 {
		t.Errorf("AddQuiet(2, 3) = %d", got)
	}
	p := (*[64]byte)(Malloc(64))
	if p == nil || uintptr(unsafe.Pointer(p))%8 != 0 {
		t.Fatalf("malloc returned %p", p)
	}
	p[0], p[63] = 1, 2
	Free(unsafe.Pointer(p))
}

func TestTake(t *testing.T) {
	for _, n := range []int{2, 20, 1024} {
		text := Text(n)
		if len(text) != n {
			t.Fatalf("a text of %d bytes has %d", n, len(text))
		}
		before := Taken()
		b := []byte(text)
		Take(unsafe.Pointer(unsafe.SliceData(b)), n)
		TakeCString(text)
		b[n-1] = 0
		Take(unsafe.Pointer(unsafe.SliceData(b)), n)
		if got := Taken() - before; got != 2 {
			t.Errorf("C counted %d texts, want 2, for the third is cut off", got)
		}
	}
}
