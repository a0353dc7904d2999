// Package testheap has what the tests of heaps share: those of package cheap, and those that lie
// beside internal/heap.
package testheap

import (
	"flag"
	"fmt"
	"math/bits"
	"os"
	"strconv"
	"testing"
	"time"
	"unsafe"

	"github.com/cheapgo/cheap/internal/mem/osmem"
	"github.com/cheapgo/cheap/internal/mem/race"
	"github.com/cheapgo/cheap/internal/mem/span"
	"github.com/cheapgo/cheap/internal/test/testchild"
	"github.com/cheapgo/cheap/internal/test/testwait"
	"github.com/cheapgo/cheap/internal/watch/procfs"
	"github.com/cheapgo/cheap/internal/watch/sample"
)

// CacheBytes is what a cache holds from the system.
const CacheBytes = 8 << 10

// Scarce says whether large blocks cost real memory before they are touched, or address space
// that there is little of.
const Scarce = osmem.GoBacked || bits.UintSize == 32

var sampleRate = flag.Int64("cheap.sample", 0, "run all tests with samples this many bytes apart in the mean; 1 samples every block")

// Long asks for tests that take hours.
var Long = flag.Bool("cheap.long", false, "do 1,000,000,000 operations in TestLongRun, fail each of 1,000 calls of the system in TestEveryFault, and try every size up to 64 KiB with every alignment")

const longVariable = "CHEAP_TEST_LONG"

// Main is the TestMain of both.
func Main(m *testing.M) {
	flag.Parse()
	if n, err := strconv.ParseInt(os.Getenv("CHEAP_TEST_SAMPLE"), 10, 64); err == nil && *sampleRate == 0 && !testchild.Is() {
		*sampleRate = n // of a step of .ci/run
	}
	if *Long {
		os.Setenv(longVariable, "1")
	}
	*Long = os.Getenv(longVariable) != "" // children do the long form as well
	sample.SetRate(*sampleRate)
	os.Exit(m.Run())
}

// Make makes a heap that is destroyed when the test ends; one that has live blocks then fails the
// test.
func Make[H interface{ Destroy() error }](t testing.TB, h H, err error, destroyed error) H {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Destroy(); err != nil && err != destroyed {
			t.Error(err)
		}
	})
	return h
}

// Stats has the fields of a heap's counts.
type Stats interface{ ~counts }

type counts = struct{ Blocks, Bytes, Mallocs, Frees, Held, Limit, Cached, CacheMax, Caches int64 }

// MustHoldNothing looks whether a heap with these counts, all whose blocks have been freed, is left
// with its caches alone.
func MustHoldNothing[S Stats](t testing.TB, stats S) {
	t.Helper()
	s := counts(stats)
	if want := s.Caches * CacheBytes; s.Blocks != 0 || s.Bytes != 0 || s.Cached != 0 || s.Held != want || s.Frees != s.Mallocs {
		t.Errorf("%+v: all is free, Held should be %d", s, want)
	}
}

// SetDecay is span.SetDecay for the time of a test. Where no tick is to come, none that has begun
// before is under way when it returns.
func SetDecay(t testing.TB, d time.Duration) {
	old := span.SetDecay(d)
	if d <= 0 {
		testwait.Until(t, "no tick runs", func() bool { return !IsIn("internal/mem/span.tick(") })
	}
	t.Cleanup(func() { span.SetDecay(old) })
}

// WithRate sets the rate of samples for a test.
func WithRate(t testing.TB, rate int64) {
	old := sample.SetRate(rate)
	t.Cleanup(func() { sample.SetRate(old) })
}

// HammerRounds returns n, or less of it where time is short.
func HammerRounds(n int) int {
	switch {
	case testing.Short() || race.Told:
		return max(1, n/10)
	case race.Build || osmem.GoBacked:
		return max(1, n/4)
	}
	return n
}

// AnyPointer is a pointer to wherever. The runtime itself objects to those below
// 4096.
func AnyPointer(n uintptr) unsafe.Pointer {
	return *(*unsafe.Pointer)(unsafe.Pointer(&n)) // never dereferenced
}

// RawBytes returns n bytes from p on.
func RawBytes(p unsafe.Pointer, n int) []byte { return unsafe.Slice((*byte)(p), n) }

// OfProcess returns a number of bytes that the system knows of the process.
func OfProcess(name string) (int64, error) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, err
	}
	n, ok := procfs.Bytes(status, name)
	if !ok {
		return 0, fmt.Errorf("no %s in /proc/self/status", name)
	}
	return n, nil
}
