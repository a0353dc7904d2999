//go:build cgo && linux

package arenas_test

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"unsafe"

	"github.com/cheapgo/cheap/internal/mem/account"
	"github.com/cheapgo/cheap/internal/test/testchild"
	"github.com/cheapgo/cheap/internal/test/testenv"
	"github.com/cheapgo/cheap/libc"
	"github.com/cheapgo/cheap/libc/arenas"
)

// TestBound has many threads allocate at the same time, in processes with different environments.
func TestBound(t *testing.T) {
	for _, row := range []struct {
		env         []string
		least, most int
	}{
		{nil, 1, max(2, runtime.NumCPU())},
		{[]string{"GOMAXPROCS=3"}, 3, 3},
		{[]string{"GOMAXPROCS=1"}, 2, 2},
		{[]string{"MALLOC_ARENA_MAX=5"}, 5, 5},
		{[]string{"GLIBC_TUNABLES=glibc.malloc.check=0:glibc.malloc.arena_max=4"}, 4, 4},
		{[]string{"MALLOC_ARENA_MAX=6", "GOMAXPROCS=2"}, 6, 6},
	} {
		t.Run(strings.Join(row.env, " "), func(t *testing.T) {
			t.Parallel()
			out, status := testchild.Run(t, allocateInThreads, row.env...)
			var n int
			var bounded bool
			if _, err := fmt.Sscan(out, &n, &bounded); err != nil || status != 0 {
				t.Fatalf("status %d: %s", status, out)
			}
			if n == 0 {
				t.Logf("the malloc of this program has no arenas")
				return
			}
			if n < row.least || n > row.most || !bounded {
				t.Errorf("%d arenas, bounded is %v, want %d to %d", n, bounded, row.least, row.most)
			}
		})
	}
}

// allocateInThreads prints how many arenas there are then, and whether they are bounded.
func allocateInThreads() {
	const threads = 20
	var all, over sync.WaitGroup
	all.Add(threads)
	for range threads {
		over.Go(func() {
			runtime.LockOSThread()
			var blocks [100]unsafe.Pointer
			for i := range blocks {
				blocks[i] = libc.Allocator{}.Malloc(10_000)
			}
			all.Done()
			all.Wait() // so each is a thread of its own
			for _, p := range blocks {
				libc.Allocator{}.Free(p)
			}
		})
	}
	over.Wait()
	fmt.Println(account.Process.Malloc().Arenas(), account.Process.ArenasBounded())
}

// TestKeepPages has blocks of a megabyte come and go. With KeepPages their pages stay. The user's variable wins.
func TestKeepPages(t *testing.T) {
	testenv.Skip(t, "asan", "the sanitizer's malloc is not glibc's")
	for _, env := range []string{"UNUSED=", "MALLOC_TRIM_THRESHOLD_=1000000", "GLIBC_TUNABLES=glibc.malloc.mmap_threshold=100000"} {
		t.Run(env, func(t *testing.T) {
			t.Parallel()
			out, status := testchild.Run(t, churn, env)
			var before, kept int64
			if _, err := fmt.Sscan(out, &before, &kept); err != nil || status != 0 {
				t.Fatalf("status %d: %s", status, out)
			}
			if few := kept < before/20; few != (env == "UNUSED=") {
				t.Errorf("faults: %d without KeepPages, %d with it", before, kept)
			}
		})
	}
}

// churn prints how many page faults 40 MiB of blocks cost that come and go, without KeepPages and with it.
func churn() {
	runtime.LockOSThread()
	faults := func() int64 {
		var blocks [40]unsafe.Pointer
		var before, after syscall.Rusage
		syscall.Getrusage(syscall.RUSAGE_SELF, &before)
		for range 4 {
			for i := range blocks {
				blocks[i] = libc.Allocator{}.Malloc(1 << 20)
				clear(unsafe.Slice((*byte)(blocks[i]), 1<<20))
			}
			for _, p := range blocks {
				libc.Allocator{}.Free(p)
			}
		}
		syscall.Getrusage(syscall.RUSAGE_SELF, &after)
		return int64(after.Minflt - before.Minflt)
	}
	before := faults()
	defer arenas.KeepPages()()
	faults() // it takes the pages
	fmt.Println(before, faults())
}
