package own

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/cheapgo/cheap/internal/test/testcall"
)

// sizes returns the sizes of open owners, sorted.
func sizes(p *Pool) (all []int64) {
	for o := range p.Live() {
		all = append(all, int64(o.Size))
	}
	slices.Sort(all)
	return all
}

// TestLive makes owners in open, full and large batches, closes some, and drops others.
func TestLive(t *testing.T) {
	w := newWorld(t, 1000)
	p := w.pool(Options{Batch: 8})
	var held []*thing
	want := []int64{1 << 20}
	for i := range 100 {
		held = append(held, w.own(t, p, i+1))
		if i%3 == 0 {
			held[i].Close()
		} else {
			want = append(want, int64(i+1))
		}
	}
	held = append(held, w.own(t, p, 1<<20))
	slices.Sort(want)
	if got := sizes(p); !slices.Equal(got, want) {
		t.Errorf("open are %d, want %d", got, want)
	}
	if n := int64(len(sizes(p))); n != p.Stats().Live {
		t.Errorf("%d are live, and the statistics have %d", n, p.Stats().Live)
	}
	for o := range p.Live() {
		if o.Label != "" || o.Stack != "" || o.Uses != 0 {
			t.Errorf("%+v", o)
		}
		break // an iteration may end early
	}
	runtime.KeepAlive(held)
	held = nil
	collectAtMost(t, few, "all owners", func() bool { return w.alive() == 0 })
	if got := sizes(p); len(got) > 0 {
		t.Errorf("open are %d, and all are collected", got)
	}
}

// TestLiveTells looks at label, uses and stack of an owner.
func TestLiveTells(t *testing.T) {
	w := newWorld(t, 10)
	p := w.pool(Options{Name: "bread", Trace: true})
	a, b := bakery(t, w, p), butchery(t, w, p)
	a.SetLabel("rye")
	a.SetLabel("wheat")
	seen := 0
	a.Use(func(unsafe.Pointer) {
		for o := range p.Live() {
			seen++
			frame := "own.butchery"
			uses := 0
			if o.Label == "wheat" {
				frame, uses = "own.bakery", 1
			} else if o.Label != "" {
				t.Errorf("the label is %q", o.Label)
			}
			if !slices.Contains(frames(o.Stack), frame) || o.Uses != int64(uses) || o.Size != 10 {
				t.Errorf("%+v", o)
			}
		}
	})
	if seen != 2 {
		t.Errorf("%d owners", seen)
	}
	b.Close()
	b.SetLabel("veal") // closed: nothing to name
	new(object).SetLabel("nothing")
	e := destroyError(t, p, waiting(0))
	if !slices.Equal(e.Labels, []string{"wheat"}) || !strings.Contains(e.Error(), "1 were never closed (wheat)\n") {
		t.Errorf("%q, %v", e.Labels, e)
	}
	runtime.KeepAlive([]*thing{a, b})
}

// TestCloseErrorNamesFewLabels has more labels than the text of an error.
func TestCloseErrorNamesFewLabels(t *testing.T) {
	e := &CloseError{Pool: "p", NeverClosed: 12}
	for i := range 12 {
		e.Labels = append(e.Labels, fmt.Sprintf("%02d", i))
	}
	want := "cheap: p: Pool.Close: 12 were never closed (00, 01, 02, 03, 04, 05, 06, 07, 08, 09 and 2 more)"
	if got := e.Error(); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestLiveOfMemory has blocks and groups.
func TestLiveOfMemory(t *testing.T) {
	m := NewMemory(nil, MemoryOptions{})
	var blocks []*Bytes
	for range 1000 {
		b, err := m.NewBytes(24)
		testcall.Must(t, err)
		blocks = append(blocks, b)
	}
	for _, b := range blocks[100:] {
		b.Close()
	}
	g, err := m.NewGroup()
	testcall.Must(t, err)
	n := 0
	for range m.Live() {
		n++
	}
	if n != 101 {
		t.Errorf("%d are live, want 101", n)
	}
	runtime.KeepAlive(blocks)
	g.Close()
	if err := m.CloseWait(context.Background()); err == nil {
		t.Error("100 blocks were never closed, and CloseWait returned nil")
	}
}

// TestLiveMeanwhile iterates while other goroutines make, label, close and forget.
func TestLiveMeanwhile(t *testing.T) {
	w := newWorld(t, 100_000)
	p := w.pool(Options{Trace: true, Batch: 16})
	var stop atomic.Bool
	var wg sync.WaitGroup
	for g := range 3 {
		wg.Go(func() {
			for i := 0; i < 3000 && !stop.Load(); i++ {
				m := w.own(t, p, 64)
				m.SetLabel(fmt.Sprint(g))
				if i%2 == 0 {
					m.Close()
				}
			}
		})
	}
	wg.Go(func() {
		for range 200 {
			for o := range p.Live() {
				if o.Size != 64 || o.Stack == "" {
					t.Errorf("%+v", o)
					stop.Store(true)
					return
				}
			}
			runtime.Gosched()
		}
	})
	wg.Wait()
}
