//go:build cgo && linux

package arenas_test

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"github.com/cheapgo/cheap/internal/account"
	"github.com/cheapgo/cheap/internal/testchild"
	"github.com/cheapgo/cheap/libc"
	_ "github.com/cheapgo/cheap/libc/arenas"
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
