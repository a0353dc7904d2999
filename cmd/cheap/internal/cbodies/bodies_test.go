//go:build cgo && linux && !cheap_nocmem && !asan && !msan

package cbodies

import (
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

// TestCheckC has bodies that leak, each of which must be found, and others, none of which may be accused.
func TestCheckC(t *testing.T) {
	if why := cmem.Off(); why != "" {
		t.Fatal(why)
	}
	prepare()
	for _, b := range all() {
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
