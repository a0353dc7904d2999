//go:build cgo && linux && !cheap_nocmem && !asan && !msan

package cmem

import (
	"context"
	"fmt"
	"maps"
	"runtime"
	"runtime/pprof"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"unsafe"

	"github.com/cheapgo/cheap/cmem/internal/cwork"
	"github.com/cheapgo/cheap/internal/test/testcall"
	"github.com/cheapgo/cheap/internal/test/testchild"
	"github.com/cheapgo/cheap/internal/watch/census"
	"github.com/google/pprof/profile"
)

// needsLabels fails the test if samples have no labels.
func needsLabels(t testing.TB) {
	t.Helper()
	if s := LabelsOff(); s != "" {
		t.Fatal(s)
	}
}

// labelled runs f with labels, on a thread that samples each block.
func labelled(f func(), labels ...string) {
	pprof.Do(context.Background(), pprof.Labels(labels...), func(context.Context) { f() })
}

// inUse returns the bytes in use of the samples that a function has allocated, by the labels that the test has set.
func inUse(p *profile.Profile, function string) map[string]int64 {
	all := map[string]int64{}
	for _, s := range p.Sample {
		here := slices.ContainsFunc(s.Location, func(l *profile.Location) bool {
			return slices.ContainsFunc(l.Line, func(n profile.Line) bool { return strings.HasSuffix(n.Function.Name, function) })
		})
		if !here || s.Value[3] == 0 {
			continue
		}
		var text []string
		for _, key := range slices.Sorted(maps.Keys(s.Label)) {
			if key != "library" {
				text = append(text, key+"="+s.Label[key][0])
			}
		}
		all[strings.Join(text, " ")] += s.Value[3]
	}
	return all
}

func profileNow(t testing.TB) *profile.Profile {
	t.Helper()
	p, err := Profile()
	testcall.Must(t, err)
	return p
}

//go:noinline
func allocLabelled(n int) unsafe.Pointer { return cwork.Alloc(2, n) }

//go:noinline
func topLabelled(n int) unsafe.Pointer { return cwork.Alloc(2, n) }

//go:noinline
func backLabelled(n int) unsafe.Pointer { return cwork.Back(2, n) }

// TestLabels has samples with labels, without them, with those of a goroutine that has started another one, and of
// C that Go has called back. The library keeps its own label.
func TestLabels(t *testing.T) {
	needsLabels(t)
	withRate(t, 1)
	var all []unsafe.Pointer
	take := func(n int) func() { return func() { all = append(all, allocLabelled(n)) } }
	take(1)()
	labelled(take(20), "tenant", "a")
	labelled(take(300), "tenant", "b", "route", "/x")
	labelled(func() {
		testcall.Aside(func() {
			runtime.LockOSThread()
			cwork.Pairs(600, 1000)
			take(4000)()
		})
		labelled(take(50_000), "route", "")
		take(20)() // pprof.Do has set the labels of its context again, which had none
	}, "tenant", "a")
	take(1)()
	labelled(take(600_000), "library", "mine")
	p := profileNow(t)
	want := map[string]int64{"": 2 + 20 + 600_000, "tenant=a": 20 + 4000, "route=/x tenant=b": 300, "route=": 50_000}
	if got := inUse(p, "cmem.allocLabelled"); !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	mine := 0
	for _, s := range p.Sample {
		if l := s.Label["library"]; len(l) == 2 && l[0] != "mine" && l[1] == "mine" {
			mine++
		}
	}
	if mine != 1 {
		t.Errorf("%d samples have the label library", mine)
	}
	labelled(func() { all = append(all, backLabelled(77)) }, "tenant", "c")
	if got, want := inUse(profileNow(t), "cmem.backLabelled"), map[string]int64{"tenant=c": 77}; !maps.Equal(got, want) {
		t.Errorf("a callback: %v, want %v", got, want)
	}
	watch := NewWatch(1)
	if _, err := watch.Look(); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		labelled(func() { all = append(all, topLabelled(9000)) }, "tenant", fmt.Sprint(i), "route", "/top")
	}
	suspects, err := watch.Look()
	if err != nil || !slices.ContainsFunc(suspects, func(s Suspect) bool {
		return s.Labels == "route=/top" && strings.HasSuffix(s.text(), "\nwith the label route=/top\n") && s.Live == 27_000
	}) {
		t.Errorf("no suspect has the label of all its blocks: %+v, %v", suspects, err)
	}
	var of []census.CSuspect
	for _, s := range top(1000) {
		if strings.Contains(s.Stack, "cmem.topLabelled") {
			of = append(of, s)
		}
	}
	if len(of) != 1 || of[0].Live != 27_000 {
		t.Errorf("a stack with three labels: %+v", of)
	}
	stacks := 0
	counted{}.EachStack(func(_ int, blocks, bytes float64) {
		if blocks == 3 && bytes == 27_000 {
			stacks++
		}
	})
	if stacks != 1 {
		t.Errorf("%d stacks have what three labels have together", stacks)
	}
	const mapped = 1 << 20
	labelled(func() {
		if p := cwork.Map(2, nil, mapped, syscall.PROT_READ, 0); p != nil {
			defer cwork.Unmap(p, mapped)
		}
		q, err := MappedProfile()
		testcall.Must(t, err)
		if !slices.ContainsFunc(q.Sample, func(s *profile.Sample) bool {
			return slices.Equal(s.Label["tenant"], []string{"d"}) && s.Value[1] >= mapped
		}) {
			t.Error("no mapping has the label")
		}
	}, "tenant", "d")
	freeAll(all)
	for _, function := range []string{"cmem.allocLabelled", "cmem.backLabelled"} {
		if got := inUse(profileNow(t), function); len(got) != 0 {
			t.Errorf("after they were freed: %v", got)
		}
	}
}

// TestLabelsCut has labels that are too long and too many.
func TestLabelsCut(t *testing.T) {
	t.Parallel()
	testchild.MustPass(t, func(t *testing.T) {
		needsLabels(t)
		withRate(t, 1)
		var many []string
		for i := range 20 {
			many = append(many, fmt.Sprint("key", 10+i), "v")
		}
		long := strings.Repeat("é", 200) // 400 bytes
		for _, row := range []struct {
			labels []string
			want   string
			cut    int64
		}{
			{[]string{"a", long}, "a=" + long[:256], 1},
			{[]string{"a", "x" + long}, "a=x" + long[:254], 1},
			{[]string{"a", long[:256]}, "a=" + long[:256], 0},
			{[]string{long, "x", "b", "y"}, "b=y", 1},
			{[]string{"a", strings.Repeat("z", 1<<20)}, "", 1},
			{[]string{"", "x", "b", "y"}, "b=y", 1},
			{[]string{"a", "\xff\xfex"}, "a=\ufffdx", 0},
			{many, "key10=v key11=v key12=v key13=v key14=v key15=v key16=v key17=v key18=v key19=v key20=v key21=v key22=v key23=v key24=v key25=v", 1},
		} {
			before := ReadStats().LabelsCut
			var p unsafe.Pointer
			labelled(func() { p = allocLabelled(64) }, row.labels...)
			cut := ReadStats().LabelsCut - before
			if got := inUse(profileNow(t), "cmem.allocLabelled"); !maps.Equal(got, map[string]int64{row.want: 64}) || cut != row.cut {
				t.Errorf("%.20q: %v, want %q; %d were cut, want %d", row.labels, got, row.want, cut, row.cut)
			}
			cwork.Free(p)
		}
		// A key with another value each time: the first are kept.
		before := ReadStats().LabelsCut
		const requests = 3000
		var all []unsafe.Pointer
		for i := range requests {
			labelled(func() { all = append(all, allocLabelled(10)) }, "request", fmt.Sprint(i), "tenant", fmt.Sprint(i%3))
		}
		perTenant, other := map[string]int64{}, int64(0)
		for labels, bytes := range inUse(profileNow(t), "cmem.allocLabelled") {
			request, tenant, _ := strings.Cut(labels, " tenant=")
			perTenant[tenant] += bytes
			if request == "request=[other values]" {
				other += bytes
			}
		}
		if want := map[string]int64{"0": 10_000, "1": 10_000, "2": 10_000}; !maps.Equal(perTenant, want) {
			t.Errorf("%v, want %v", perTenant, want)
		}
		if cut := ReadStats().LabelsCut - before; other != 20_000 || cut != 2000 {
			t.Errorf("%d bytes are of other requests, %d samples were cut", other, cut)
		}
		freeAll(all)
		labelled(func() { cwork.Free(allocLabelled(10)) }, "request", "another") // these labels are kept
		// As many keys as fill the room: samples go on, without labels.
		before = ReadStats().LabelsCut
		all = nil
		for i := range 20_000 {
			labelled(func() { all = append(all, allocLabelled(10)) }, fmt.Sprint("key of one block, ", i), "v")
		}
		if cut := ReadStats().LabelsCut - before; cut < 5000 || cut >= 20_000 {
			t.Errorf("%d samples were cut", cut)
		}
		var sum int64
		for _, bytes := range inUse(profileNow(t), "cmem.allocLabelled") {
			sum += bytes
		}
		if sum != 200_000 {
			t.Errorf("%d bytes", sum)
		}
		freeAll(all)
		// More stacks than may have labels, and a value that is not kept: a sample counts once.
		before = ReadStats().LabelsCut
		all = nil
		for i := range 40_000 {
			labelled(func() { all = append(all, cwork.Site(i, 10)) }, "request", "another")
		}
		if cut := ReadStats().LabelsCut - before; cut != 40_000 { // what a new thread allocates has no labels
			t.Errorf("%d of 40000 samples were cut", cut)
		}
		freeAll(all)
	})
}

// TestHammerLabels has goroutines change their labels, grow their stacks, and call C that calls Go, which changes the
// labels, while the collector runs. Each block has the labels of its call: its size says which.
func TestHammerLabels(t *testing.T) {
	needsLabels(t)
	withRate(t, 1)
	const goroutines, rounds, values = 8, 300, 40
	stop := make(chan struct{})
	var all, collector sync.WaitGroup
	collector.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				runtime.GC()
			}
		}
	})
	var mu sync.Mutex
	var made []unsafe.Pointer
	for g := range goroutines {
		all.Go(func() {
			runtime.LockOSThread()
			cwork.Pairs(600, 1000)
			var mine []unsafe.Pointer
			for i := range rounds {
				value := (g + i) % values
				// The strings are made anew, so that the collector has old ones to take.
				labelled(func() {
					mine = append(mine, hammerLabelled(1000+value))
					cwork.Grow()
					mine = append(mine, hammerLabelled(1000+value))
					cwork.Call(func() {
						inner := (value + 1) % values
						cwork.Grow()
						labelled(func() { mine = append(mine, hammerLabelled(1000+inner)) }, "value", fmt.Sprint("v", inner))
						pprof.SetGoroutineLabels(context.Background())
						mine = append(mine, hammerLabelled(2000))
					})
					mine = append(mine, hammerLabelled(2000))
				}, "value", fmt.Sprint("v", value))
			}
			mu.Lock()
			defer mu.Unlock()
			made = append(made, mine...)
		})
	}
	all.Wait()
	close(stop)
	collector.Wait()
	want := map[string]int64{"": 2 * 2000 * goroutines * rounds}
	for g := range goroutines {
		for i := range rounds {
			for _, v := range []int{(g + i) % values, (g + i) % values, (g + i + 1) % values} {
				want[fmt.Sprint("value=v", v)] += 1000 + int64(v)
			}
		}
	}
	if got := inUse(profileNow(t), "cmem.hammerLabelled"); !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	freeAll(made)
}

//go:noinline
func hammerLabelled(n int) unsafe.Pointer { return cwork.Alloc(1, n) }

// TestLabelsOff has a place where the labels are not.
func TestLabelsOff(t *testing.T) {
	t.Parallel()
	testchild.MustPass(t, func(t *testing.T) {
		needsLabels(t)
		unlearn()
		withRate(t, 1)
		var p unsafe.Pointer
		labelled(func() { p = allocLabelled(64) }, "a", "b")
		if got := inUse(profileNow(t), "cmem.allocLabelled"); !maps.Equal(got, map[string]int64{"": 64}) {
			t.Errorf("%v", got)
		}
		cwork.Free(p)
		testcall.Aside(func() {
			if s := tryLabels(); s != "" {
				t.Error(s)
			}
		})
	})
}

// BenchmarkLabels is a pair of malloc and free that are sampled, with no labels, with three, and with the most.
func BenchmarkLabels(b *testing.B) {
	withRate(b, 1)
	var most []string
	for i := range 16 {
		most = append(most, fmt.Sprintf("%032d", i), fmt.Sprintf("%031d", i))
	}
	for _, labels := range [][]string{nil, {"route", "/v1/items/{id}", "tenant", "a tenant of this server", "method", "POST"}, most} {
		b.Run(fmt.Sprint("labels=", len(labels)/2), func(b *testing.B) {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			labelled(func() {
				cwork.Pairs(600, 1000)
				b.ResetTimer()
				cwork.Pairs(b.N, 64)
			}, labels...)
		})
	}
}
