package inspect

import (
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
	"unsafe"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/internal/procfs"
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
		if err != nil {
			t.Fatal(err)
		}
		n, ok := procfs.Bytes(text, "VmRSS")
		if !ok {
			t.Fatalf("no VmRSS in %s", text)
		}
		return float64(n)
	}
	read := func() map[string]float64 {
		parts := map[string]float64{}
		for _, r := range hasTable(t, "mappings").Rows {
			parts[r.Labels[0]] = r.Values[0]
		}
		return parts
	}
	debug.FreeOSMemory() // so that what is allocated below becomes resident
	cheap.Trim()
	before := read()
	h, err := cheap.NewHeap(cheap.HeapOptions{Name: "mappings"})
	if err != nil {
		t.Fatal(err)
	}
	defer h.DestroyAll()
	block := unsafe.Slice((*byte)(h.Malloc(24<<20)), 24<<20) // of as many bytes, freed with the heap
	garbage := make([]byte, 40<<20)
	for i := 0; i < len(garbage); i += 4096 {
		garbage[i] = 1
		block[i%len(block)] = 1
	}
	parts := read()
	rss := status()
	runtime.KeepAlive(garbage)
	sum := 0.0
	for name, n := range parts {
		if name != "resident in all" {
			sum += n
		}
	}
	if sum != parts["resident in all"] || math.Abs(sum-rss) > 8<<20 {
		t.Errorf("the sum is %.0f, in all %.0f, VmRSS %.0f", sum, parts["resident in all"], rss)
	}
	wants := map[string]float64{"Go heap": 40 << 20, "cheap": 24 << 20}
	if inGoHeap(uintptr(unsafe.Pointer(unsafe.SliceData(block)))) { // with the tag cheap_gomem
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

// TestSumMappings has a program with C, threads, and a library that was replaced.
func TestSumMappings(t *testing.T) {
	program, err := os.Readlink("/proc/self/exe")
	if err != nil {
		program = "/bin/program"
	}
	vmas := []struct {
		at, mode, name string
		kb             int64
		want           string
	}{
		{"400000-500000", "r-xp", program, 100, "the program"},
		{"500000-510000", "rw-p", "", 4, "the program"}, // variables
		{"2000000-2100000", "rw-p", "[heap]", 200, "malloc: [heap]"},
		{"70000000-70010000", "r--p", "/lib/liba.so.1 (deleted)", 8, "liba.so.1 (deleted)"},
		{"70020000-70021000", "---p", "", 0, "reserved, without memory"},
		{"70021000-70821000", "rw-p", "", 16, "stacks of threads"},
		{"74000000-74021000", "rw-p", "", 50, "malloc: arenas"},
		{"74021000-78000000", "---p", "", 0, "malloc: arenas"},
		{"79000000-79001000", "rw-p", "", 3, "other anonymous"},
		{"7a000000-7a001000", "rw-p", "[anon: Go: heap]", 2, "[anon: Go: heap]"},
		{"7ffc0000-7ffd0000", "rw-p", "[stack]", 7, "stacks of threads"},
		{"7ffe0000-7ffe1000", "r-xp", "[vdso]", 1, "of the kernel"},
	}
	var text strings.Builder
	want := map[string]int64{}
	for _, v := range vmas {
		text.WriteString(v.at + " " + v.mode + " 00000000 08:01 1234       " + v.name + "\nSize: 9 kB\nRss:   " + fmt.Sprint(v.kb) + " kB\nPss: 1 kB\nAnonymous: 1 kB\nVmFlags: rd\n")
		want[v.want] += v.kb << 10 // of several mappings
	}
	list, all, ok := sumMappings(&io.LimitedReader{R: strings.NewReader(text.String()), N: 1 << 20})
	if !ok || all.count != int64(len(vmas)) || all.anonymous != int64(len(vmas))<<10 {
		t.Errorf("%v, %+v", ok, all)
	}
	for _, m := range list {
		if m.resident != want[m.name] {
			t.Errorf("%s: %d, want %d", m.name, m.resident, want[m.name])
		}
		delete(want, m.name)
	}
	if len(want) > 0 {
		t.Errorf("not there: %v", want)
	}
	if _, _, ok := sumMappings(&io.LimitedReader{R: strings.NewReader(text.String()), N: 1000}); ok {
		t.Error("a part of the file is taken for all of it")
	}
}

// BenchmarkMappings is what the two tables of resident memory take.
func BenchmarkMappings(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, _, ok := mappingsTable(); !ok {
			b.Skip("there is no /proc/self/smaps")
		}
	}
}

func BenchmarkRollup(b *testing.B) {
	for b.Loop() {
		if _, _, ok := readResident(); !ok {
			b.Skip("there is no /proc/self/smaps_rollup")
		}
	}
}
