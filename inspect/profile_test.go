package inspect_test

import (
	"bytes"
	"cmp"
	"flag"
	"fmt"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/inspect"
	"github.com/cheapgo/cheap/internal/test/testcall"
	"github.com/cheapgo/cheap/internal/test/testenv"
	"github.com/cheapgo/cheap/own"
	"github.com/google/pprof/profile"
)

// withRate sets the rate for a test.
func withRate(t testing.TB, rate int) {
	old := inspect.SetRate(rate)
	t.Cleanup(func() { inspect.SetRate(old) })
}

func newHeap(t testing.TB, o cheap.HeapOptions) *cheap.Heap {
	h, err := cheap.NewHeap(o)
	testcall.Must(t, err)
	t.Cleanup(func() {
		if err := h.DestroyAll(); err != nil && err != cheap.ErrDestroyed {
			t.Error(err)
		}
	})
	return h
}

var names atomic.Int64

// unique returns a name that no other heap has, also where a test runs several times.
func unique(name string) string { return fmt.Sprint(name, names.Add(1)) }

// stackID returns which number the stack of a sample was given by testcall.Site.
func stackID(s *profile.Sample) int {
	var names []string
	for _, l := range s.Location {
		for _, line := range l.Line {
			names = append(names, line.Function.Name)
		}
	}
	return testcall.SiteOf(names)
}

// TestProfileTruth allocates 1 GiB from 1,000 stacks, of which 20 are apart by a factor of
// 1.25, and compares the profile with the truth. The ways to allocate and to free are mixed.
//
// At 16 KiB the tenth has about 1,700 samples, so that the order of two of the first ten is
// wrong in one run of a million. The long form allocates 8 GiB, and the twentieth has 1,500. At the
// default rate it has 47, and the order of the last ones is a matter of luck; the total is within
// 5 % at any rate that gives 10,000 samples.
func TestProfileTruth(t *testing.T) {
	const sites, largest = 1000, 20
	top, total := 10, 1.0*(1<<30)
	if flag.Lookup("inspect.long").Value.String() == "true" { // of the tests in package inspect
		top, total = largest, 8<<30
	}
	withRate(t, 16<<10)
	h := newHeap(t, cheap.HeapOptions{Name: unique("truth")})
	l := h.NewLocal()
	defer l.Destroy()
	want := map[int]float64{}
	share := make([]float64, sites)
	sum := 0.0
	for i := range share {
		share[i] = math.Pow(1.25, -float64(min(i, largest+4)))
		if i >= largest {
			share[i] /= 20
		}
		sum += share[i]
	}
	sizes := []int{24, 100, 256, 1000, 3000, 9000, 30_000, 70_000}
	for id, s := range share {
		size := sizes[id%len(sizes)]
		usable := cheap.GoodSize(size)
		n := max(1, int(s/sum*total)/usable)
		want[id] = float64(n * usable)
		testcall.Site(1<<10|id, func() {
			for i := range n {
				switch (i + id) % 5 {
				case 0:
					h.Free(h.Malloc(size))
				case 1:
					l.Free(l.Malloc(size))
				case 2:
					l.Free(h.Calloc(1, size))
				case 3:
					h.Free(l.Malloc(size))
				case 4:
					h.Free(h.Realloc(nil, size))
				}
			}
		})
	}
	got := map[int]float64{}
	for _, s := range heapSamples(t, h.Name()) {
		if id := stackID(s) - 1<<10; id >= 0 {
			got[id] += float64(s.Value[1])
		}
		if s.Value[2] != 0 {
			t.Errorf("%d blocks are in use at the end", s.Value[2])
		}
	}
	add := func(m map[int]float64) (sum float64) {
		for _, v := range m {
			sum += v
		}
		return sum
	}
	truth, estimate := add(want), add(got)
	t.Logf("%.4g bytes allocated, %.4g estimated, %d of %d stacks seen", truth, estimate, len(got), sites)
	if math.Abs(estimate/truth-1) > 0.05 {
		t.Errorf("the total is estimated as %.4g, want %.4g", estimate, truth)
	}
	order := slices.SortedFunc(maps.Keys(got), func(x, y int) int { return cmp.Compare(got[y], got[x]) })
	for i := range top {
		if order[i] != i {
			t.Errorf("place %d has stack %d (%.4g bytes, truth %.4g), want %d (%.4g)", i, order[i], got[order[i]], want[order[i]], i, got[i])
		}
	}
}

// heapSamples returns the samples of a heap with that name.
func heapSamples(t *testing.T, heap string) []*profile.Sample {
	t.Helper()
	var b bytes.Buffer
	testcall.Must(t, inspect.WriteHeap(&b))
	p, err := profile.Parse(&b)
	testcall.Must(t, err)
	testcall.Must(t, p.CheckValid())
	return slices.DeleteFunc(p.Sample, func(s *profile.Sample) bool { return !slices.Contains(s.Label["heap"], heap) })
}

//go:noinline
func leakInProfile(h *cheap.Heap, n int) (blocks []unsafe.Pointer) {
	for range n {
		blocks = append(blocks, h.Malloc(1000))
	}
	return blocks
}

// TestProfileExact has a rate of 1, so that all numbers are exact.
func TestProfileExact(t *testing.T) {
	withRate(t, 1)
	h := newHeap(t, cheap.HeapOptions{Name: unique("exact")})
	blocks := leakInProfile(h, 100)
	for _, p := range blocks[:30] {
		h.Free(p)
	}
	size := int64(h.UsableSize(blocks[99]))
	all := heapSamples(t, h.Name())
	if len(all) != 1 {
		t.Fatalf("%d samples, want 1: %v", len(all), all)
	}
	s := all[0]
	if want := []int64{100, 100 * size, 70, 70 * size}; !slices.Equal(s.Value, want) {
		t.Errorf("values %v, want %v", s.Value, want)
	}
	if s.NumLabel["bytes"][0] != size {
		t.Errorf("the label bytes is %v, want %d", s.NumLabel["bytes"], size)
	}
	if f := s.Location[0].Line[0].Function.Name; !strings.HasSuffix(f, ".leakInProfile") {
		t.Errorf("the innermost function is %s; the functions of package cheap should not be there", f)
	}
}

// TestProfileCommand has go tool pprof read the profile.
func TestProfileCommand(t *testing.T) {
	if testenv.NoGo() {
		return // no pprof
	}
	withRate(t, 1)
	h := newHeap(t, cheap.HeapOptions{Name: unique("command")})
	leakInProfile(h, 1000)
	name := filepath.Join(t.TempDir(), "heap.pb.gz")
	f, err := os.Create(name)
	testcall.Must(t, err)
	testcall.Must(t, inspect.WriteHeap(f))
	testcall.Must(t, f.Close())
	out, err := exec.Command("go", "tool", "pprof", "-top", "-tagfocus=heap="+h.Name(), name).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, want := range []string{"Type: inuse_space", "inspect_test.leakInProfile"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
}

func TestLifetimes(t *testing.T) {
	withRate(t, 1)
	h := newHeap(t, cheap.HeapOptions{Name: unique("lifetimes")})
	start := time.Now()
	blocks := leakInProfile(h, 50)
	made := time.Now()
	for _, p := range blocks[:20] {
		h.Free(p)
	}
	for time.Since(made) < 15*time.Millisecond {
		time.Sleep(time.Millisecond)
	}
	least := 30 * int64(time.Since(made))
	for _, p := range blocks[20:] {
		h.Free(p)
	}
	most := 50 * int64(time.Since(start))
	var b bytes.Buffer
	testcall.Must(t, inspect.WriteLifetimes(&b))
	p, err := profile.Parse(&b)
	testcall.Must(t, err)
	var freed, life int64
	slow := int64(0)
	for _, s := range p.Sample {
		if !slices.Contains(s.Label["heap"], h.Name()) {
			continue
		}
		from, _, _ := strings.Cut(strings.Join(s.Label["lifetime"], " and "), "-")
		if !slices.Contains([]string{"0", "10µs", "100µs", "1ms"}, from) {
			slow += s.Value[0]
		}
		freed += s.Value[0]
		life += s.Value[2]
		if len(s.Label["lifetime"]) != 1 || !strings.Contains(s.Label["lifetime"][0], "-") {
			t.Errorf("the label lifetime is %q", s.Label["lifetime"])
		}
	}
	if freed != 50 || life < least || life > most || slow < 30 {
		t.Errorf("%d blocks lived %d ns, %d of them longer than 10 ms; want 50, %d to %d ns, and 30", freed, life, slow, least, most)
	}
}

// TestProfileOfMemory allocates through an own.Memory, an Arena and a FixedBlock, whose chunks
// are sampled. The bytes must be right in the mean.
func TestProfileOfMemory(t *testing.T) {
	withRate(t, 1)
	h := newHeap(t, cheap.HeapOptions{Name: unique("chunks")})
	m := own.NewMemory(h, own.MemoryOptions{Name: "profiled.Memory"})
	var keep []own.Bytes
	for range 5000 {
		b, err := m.NewBytes(100)
		testcall.Must(t, err)
		keep = append(keep, *b)
	}
	var inUse int64
	for _, s := range heapSamples(t, h.Name()) {
		inUse += s.Value[3]
		if !slices.Equal(s.Label["pool"], []string{"profiled.Memory"}) {
			t.Errorf("the label pool is %q", s.Label["pool"])
		}
	}
	if live := h.Stats().Bytes; inUse != live {
		t.Errorf("the profile has %d bytes in use, the heap %d", inUse, live)
	}
	for i := range keep {
		keep[i].Close()
	}
	if err := m.CloseWait(t.Context()); err != nil { // before the heap
		t.Error(err)
	}
}

// TestWhere is at the limit of a heap that one place has filled.
func TestWhere(t *testing.T) {
	withRate(t, 64<<10)
	var told []string
	h := newHeap(t, cheap.HeapOptions{Name: "full", Limit: 32 << 20, OnLimit: func(size int, err error) {
		told = append(told, fmt.Sprint(size, err, inspect.Where(5)))
	}})
	n := 0
	for h.Malloc(1000) != nil {
		n++
		if n%10 == 0 {
			leakInProfile(h, 50)
		}
	}
	if len(told) == 0 {
		t.Fatal("OnLimit was not called")
	}
	r := inspect.Where(5)
	if len(r.Places) == 0 || !strings.HasSuffix(r.Places[0].Stack[0].Function, ".leakInProfile") {
		t.Errorf("the first place is not the one that was planted:\n%v", r)
	}
	for _, want := range []string{"full holds 3", "MiB of 32 MiB", "leakInProfile", "profile_test.go:"} {
		if !strings.Contains(told[0], want) {
			t.Errorf("%q is not in\n%s", want, told[0])
		}
	}
	if inspect.Where(0).Places != nil || inspect.Where(1).String() == "" {
		t.Error("Where(0) or Where(1) is wrong")
	}
}

// BenchmarkWhere has 10,000 stacks.
func BenchmarkWhere(b *testing.B) {
	withRate(b, 1)
	h := newHeap(b, cheap.HeapOptions{Name: "where"})
	for id := range 10_000 {
		testcall.Site(1<<14|id, func() { h.Malloc(id % 1000) })
	}
	for b.Loop() {
		inspect.Where(5)
	}
}

// TestDeepStacks has stacks that differ behind more frames than internal/watch/stacks reads.
func TestDeepStacks(t *testing.T) {
	withRate(t, 1)
	h := newHeap(t, cheap.HeapOptions{Name: unique("deep")})
	for id := range 8 {
		for range id + 1 {
			testcall.Site(1<<3|id, func() { testcall.Deep(40, func() { h.Malloc(100) }) })
		}
	}
	got := map[int]int64{}
	for _, s := range heapSamples(t, h.Name()) {
		got[stackID(s)-1<<3] += s.Value[0]
	}
	for id := range 8 {
		if got[id] != int64(id+1) {
			t.Errorf("stack %d has %d blocks, want %d", id, got[id], id+1)
		}
	}
}
