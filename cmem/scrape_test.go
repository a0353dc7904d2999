//go:build cgo && linux && !cheap_nocmem && !asan && !msan

package cmem

import (
	"bytes"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"
	"unsafe"

	"github.com/cheapgo/cheap/cmem/internal/cwork"
	"github.com/cheapgo/cheap/internal/test/testcall"
	"github.com/google/pprof/profile"
)

//go:noinline
func scrapeLabelled(n int) unsafe.Pointer { return cwork.Alloc(1, n) }

// TestScraped has what Grafana Alloy, Pyroscope and Parca expect of a profile that they scrape: the whole one, and
// what has changed in so many seconds, which Alloy and Parca ask for where delta is set.
func TestScraped(t *testing.T) {
	needsLabels(t)
	withRate(t, 1)
	var all []unsafe.Pointer
	take := func(n int) {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		cwork.Pairs(600, 1000) // the thread looks at the rate
		for i := range n {
			labelled(func() { all = append(all, scrapeLabelled(100)) }, "tenant", fmt.Sprint(i%2), "odd \xff", "\xfe")
		}
		all = append(all, cwork.Back(2, 100), cwork.BackThread(2, 100))
	}
	take(10)
	first := scraped(t, 0)
	synctest.Test(t, func(t *testing.T) {
		for _, seconds := range []int{14, 10} { // Alloy asks for a second less than its interval
			taken := make(chan bool)
			go func() {
				time.Sleep(5 * time.Second) // of the bubble
				take(20)
				close(taken)
			}()
			p := scraped(t, time.Duration(seconds)*time.Second)
			<-taken
			if p.DurationNanos != int64(seconds)*1e9 {
				t.Errorf("%d ns, want %d s", p.DurationNanos, seconds)
			}
			if got, want := inUse(p, "cmem.scrapeLabelled"), (map[string]int64{"odd \ufffd=\ufffd tenant=0": 1000, "odd \ufffd=\ufffd tenant=1": 1000}); !maps.Equal(got, want) {
				t.Errorf("in %d s %v, want %v", seconds, got, want)
			}
		}
	})
	// Alloy itself takes the difference of what was allocated, of stacks with the same addresses and labels.
	before, after := allocated(first), allocated(scraped(t, 0))
	var grown int64
	for stack, n := range after {
		if n < before[stack] {
			t.Errorf("what was allocated has become less: %s", stack)
		}
		grown += n - before[stack]
	}
	if least := int64(2 * 22 * 100); grown < least {
		t.Errorf("%d bytes more, want %d at least", grown, least)
	}
	freeAll(all)
}

// allocated returns the bytes that were allocated, by addresses and labels.
func allocated(p *profile.Profile) map[string]int64 {
	all := map[string]int64{}
	for _, s := range p.Sample {
		key := fmt.Sprint(s.Label)
		for _, l := range s.Location {
			key += fmt.Sprintf(" %x", l.Address)
		}
		all[key] += s.Value[1]
	}
	return all
}

// scraped returns a profile as package inspect sends it, of which it looks at what others refuse.
func scraped(t *testing.T, d time.Duration) *profile.Profile {
	t.Helper()
	var b bytes.Buffer
	testcall.Must(t, (counted{}).WriteProfile(&b, d, nil))
	if !bytes.HasPrefix(b.Bytes(), []byte{0x1f, 0x8b}) {
		t.Error("it is not compressed")
	}
	p, err := profile.ParseData(b.Bytes())
	if err == nil {
		err = p.CheckValid()
	}
	testcall.Must(t, err)
	types := ""
	for _, s := range append(slices.Clone(p.SampleType), p.PeriodType) {
		types += s.Type + " " + s.Unit + ", "
	}
	if types != "alloc_objects count, alloc_space bytes, inuse_objects count, inuse_space bytes, space bytes, " || p.Period != 1 {
		t.Errorf("%s%d", types, p.Period)
	}
	for i, m := range p.Mapping {
		if m.ID != uint64(i+1) {
			t.Errorf("mapping %d has the number %d", i, m.ID)
		}
	}
	for i, l := range p.Location {
		if l.ID != uint64(i+1) || len(l.Line) == 0 {
			t.Errorf("location %d: %+v", i, l)
		}
	}
	for i, f := range p.Function {
		if f.ID != uint64(i+1) || f.Name == "" || !utf8.ValidString(f.Name) {
			t.Errorf("function %d: %+v", i, f)
		}
	}
	for _, s := range p.Sample {
		for key, values := range s.Label {
			if key == "" || !utf8.ValidString(key) || slices.ContainsFunc(values, func(v string) bool { return !utf8.ValidString(v) }) {
				t.Errorf("label %q: %q", key, values)
			}
		}
	}
	return p
}
