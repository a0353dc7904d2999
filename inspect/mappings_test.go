package inspect

import (
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"testing"
	"unsafe"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/internal/test/testcall"
	"github.com/cheapgo/cheap/internal/watch/procfs"
	"github.com/cheapgo/cheap/internal/watch/resident"
)

// TestMappings compares the sum with what the kernel says of the process, and the parts of the Go
// heap and of cheap with what was made resident there.
func TestMappings(t *testing.T) {
	if runtime.GOOS != "linux" {
		if table := hasTable(t, "mappings"); table == nil || table.Note == "" {
			t.Errorf("%+v", table)
		}
		return
	}
	status := func() float64 {
		text, err := os.ReadFile("/proc/self/status")
		testcall.Must(t, err)
		n, ok := procfs.Bytes(text, "VmRSS")
		if !ok {
			t.Fatalf("no VmRSS in %s", text)
		}
		return float64(n)
	}
	debug.FreeOSMemory() // so that what is allocated below becomes resident
	cheap.Trim()
	before := partsOf(t, "mappings")
	h := newHeap(t, "mappings")
	block := unsafe.Slice((*byte)(h.Malloc(24<<20)), 24<<20) // of as many bytes, freed with the heap
	garbage := make([]byte, 40<<20)
	for i := 0; i < len(garbage); i += 4096 {
		garbage[i] = 1
		block[i%len(block)] = 1
	}
	parts := partsOf(t, "mappings")
	rss := status()
	runtime.KeepAlive(garbage)
	sum := sumOf(parts)
	if sum != parts["resident in all"] || math.Abs(sum-rss) > 8<<20 {
		t.Errorf("the sum is %.0f, in all %.0f, VmRSS %.0f", sum, parts["resident in all"], rss)
	}
	wants := map[string]float64{"Go heap": 40 << 20, "cheap": 24 << 20}
	if resident.InGoHeap(uint64(uintptr(unsafe.Pointer(unsafe.SliceData(block))))) { // with the tag cheap_gomem
		wants = map[string]float64{"Go heap": 64 << 20}
	}
	if strconv.IntSize == 32 {
		wants = nil
	}
	for name, want := range wants {
		if n := parts[name] - before[name]; n < want/2 || n > want*1.5 {
			t.Errorf("%s has grown by %.0f bytes, want %.0f: %v", name, n, want, parts)
		}
	}
	if parts["the program"] == 0 {
		t.Errorf("the program is not among %v", parts)
	}
}

// BenchmarkTables is what the page reads.
func BenchmarkTables(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		allTables()
	}
}
