//go:build cgo && linux && !cheap_nocmem && !asan && !msan

package cmem

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"github.com/cheapgo/cheap/internal/test/testenv"
)

const fewCalls = 1_000_000

var calls = flag.Int("cmem.calls", fewCalls, "how many calls TestExact and TestThreadsThatComeAndGo make; with more than a million, other tests do more, too")

var builds = flag.Bool("cmem.builds", false, "TestStacks and TestOff build their program with other compilers and settings as well")

// isLong reports whether the tests are to take the time that they need to see more.
func isLong() bool { return *calls > fewCalls }

// TestExact has eight threads that come and go make so many calls. Afterwards the exact bytes in
// use are those that the allocator itself counts, if it keeps no blocks for its threads.
func TestExact(t *testing.T) {
	testenv.Skip(t, "musl", "the figures are of glibc and of what is linked with it")
	t.Parallel()
	program := build(t, nil)
	for _, row := range []struct{ name, env string }{
		{"glibc", "GLIBC_TUNABLES=glibc.malloc.tcache_count=0:glibc.malloc.arena_max=1"},
		{"jemalloc", "LD_PRELOAD=libjemalloc.so.2 MALLOC_CONF=tcache:false"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			needsPreload(t, row.env)
			cmd := command(program)
			cmd.Env = append(os.Environ(), append(strings.Fields(row.env), "CHEAP_CMEM=exact", fmt.Sprint("CPROG_CHURN=", *calls))...)
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			t.Logf("%s", out)
			var n, bytes, more int64
			if _, err := fmt.Sscanf(string(out), "off: , exact: true, %d calls, %d bytes, the allocator counts %d", &n, &bytes, &more); err != nil {
				t.Fatalf("%q: %v", out, err)
			}
			// For each thread of the Go runtime that has begun meanwhile, glibc has taken a chunk of its own
			// heap for what the thread would keep, without a call of malloc. It takes all of a free chunk
			// whose rest would be less than the least chunk, which has 32 bytes.
			const ofThread, rest, unit = 656, 16, 16
			if threads := more / ofThread; row.name == "glibc" && 0 <= threads && threads < 20 && more%unit == 0 && more-threads*ofThread <= threads*rest {
				more = 0
			}
			if n < int64(*calls) || bytes < 100_000 || more != 0 {
				t.Error("want as many calls, more than 100,000 bytes, and no difference")
			}
		})
	}
}

// needsPreload skips the test if the library that env preloads is not installed.
func needsPreload(t *testing.T, env string) {
	_, lib, ok := strings.Cut(env, "LD_PRELOAD=")
	if !ok {
		return
	}
	testenv.Skip(t, "emulator", "libraries are of this processor")
	lib, _, _ = strings.Cut(lib, " ")
	cmd := exec.Command("/bin/true")
	cmd.Env = []string{"LD_PRELOAD=" + lib}
	if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
		t.Skipf("%s cannot be preloaded on %s: %s", lib, runtime.GOARCH, out)
	}
}
