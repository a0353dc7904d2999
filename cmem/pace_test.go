//go:build cgo && linux && !cheap_nocmem && !asan && !msan

package cmem

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"unsafe"

	"github.com/cheapgo/cheap/cmem/internal/cwork"
	"github.com/cheapgo/cheap/internal/mem/account"
	"github.com/cheapgo/cheap/internal/test/testcall"
	"github.com/cheapgo/cheap/internal/test/testwait"
	"github.com/cheapgo/cheap/own"
	"github.com/cheapgo/cheap/pace"
)

// A picture is a C object that its Go value frees after it is unreachable.
type picture struct{ data unsafe.Pointer }

var inPictures atomic.Int64

func newPicture(n int) *picture {
	p := &picture{cwork.Alloc(2, n)}
	inPictures.Add(int64(n))
	//cheapvet:ignore perobject this is what package pace shall bound
	runtime.AddCleanup(p, func(data unsafe.Pointer) {
		cwork.Free(data)
		inPictures.Add(int64(-n))
	}, p.data)
	return p
}

func start(t *testing.T) {
	t.Helper()
	testcall.Must(t, pace.Start(pace.Options{}))
	t.Cleanup(pace.Stop)
}

// forget makes pictures for a sum of bytes, forgets them, and returns the most bytes that they had.
func forget(sum, n int) (most int64) {
	for range sum / n {
		clear(unsafe.Slice((*byte)(newPicture(n).data), n))
		most = max(most, inPictures.Load())
	}
	return most
}

// TestPace forgets C objects. The Go heap hardly grows, and without package pace no collection
// would start.
func TestPace(t *testing.T) {
	for _, n := range []int{1 << 20, 64 << 10, 2000} {
		start(t)
		runtime.GC()
		cycles := pace.ReadStats().Cycles
		const sum = 256 << 20
		most := forget(sum, n)
		st := pace.ReadStats()
		t.Logf("objects of %d bytes: at most %d MiB, %d collections", n, most>>20, st.Cycles-cycles)
		if st.Cycles == cycles {
			t.Errorf("objects of %d bytes: at most %d MiB of %d, and pace has started no collection", n, most>>20, sum>>20)
		}
		pace.Stop()
		testwait.Collect(t)
		if n := inPictures.Load(); n != 0 {
			t.Errorf("%d bytes are left", n)
		}
	}
}

// goroutines returns how many goroutines wait for growth.
func goroutines() int {
	all := make([]byte, 1<<20)
	return bytes.Count(all[:runtime.Stack(all, true)], []byte("cmem.wait("))
}

// TestWatcher starts and stops package pace. There is one goroutine in between, and none after.
func TestWatcher(t *testing.T) {
	is := func(want int) {
		t.Helper()
		testwait.Until(t, fmt.Sprint(want, " goroutines wait"), func() bool { return goroutines() == want })
	}
	is(0)
	for range 3 {
		for range 10 {
			start(t)
			pace.Stop()
		}
		start(t)
		is(1)
		p := cwork.Alloc(0, 100<<20) // it is told of that, and goes on
		cwork.Free(p)
		is(1)
		pace.Stop()
		is(0)
	}
}

// TestGrowth has the account of the C heap follow what is in use, though nobody asks.
func TestGrowth(t *testing.T) {
	withRate(t, 1)
	listen(true)
	defer testwait.Until(t, "no goroutine waits", func() bool { return goroutines() == 0 })
	defer listen(false)
	account.Process.Refresh()
	half := account.Process.Held() + 50<<20
	p := cwork.Alloc(0, 100<<20)
	testwait.Until(t, "it has grown", func() bool { return account.Process.Held() > half })
	cwork.Free(p)
	testwait.Until(t, "it has fallen", func() bool { return account.Process.Held() < half })
}

// TestBubble starts package pace in a bubble of testing/synctest, which ends.
func TestBubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start(t)
		synctest.Wait()
	})
	runtime.GC()
	testwait.Until(t, "the goroutine has ended", func() bool { return goroutines() == 0 })
	synctest.Test(t, func(t *testing.T) {
		start(t)
		runtime.GC() // the goroutine begins in the time of the bubble
		synctest.Wait()
	})
}

// TestClosedFiles closes the file of the timer, as programs do that close all files, and opens a file with
// its number: nothing is written to it.
func TestClosedFiles(t *testing.T) {
	if os.Getenv("CMEM_CLOSED") == "" {
		cmd := command(os.Args[0], "-test.run=^TestClosedFiles$")
		cmd.Env = append(os.Environ(), "CMEM_CLOSED=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return
	}
	withRate(t, 1)
	start(t)
	fd := int(listener.file.Fd())
	name := filepath.Join(t.TempDir(), "file")
	other, err := os.Create(name)
	testcall.Must(t, err)
	testcall.Must(t, syscall.Dup3(int(other.Fd()), fd, 0))
	cwork.Free(cwork.Alloc(0, 100<<20))
	if b, err := os.ReadFile(name); err != nil || len(b) > 0 {
		t.Errorf("%q was written to a file of the program; %v", b, err)
	}
}

// heldBy returns what the accounts of a name hold.
func heldBy(name string) (held int64) {
	for _, u := range pace.Accounts() {
		if u.Name == name {
			held += u.Held
		}
	}
	return held
}

// TestCountedOnce has blocks that a pool and an account count as well.
func TestCountedOnce(t *testing.T) {
	withRate(t, 1)
	const n = 50 << 20
	near := func(what string, is, want int64) {
		t.Helper()
		if is < want-100_000 || is > want+100_000 {
			t.Errorf("%s: %d bytes, want %d", what, is, want)
		}
	}
	before, all := heldBy("C heap"), pace.ReadStats().Held
	p := cwork.Alloc(0, n)
	near("the C heap", heldBy("C heap")-before, n)
	near("all", pace.ReadStats().Held-all, n)

	a := pace.NewAccount(pace.AccountOptions{Name: "pictures", CHeap: true})
	testcall.Must(t, a.Add(n))
	near("the C heap, beside an account", heldBy("C heap")-before, 0)
	near("all, with an account", pace.ReadStats().Held-all, n)
	a.Remove(n)
	near("the C heap, after Remove", heldBy("C heap")-before, n)
	a.Close()

	pool := own.NewPool(own.Options{CHeap: true, Release: func(_ any, all []uintptr) error {
		for _, r := range all {
			cwork.Free(*(*unsafe.Pointer)(unsafe.Pointer(&r)))
		}
		return nil
	}})
	var o own.Handle[unsafe.Pointer]
	testcall.Must(t, o.Own(pool, p, n))
	near("own", heldBy("own, C heap"), n)
	near("the C heap, beside a pool", heldBy("C heap")-before, 0)
	near("all, with a pool", pace.ReadStats().Held-all, n)
	testcall.Must(t, o.Close())
	near("all, after Close", pace.ReadStats().Held-all, 0)
	if i := slices.IndexFunc(pace.Accounts(), func(u pace.Usage) bool { return u.Name == "C heap" && u.Blocks > 0 }); i < 0 {
		t.Error("no account of the C heap with blocks")
	}
}
