//go:build !cheap_gomem && !race && !asan && !msan

package heap_test

import (
	"fmt"
	"runtime/debug"
	"syscall"
	"testing"

	. "github.com/cheapgo/cheap/internal/heap"
	"github.com/cheapgo/cheap/internal/test/testchild"
	"github.com/cheapgo/cheap/internal/test/testenv"
	"github.com/cheapgo/cheap/internal/watch/procfs"
)

// TestIdleResident measures what a heap with one block keeps in RAM: the first of the process,
// and a second one.
func TestIdleResident(t *testing.T) {
	if testenv.Emulated() {
		return // the emulator's own memory counts
	}
	out, status := testchild.Run(t, func() {
		debug.SetGCPercent(-1)
		var kib [3]int64
		procfs.Bytes(readRollup(), "Anonymous") // touches what reading needs
		for i := range kib {
			if i > 0 {
				h, err := New(Options{})
				if err != nil {
					panic(err)
				}
				h.Malloc(64)
			}
			n, ok := procfs.Bytes(readRollup(), "Anonymous")
			if !ok {
				panic("no line Anonymous")
			}
			kib[i] = n >> 10
		}
		fmt.Printf("first=%d second=%d\n", kib[1]-kib[0], kib[2]-kib[1])
	})
	var first, second int
	if _, err := fmt.Sscanf(out, "first=%d second=%d\n", &first, &second); err != nil || status != 0 {
		t.Fatalf("status %d: %v\n%s", status, err, out)
	}
	t.Logf("the first heap: %d KiB, the second: %d KiB", first, second)
	const atMost = 128
	if first < 4 || first > atMost || second < 4 || second > atMost {
		t.Errorf("the first heap keeps %d KiB in RAM, the second %d; each should keep 4 to %d", first, second, atMost)
	}
}

var rollup [4096]byte

// readRollup returns what the system says about the memory of the process.
func readRollup() []byte {
	fd, err := syscall.Open("/proc/self/smaps_rollup", syscall.O_RDONLY, 0)
	if err != nil {
		panic(err)
	}
	defer syscall.Close(fd)
	n := 0
	for {
		k, err := syscall.Read(fd, rollup[n:])
		if err != nil {
			panic(err)
		}
		if k == 0 {
			return rollup[:n]
		}
		n += k
	}
}
