//go:build cgo && linux && !cheap_nocmem && !asan && !msan

package cmem_test

import (
	"flag"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/cheapgo/cheap/cmem"
	"github.com/cheapgo/cheap/cmem/internal/cwork"
	"github.com/cheapgo/cheap/internal/test/testenv"
)

// calls returns how many calls a test makes: the flag is that of TestExact as well.
func calls() int { return flag.Lookup("cmem.calls").Value.(flag.Getter).Get().(int) }

// TestThreadsThatComeAndGo compares the counts with those of the threads themselves, and with those
// of jemalloc, if it is preloaded.
func TestThreadsThatComeAndGo(t *testing.T) {
	before := cmem.ReadStats()
	made, freed, jemalloc := cwork.Jemalloc()
	mallocs, frees, bytes, threads := cwork.Counts(calls())
	made2, freed2, _ := cwork.Jemalloc()
	after := cmem.ReadStats()
	// The C library allocates for each thread: its table of thread-local storage, and what is behind
	// it; jemalloc allocates nothing for itself that it would count.
	few := 8*threads + 100
	got := [3]int{int(after.Mallocs - before.Mallocs), int(after.Frees - before.Frees), int(after.Bytes - before.Bytes)}
	if m := got[0] - mallocs; m < 0 || m > few {
		t.Errorf("%d mallocs, of which the threads have made %d", got[0], mallocs)
	}
	if f := got[1] - frees; f < 0 || f > few {
		t.Errorf("%d frees, of which the threads have made %d", got[1], frees)
	}
	if b := got[2] - bytes; b < 0 || b > 1000*few {
		t.Errorf("%d bytes, of which the threads have asked for %d", got[2], bytes)
	}
	if jemalloc {
		// A block that is resized where it is, is not made for jemalloc.
		in := (made2 - made) - (freed2 - freed)
		if d := got[0] - got[1] - in; d < -10 || d > 10 {
			t.Errorf("%d blocks more are in use, %d of jemalloc", got[0]-got[1], in)
		}
	} else if os.Getenv("CMEM_JEMALLOC") != "" {
		t.Error("jemalloc has no statistics")
	}
	t.Logf("%d blocks made (%d by the threads), %d freed (%d), %d bytes (%d), %d threads; jemalloc: %d made, %d freed",
		got[0], mallocs, got[1], frees, got[2], bytes, threads, made2-made, freed2-freed)
}

// TestBytesGrow reads the bytes while threads allocate little: they do not jump, and never shrink.
func TestBytesGrow(t *testing.T) {
	defer cmem.SetRate(cmem.SetRate(512))
	done := make(chan bool)
	go func() {
		for range 3 {
			cwork.Threads(4, 20_000, 300)
		}
		close(done)
	}()
	last := cmem.ReadStats().Bytes
	for reads := 0; ; reads++ {
		select {
		case <-done:
			t.Log(reads, "reads")
			return
		default:
		}
		n := cmem.ReadStats().Bytes
		if n < last {
			t.Fatalf("%d bytes after %d", n, last)
		}
		last = n
	}
}

// TestJemallocCounts does so with jemalloc.
func TestJemallocCounts(t *testing.T) {
	testenv.Skip(t, "musl emulator", "the library is linked with the glibc of this processor")
	const library = "libjemalloc.so.2"
	none := exec.Command("true")
	none.Env = []string{"LD_PRELOAD=" + library}
	if out, err := none.CombinedOutput(); err != nil || len(out) != 0 {
		t.Skip(library, "is not installed")
	}
	cmd := exec.Command(os.Args[0], "-test.v", "-test.run=^TestThreadsThatComeAndGo$", "-cmem.calls="+flag.Lookup("cmem.calls").Value.String())
	cmd.Env = append(os.Environ(), "LD_PRELOAD="+library, "MALLOC_CONF=tcache:false", "CMEM_JEMALLOC=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, "made") {
			t.Log(strings.TrimSpace(line))
		}
	}
}
