//go:build cgo && linux && !cheap_nocmem && !asan && !msan

package cbodies

import (
	"flag"
	"fmt"
	"strings"
	"testing"

	"github.com/cheapgo/cheap/cmem"
	"github.com/cheapgo/cheap/inspect/leaktest"
)

// A fake is a test that fails without consequences.
type fake struct {
	testing.TB
	failed []string
}

func (f *fake) Helper()      {}
func (f *fake) Failed() bool { return len(f.failed) > 0 }
func (f *fake) Name() string { return f.TB.Name() }
func (f *fake) Errorf(format string, args ...any) {
	f.failed = append(f.failed, fmt.Sprintf(format, args...))
}

// leakNames are functions that the stack of a leak has, other than leak.
var leakNames = map[string]string{
	// The stacks of other leaks have leak, too.
	"vector":            "vector\n",
	"mapping_leak":      "mapping_leak\n",
	"thread_leak":       "C holds ", // on two stacks: with and without who has made the thread
	"file_leak":         "open_memstream\n",
	"old_thread_leak":   "of threads of C that are older than the check",
	"string_leak_of_go": "cbodies.all.func",
}

var everyBody = flag.Bool("cbodies.all", false, "TestCheckC has all bodies, not each fourth of them")

// TestCheckC has bodies that leak, each of which must be found, and others, none of which may be accused.
func TestCheckC(t *testing.T) {
	if why := cmem.Off(); why != "" {
		t.Fatal(why)
	}
	prepare()
	for i, b := range all() {
		if i%4 != 0 && !*everyBody {
			continue
		}
		t.Run(b.name, func(t *testing.T) {
			f := &fake{TB: t}
			leaktest.CheckC(f, b.call)
			said := strings.Join(f.failed, "\n")
			if !b.leaks {
				if said != "" {
					t.Errorf("accused, and leaks nothing:\n%s", said)
				}
				return
			}
			want := leakNames[b.name]
			if want == "" {
				want = "leak\n"
			}
			if !strings.Contains(said, want) || want[len(want)-1] == '\n' && !strings.Contains(said, "cbodies.all.func") {
				t.Errorf("it leaks, and is said to:\n%s", said)
			}
		})
	}
}

// TestBenchmark has a benchmark of 50 blocks, and the format that benchstat reads.
func TestBenchmark(t *testing.T) {
	for _, b := range all() {
		if b.name != "many" {
			continue
		}
		r := testing.Benchmark(func(tb *testing.B) {
			leaktest.Benchmark(tb)
			for tb.Loop() {
				b.call()
			}
		})
		const blocks, bytes = 50, 50 + 37*49*50/2
		// What the runtime of Go makes in C for a thread, such as its stack, counts as well.
		if n := r.Extra["C-allocs/op"]; n < blocks || n > blocks+1 {
			t.Errorf("%g allocations, want %d", n, blocks)
		}
		if n := r.Extra["C-B/op"]; n < bytes || n > bytes+1000 {
			t.Errorf("%g bytes, want %d", n, bytes)
		}
		if s := r.String(); !strings.Contains(s, " C-B/op") || !strings.Contains(s, " C-allocs/op") {
			t.Error(s)
		}
	}
}
