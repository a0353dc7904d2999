//go:build cgo && linux && !cheap_nocmem && !asan && !msan

package cmem

import (
	"bytes"
	"math"
	"strings"
	"testing"
	"unsafe"

	"github.com/cheapgo/cheap/cmem/internal/cwork"
	"github.com/cheapgo/cheap/internal/test/testcall"
	"github.com/google/pprof/profile"
)

// A workload allocates at one place. Its blocks have up to 4,000 bytes.
type workload struct {
	site   int
	blocks []unsafe.Pointer
}

func (w *workload) add(n int) {
	for i := range n {
		w.blocks = append(w.blocks, cwork.Site(w.site, 1+i*997%4000))
	}
}

func (w *workload) drop(n int) {
	for _, p := range w.blocks[:n] {
		cwork.Free(p)
	}
	w.blocks = append(w.blocks[:0], w.blocks[n:]...)
}

// These are on the stacks of what the tests look for: go test leaves the names of C functions out.
//
//go:noinline
func leaks(w *workload, n int) { w.add(n) }

//go:noinline
func before(w *workload, n int) { w.add(n) }

//go:noinline
func later(w *workload, n int) { w.add(n) }

// TestWatch has a stack that leaks, one that grows and falls, and some that are constant and
// replace all or a part of their blocks. The first is a suspect from the time on that it can be
// one, and no other stack ever is.
func TestWatch(t *testing.T) {
	withRate(t, 8<<10)
	const intervals = 5
	looks := 100
	if isLong() {
		looks = 250
	}
	leak, wave := &workload{site: 0b10_0001}, &workload{site: 0b10_0010}
	churn := []*workload{{site: 0b10_0100}, {site: 0b10_0101}, {site: 0b10_0110}, {site: 0b10_0111}, {site: 0b10_1000}, {site: 0b10_1001}}
	for _, w := range churn {
		w.add(300)
	}
	w := NewWatch(intervals)
	first := -1
	for i := -30; i < looks; i++ {
		for j, c := range churn {
			n := []int{300, 100, 10}[j%3]
			c.drop(n)
			c.add(n)
		}
		if i < 0 {
			continue // until all blocks are of this stack
		}
		leaks(leak, 60) // 15 samples
		if i%6 < 3 {
			wave.add(100)
		} else {
			wave.drop(100)
		}
		found, err := w.Look()
		testcall.Must(t, err)
		isSuspect := false
		for _, s := range found {
			text := stackText(s.Stack)
			if !strings.Contains(text, "cmem.leaks\n") {
				t.Errorf("look %d: a suspect has grown by %d ± %d:\n%v", i, s.Grown, s.GrownError, s.Stack[len(s.Stack)-5:])
				continue
			}
			isSuspect = true
			truth, all := 0.0, 0.0
			for j := range 60 {
				truth += intervals * float64(1+j*997%4000)
				all += float64(i+1) * float64(1+j*997%4000)
			}
			if math.Abs(float64(s.Grown)-truth) > 6*float64(s.GrownError) || math.Abs(float64(s.Live)-all) > 0.5*all {
				t.Errorf("look %d: grown by %d ± %d to %d; want %.0f to %.0f", i, s.Grown, s.GrownError, s.Live, truth, all)
			}
			if !strings.Contains(text, "/growth_test.go:") || !strings.Contains(text, "cmem.(*workload).add\n") {
				t.Errorf("the stack has no line in Go:\n%s", text)
			}
		}
		if isSuspect && first < 0 {
			first = i
		}
		if !isSuspect && first >= 0 {
			t.Errorf("look %d: the leak is no suspect", i)
		}
	}
	if first < intervals || first > intervals+10 {
		t.Errorf("the leak is a suspect from look %d on", first)
	}
	for _, c := range append(churn, leak, wave) {
		c.drop(len(c.blocks))
	}
}

// TestWatchExact has a rate at which nothing is estimated: a byte in each interval is enough.
func TestWatchExact(t *testing.T) {
	withRate(t, 1)
	leak, w := &workload{site: 0b11_0001}, NewWatch(2)
	for i := range 4 {
		leaks(leak, 1)
		found, err := w.Look()
		testcall.Must(t, err)
		n := 0
		for _, s := range found {
			for _, f := range s.Stack {
				if f.Function == "github.com/cheapgo/cheap/cmem.leaks" {
					if n++; s.Grown != 2 || s.GrownError != 0 || s.Live != int64(i+1) {
						t.Errorf("look %d: %+v", i, s)
					}
				}
			}
		}
		if want := min(i/2, 1); n != want {
			t.Errorf("look %d: %d suspects, want %d", i, n, want)
		}
	}
	leak.drop(len(leak.blocks))
}

// TestSince has blocks of before and of later, and frees some of each.
func TestSince(t *testing.T) {
	withRate(t, 1)
	old, young := &workload{}, &workload{}
	before(old, 10)
	base, err := Profile()
	testcall.Must(t, err)
	old.drop(4)
	later(young, 5)
	p, err := Since(base)
	testcall.Must(t, err)
	var b bytes.Buffer
	testcall.Must(t, p.Write(&b))
	if p, err = profile.Parse(&b); err != nil {
		t.Fatal(err)
	}
	found := map[string][]int64{}
	for _, s := range p.Sample {
		for _, l := range s.Location {
			for _, n := range l.Line {
				found[n.Function.Name] = s.Value
			}
		}
	}
	if v := found["github.com/cheapgo/cheap/cmem.before"]; len(v) != 4 || v[0] != 0 || v[2] != -4 {
		t.Errorf("of before: %v", v)
	}
	if v := found["github.com/cheapgo/cheap/cmem.later"]; len(v) != 4 || v[0] != 5 || v[2] != 5 {
		t.Errorf("of later: %v", v)
	}
	if p.DurationNanos <= 0 || p.DefaultSampleType != "inuse_space" {
		t.Errorf("%d ns, %s", p.DurationNanos, p.DefaultSampleType)
	}
	old.drop(len(old.blocks))
	young.drop(len(young.blocks))
}

// manyStacks makes n stacks, each with a block in use.
func manyStacks(b *testing.B, n int) {
	withRate(b, 1)
	w := &workload{}
	for i := range n {
		w.site = 1<<14 + i
		w.add(1)
	}
	b.Cleanup(func() { w.drop(len(w.blocks)) })
}

// BenchmarkLibraries has 10,000 stacks.
func BenchmarkLibraries(b *testing.B) {
	manyStacks(b, 10_000)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Libraries(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkLook likewise.
func BenchmarkLook(b *testing.B) {
	manyStacks(b, 10_000)
	w := NewWatch(6)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := w.Look(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkProfile likewise.
func BenchmarkProfile(b *testing.B) {
	manyStacks(b, 10_000)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Profile(); err != nil {
			b.Fatal(err)
		}
	}
}
