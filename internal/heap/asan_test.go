//go:build asan

package heap

import (
	"os"
	"strings"
	"testing"
	"unsafe"

	_ "github.com/cheapgo/cheap/asan"
	"github.com/cheapgo/cheap/internal/mem/span"
	"github.com/cheapgo/cheap/internal/test/testchild"
	"github.com/cheapgo/cheap/internal/test/testheap"
)

// The tests of this package look at how heaps work that are not checked. So only the regions
// and the free memory of arenas and pools are told to the sanitizer here, unless
// CHEAP_TEST_ASAN is set.
func init() {
	if os.Getenv("CHEAP_TEST_ASAN") == "" {
		Unwatch()
	}
}

// TestWatched runs tests that do not look into the heap once more, in a process where all heaps are
// watched.
func TestWatched(t *testing.T) {
	if os.Getenv("CHEAP_TEST_ASAN") != "" {
		return
	}
	names := []string{"TestHammerHeaps", "TestDestroyWithMappings", "TestThousandHeaps", "TestCheckedAlignments", "TestCheckedTrim"}
	cmd := testchild.Program(t.Context(), os.Args[0], "-test.v", "-test.run=^("+strings.Join(names, "|")+")$")
	cmd.Env = append(os.Environ(), "CHEAP_TEST_ASAN=1")
	out, err := cmd.CombinedOutput()
	for _, name := range names {
		if err != nil || !strings.Contains(string(out), "\n--- PASS: "+name+" ") {
			t.Fatalf("%s: %v\n%s", name, err, out)
		}
	}
}

// TestNoPoisonAfterDestroy has a block poisoned by a call that goes on while another goroutine
// destroys the heap. The memory may be another heap's by then.
func TestNoPoisonAfterDestroy(t *testing.T) {
	output, status := testchild.Run(t, func() {
		poisonsBlocks = true
		span.SetDecay(-1) // the memory stays, and so may be touched
		h, err := New(Options{Check: CheckBlocks})
		if err != nil {
			panic(err)
		}
		p := h.Malloc(100)
		hd := headerAt(uintptr(unsafe.Add(p, -headerBytes)))
		if err := h.DestroyAll(); err != nil {
			panic(err)
		}
		h.checked.poison(hd)
		testheap.RawBytes(p, 101)[100] = 1
	})
	if status != 0 || output != "" {
		t.Errorf("status %d\n%s", status, output)
	}
}
