package span

import (
	"os"
	"syscall"
	"testing"

	"github.com/cheapgo/cheap/internal/test/testcall"
	"github.com/cheapgo/cheap/internal/test/testchild"
	"github.com/cheapgo/cheap/internal/test/testenv"
	"github.com/cheapgo/cheap/internal/watch/procfs"
)

// TestLockedMemory makes the map in a program that locks all its memory, which the
// system then provides when it is mapped. Most of the map is never written to, and must
// not take memory: it has 32 MiB on 64-bit systems.
func TestLockedMemory(t *testing.T) {
	testenv.Skip(t, "asan msan", "the sanitizer's own memory is locked and resident, too")
	output, passed := testchild.Test(t, func(t *testing.T) {
		if err := syscall.Mlockall(syscall.MCL_FUTURE); err != nil {
			return // the program may not lock memory; then the map costs nothing anyway
		}
		before := resident(t)
		testcall.Must(t, Init())
		if took := resident(t) - before; took > 8<<20 {
			t.Errorf("the map takes %d bytes of memory", took)
		}
		base, _, err := Alloc(1, 1, UnitSize)
		testcall.Must(t, err)
		if Find(base) == nil {
			t.Error("the unit has no record")
		}
		Free(base, 1)
	})
	if !passed {
		t.Error(output)
	}
}

// resident returns how many bytes of memory the process has. The kernel gives them in
// kibibytes here, and not in pages: under qemu-user those would be the kernel's own.
func resident(t *testing.T) int {
	text, err := os.ReadFile("/proc/self/status")
	testcall.Must(t, err)
	n, ok := procfs.Bytes(text, "VmRSS")
	if !ok {
		t.Fatalf("no VmRSS in %s", text)
	}
	return int(n)
}
