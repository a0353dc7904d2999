//go:build cgo && linux && !cheap_nocmem && !asan && !msan

package cmem

import (
	"bytes"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"unsafe"

	"github.com/cheapgo/cheap/cmem/fht"
	"github.com/cheapgo/cheap/cmem/heapprofile"
	"github.com/cheapgo/cheap/cmem/internal/cwork"
	"github.com/cheapgo/cheap/internal/test/testcall"
	"github.com/cheapgo/cheap/internal/test/testchild"
	"github.com/cheapgo/cheap/internal/test/testenv"
	"github.com/cheapgo/cheap/internal/test/testwait"
)

// blocks makes blocks of several sizes, of so many bytes together, and returns how many the allocator has taken for them as well.
func blocks(total int) (all []unsafe.Pointer, bytes, usable int64) {
	for i := 0; bytes < int64(total); i++ {
		n := 24 + i%40*50
		if i%2000 == 0 {
			n = 300_000 // a mapping of its own
		}
		all = append(all, cwork.Alloc(0, n))
		bytes += int64(n)
		usable += int64(cwork.Usable(all[i]))
	}
	return all, bytes, usable
}

func freeAll(all []unsafe.Pointer) {
	for _, p := range all {
		cwork.Free(p)
	}
}

// near fails the test unless got is within a twentieth of want, and few bytes of the process beside.
func near(t *testing.T, what string, got, want int64) {
	t.Helper()
	const few = 1 << 20 // of the C library, and what it keeps of blocks that were freed
	if math.Abs(float64(got-want)) > 0.05*float64(want)+few {
		t.Errorf("%s: %d bytes, want %d", what, got, want)
	}
}

// unseenNow returns the unseen bytes.
func unseenNow(t *testing.T) int64 {
	t.Helper()
	n, ok := Unseen()
	if !ok || n < 0 {
		t.Errorf("unseen are %d bytes, known: %v", n, ok)
	}
	return n
}

// TestWrongValue sets CHEAP_CMEM to what it cannot be.
func TestWrongValue(t *testing.T) {
	const want = "cheap: CHEAP_CMEM is \"Ready\"; it may be off, ready or exact\n"
	if out, _ := testchild.Run(t, func() {}, "CHEAP_CMEM=Ready"); out != want {
		t.Errorf("%q, want %q", out, want)
	}
}

// TestReady turns on samples in a process that has C memory: what was allocated before is told apart, and is
// freed, resized and reused.
func TestReady(t *testing.T) {
	testenv.Skip(t, "musl", "malloc of musl has no figure of this")
	t.Parallel()
	for _, library := range []string{"", "libjemalloc.so.2"} {
		if library != "" && !installed(library) {
			continue
		}
		env := []string{"CHEAP_CMEM=ready"}
		if library != "" {
			env = append(env, "LD_PRELOAD="+library, "MALLOC_CONF=tcache:false")
		}
		if out, ok := testchild.Test(t, ready, env...); !ok {
			t.Errorf("with %q: %s", library, out)
		}
		if testchild.Is() {
			return
		}
	}
}

func ready(t *testing.T) {
	before := ReadStats()
	old, _, oldBytes := blocks(40 << 20)
	cwork.Free(nil)
	if s := ReadStats(); !waiting() || Rate() != 0 || s.Mallocs != before.Mallocs || s.Frees != before.Frees || s.Samples != 0 || s.Live != 0 {
		t.Errorf("it counts: %+v, before %+v, rate %d", s, before, Rate())
	}
	if counted.Off(counted{}) == "" || Off() != "" {
		t.Errorf("off: %q and %q", counted.Off(counted{}), Off())
	}
	near(t, "what was allocated before", unseenNow(t), oldBytes)

	if old := SetRate(512); old != 0 {
		t.Errorf("the rate was %d", old)
	}
	seen, seenBytes, _ := blocks(30 << 20)
	near(t, "seen", ReadStats().Live, seenBytes)
	near(t, "not seen", unseenNow(t), oldBytes)
	if _, bytes := (cHost{}).InUse(); waiting() || counted.Off(counted{}) != "" {
		t.Error("it waits")
	} else {
		near(t, "for package pace", bytes, oldBytes+seenBytes)
	}

	half := len(old) / 2
	freeAll(old[:half])
	left := oldBytes / 2
	near(t, "after half was freed", unseenNow(t), left)
	for i, p := range old[half:] { // they have not grown if they stay where they are
		old[half+i] = cwork.Realloc(p, 2000)
	}
	near(t, "after they were resized", unseenNow(t), 0)
	p, err := Profile()
	testcall.Must(t, err)
	var sum, apart int64
	for _, s := range p.Sample {
		for _, v := range s.Value {
			if v < 0 {
				t.Errorf("a value of the profile is %d", v)
			}
		}
		if sum += s.Value[3]; s.Label["library"][0] == heapprofile.Unseen {
			apart += s.Value[3]
		}
	}
	near(t, "the profile", sum, seenBytes+2000*int64(len(old)-half))
	near(t, "told apart in the profile", apart, 0)
	freeAll(old[half:])
	freeAll(seen)
	near(t, "in the end", ReadStats().Live, 0)
	near(t, "not seen in the end", unseenNow(t), 0)
	if s := ReadStats(); s.Frees <= int64(len(old)/2+len(seen)) {
		t.Errorf("%d frees", s.Frees)
	}
	_, err = Libraries()
	testcall.Want(t, err)
}

// TestHammerReady turns samples on, off and on again while goroutines make blocks, and others free them: all that is
// seen is freed once, and no stack has more frees than blocks.
func TestHammerReady(t *testing.T) {
	t.Parallel()
	testchild.MustPass(t, func(t *testing.T) {
		const makers, each, at = 4, 20_000, 5_000
		given := make(chan unsafe.Pointer, 1000)
		var made atomic.Int64
		var all, takers sync.WaitGroup
		for i := range makers {
			all.Go(func() {
				for n := range each {
					p := cwork.Alloc(i, 100+n%3*1000)
					if n%5 == 0 {
						p = cwork.Realloc(p, 500)
					}
					given <- p
					switch made.Add(1) {
					case at, 3 * at:
						SetRate(1)
					case 2 * at:
						SetRate(0)
					}
				}
			})
			takers.Go(func() {
				for p := range given {
					cwork.Free(p)
				}
			})
		}
		all.Wait()
		close(given)
		takers.Wait()
		if ReadStats().Samples < makers*each/4 {
			t.Errorf("%+v", ReadStats())
		}
		eachSite(func(s *site) {
			if s.frees > s.allocs+1e-6*s.allocs || s.freeBytes > s.allocBytes*(1+1e-6) {
				t.Errorf("%v blocks, of which %v were freed", s.allocs, s.frees)
			}
		})
		p, err := Profile()
		testcall.Must(t, err)
		for stack, bytes := range stacks(p) {
			if bytes != 0 && strings.Contains(stack, "TestHammerReady") {
				t.Errorf("%d bytes of %s", bytes, stack)
			}
		}
	}, "CHEAP_CMEM=ready")
}

// TestReadyRecord records calls in a program that counts none.
func TestReadyRecord(t *testing.T) {
	t.Parallel()
	testchild.MustPass(t, func(t *testing.T) {
		var file bytes.Buffer
		r, err := record(&file)
		testcall.Must(t, err)
		cwork.Threads(2, 1000, 4567)
		cwork.Free(nil)
		testcall.Must(t, r.stop())
		if n := readRecording(t, &file).count(fht.Malloc, 4567); n != 2000 || !waiting() {
			t.Errorf("%d mallocs, waiting: %v", n, waiting())
		}
	}, "CHEAP_CMEM=ready")
}

// TestSetRateOn turns samples on by a signal.
func TestSetRateOn(t *testing.T) {
	t.Parallel()
	testchild.MustPass(t, func(t *testing.T) {
		stop := SetRateOn(syscall.SIGUSR1, 1234)
		defer stop()
		if Rate() != 0 {
			t.Errorf("the rate is %d", Rate())
		}
		testcall.Must(t, syscall.Kill(syscall.Getpid(), syscall.SIGUSR1))
		testwait.Until(t, "the rate is set", func() bool { return Rate() == 1234 })
		stop()
	}, "CHEAP_CMEM=ready")
}

// TestGap has a time without samples in a program that has begun with them.
func TestGap(t *testing.T) {
	testenv.Skip(t, "musl", "malloc of musl has no figure of this")
	t.Parallel()
	testchild.MustPass(t, func(t *testing.T) {
		if n := unseenNow(t); n != 0 {
			t.Errorf("%d bytes before", n)
		}
		withRate(t, 512)
		seen, seenBytes, _ := blocks(10 << 20)
		withRate(t, 0)
		other, _, otherBytes := blocks(10 << 20)
		withRate(t, 512)
		near(t, "not seen", unseenNow(t), otherBytes)
		near(t, "seen", ReadStats().Live, seenBytes)
		freeAll(seen)
		near(t, "not seen", unseenNow(t), otherBytes)
		freeAll(other)
		near(t, "seen", ReadStats().Live, 0)
		near(t, "not seen", unseenNow(t), 0)
	})
}

// BenchmarkUnseen has 100,000 free blocks in between.
func BenchmarkUnseen(b *testing.B) {
	withRate(b, 0)
	withRate(b, 512)
	all, _, _ := blocks(200_000 * 1000)
	for i := 0; i < len(all); i += 2 {
		cwork.Free(all[i])
	}
	b.ReportMetric(float64(len(all)/2), "blocks")
	for b.Loop() {
		unseen()
	}
	for i := 1; i < len(all); i += 2 {
		cwork.Free(all[i])
	}
}
