package inspect

import (
	"os"
	"runtime/metrics"

	"github.com/cheapgo/cheap/internal/procfs"
)

// A resident is what the kernel says of the resident memory.
type resident struct {
	all, anonymous int64            // anonymous is no pages of files
	of             map[string]int64 // by the names of mappings; nil if they are not known
	known          bool
}

// residentTable divides the resident memory of the process into parts. It is not in Read: the kernel
// takes a while to sum up the pages of a process, and maps no memory for the process meanwhile. It uses
// nothing of s that the next read writes to.
//
// Go and cheap count bytes that they have from the system, and a page that was never touched
// is not resident. So a part is at most
//
//	min(the resident bytes of its mappings, where these are known; what the parts before it have left)
//
// bytes: the parts add up, and no page is counted twice.
func residentTable(s *snapshot, pages resident) Table {
	t := residentFrame()
	left := pages.anonymous
	part := func(name string, n int64) {
		if pages.known {
			n = max(0, min(n, left))
			left -= n
		}
		t.add([]string{name}, []float64{float64(n)})
	}
	g, heaps, idle := readGo(), s.touched(), s.idleBytes()
	if n, ok := pages.of["Go heap"]; ok {
		g.stacks = min(g.stacks, n) // they lie in the same mappings
		g.heap = n - g.stacks
	}
	if n, ok := pages.of["cheap"]; ok {
		heaps = min(heaps, n)
		idle = min(idle, n-heaps)
	}
	part("heaps of cheap", heaps)
	part("idle memory of cheap", idle)
	part("owners", s.store)
	part("metadata of cheap", s.metadata())
	part("Go stacks", g.stacks)
	part("Go heap", g.heap)
	if s.c != nil {
		part("C heap, about", s.c.Live)
	}
	part("Go runtime", g.runtime)
	if !pages.known {
		return t // no such file on this system
	}
	t.add([]string{"the rest"}, []float64{float64(left)})
	t.add([]string{"files: program and libraries"}, []float64{float64(pages.all - pages.anonymous)})
	t.add([]string{"resident in all"}, []float64{float64(pages.all)})
	return t
}

func residentFrame() Table {
	return Table{
		Name: "resident", Title: "Resident memory",
		About:  "What the resident memory of the process is for. The parts add up to the whole. The rest is C's malloc, or with module cmem what it has besides the blocks in use, and the stacks of threads.",
		Labels: []string{"part"}, Rows: []TableRow{},
		Metrics: []Heading{{Head: "bytes", Unit: "bytes", Kind: Gauge.String(), Help: "Bytes of the part."}},
	}
}

// touched is what of the spans had a block in it at some time.
func (s *snapshot) touched() int64 {
	n := s.totals.Large
	for _, c := range s.classes {
		n += c.carvedBytes
	}
	return n
}

type goMemory struct{ heap, stacks, runtime int64 }

// readGo reads what Go has of the system and did not give back. It does not stop the world.
func readGo() (g goMemory) {
	samples := []metrics.Sample{
		{Name: "/memory/classes/total:bytes"},
		{Name: "/memory/classes/heap/released:bytes"},
		{Name: "/memory/classes/heap/stacks:bytes"},
		{Name: "/memory/classes/os-stacks:bytes"},
		{Name: "/memory/classes/heap/objects:bytes"},
		{Name: "/memory/classes/heap/unused:bytes"},
		{Name: "/memory/classes/heap/free:bytes"},
	}
	metrics.Read(samples)
	n := func(i int) int64 {
		if v := samples[i].Value; v.Kind() == metrics.KindUint64 {
			return int64(v.Uint64())
		}
		return 0 // not in this version of Go
	}
	g.heap, g.stacks = n(4)+n(5)+n(6), n(2)+n(3)
	g.runtime = n(0) - n(1) - g.heap - g.stacks
	return g
}

// readResident returns the resident bytes of the process, and those that are no pages of files.
// It reads smaps_rollup, which Linux has since 4.14, or else statm.
func readResident() (all, anonymous int64, ok bool) {
	if text, err := os.ReadFile("/proc/self/smaps_rollup"); err == nil {
		all, _ = procfs.Bytes(text, "Rss")
		anonymous, _ = procfs.Bytes(text, "Anonymous")
		return all, anonymous, all > 0
	}
	text, err := os.ReadFile("/proc/self/statm")
	all, file := procfs.Resident(text, int64(os.Getpagesize()))
	return all, all - file, err == nil && all > 0
}
