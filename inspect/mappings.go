package inspect

import (
	"cmp"
	"io"
	"os"
	"path"
	"slices"
	"strconv"
	"sync"
	"unsafe"

	"github.com/cheapgo/cheap/internal/procfs"
	"github.com/cheapgo/cheap/internal/span"
)

// A mapped is the sum over the mappings of one name, in bytes.
type mapped struct {
	name                       string
	resident, anonymous, space int64
	count                      int64 // of mappings
}

// A vma is a mapping, as /proc/self/smaps has it.
type vma procfs.Mapping

// mostSmaps bounds how much of /proc/self/smaps is read: 6,000 mappings, which take 25 ms.
const mostSmaps = 4 << 20

// readMappings adds up /proc/self/smaps by name, those with the most resident bytes first. all is
// the sum. It returns false where there is no such file, or where it is too long.
func readMappings() (list []mapped, all mapped, ok bool) {
	f, err := os.Open("/proc/self/smaps")
	if err != nil {
		return nil, all, false
	}
	defer f.Close()
	return sumMappings(&io.LimitedReader{R: f, N: mostSmaps})
}

func sumMappings(from *io.LimitedReader) (list []mapped, all mapped, ok bool) {
	byName := map[string]*mapped{}
	program, _ := os.Readlink("/proc/self/exe")
	var was vma
	err := procfs.Mappings(from, func(m procfs.Mapping) bool {
		v := vma(m)
		name := v.kind(&was, program)
		sums := byName[name]
		if sums == nil {
			sums = &mapped{name: name}
			byName[name] = sums
		}
		for _, sum := range []*mapped{sums, &all} {
			sum.resident += v.Resident
			sum.anonymous += v.Anonymous
			sum.space += int64(v.End - v.Start)
			sum.count++
		}
		was = v
		return true
	})
	for _, m := range byName {
		list = append(list, *m)
	}
	slices.SortFunc(list, func(x, y mapped) int {
		return cmp.Or(cmp.Compare(y.resident, x.resident), cmp.Compare(x.name, y.name))
	})
	return list, all, err == nil && from.N > 0 && all.resident > 0
}

// goHeap returns an address at or below the first arena of the Go heap. The arenas follow each
// other from there on.
var goHeap = sync.OnceValue(func() uint64 {
	x := make([]byte, 64<<10+os.Getpid()&1) // of a size that the compiler does not know: not on a stack
	return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(x)))) &^ (64<<30 - 1)
})

// inGoHeap reports whether an address is in the Go heap. On 32-bit systems that is not known.
func inGoHeap(addr uintptr) bool {
	const terabyte = 1 << 40
	return strconv.IntSize == 64 && uint64(addr) >= goHeap() && uint64(addr)-goHeap() < terabyte
}

// ofCheap reports whether the mapping is a region of cheap, or has a unit that cheap uses.
func (v *vma) ofCheap() bool {
	if v.Start%span.RegionSize == 0 && span.Lookup(uintptr(v.Start)) != nil {
		return true // also when all of it is idle
	}
	for at, end := uintptr(v.Start), uintptr(v.End); at < end && at >= uintptr(v.Start); at += span.UnitSize {
		if r := span.Lookup(at); r == nil {
			at |= span.RegionSize - span.UnitSize // none in this region has a record
		} else if r.LoadTag() != 0 {
			return true
		}
	}
	return false
}

// mappingsTable returns the table, and the sums of all mappings. ok is false if they are not known.
func mappingsTable() (t Table, all mapped, ok bool) {
	t = mappingsFrame()
	list, all, ok := readMappings()
	if !ok {
		t.Note = "/proc/self/smaps is not there, or has more than 4 MiB."
		return t, all, false
	}
	all.name = "resident in all"
	for _, m := range append(list, all) {
		t.add([]string{m.name}, []float64{float64(m.resident), float64(m.anonymous), float64(m.space), float64(m.count)})
	}
	return t, all, true
}

func mappingsFrame() Table {
	gauge := func(head, unit, help string) Heading {
		return Heading{Head: head, Unit: unit, Kind: Gauge.String(), Help: help}
	}
	return Table{
		Name: "mappings", Title: "Mappings",
		About:  "The resident memory as the kernel knows it, by the names of mappings. What has no name is told by its address and its neighbours, so a part of it may belong to another line: the kernel makes one mapping of two that are next to each other.",
		Labels: []string{"mapping"}, Rows: []TableRow{},
		Metrics: []Heading{
			gauge("resident", "bytes", "Bytes that are in memory."),
			gauge("anonymous", "bytes", "Of these, bytes that are no pages of a file, or were changed since."),
			gauge("space", "bytes", "Bytes of address space."),
			gauge("mappings", "mappings", "How many mappings have the name."),
		},
	}
}

// The arenas of glibc's malloc are aligned to their size, and what is not used yet is inaccessible.
const mallocArena = 64 << 20

// kind returns the name under which a mapping is added up. was is the mapping before it. A mapping
// without a name is recognized by its address and by was. The kernel joins mappings that are next
// to each other, so a part of a mapping may be of another kind.
func (v *vma) kind(was *vma, program string) string {
	const next = " (deleted)"
	switch {
	case v.Name == program || v.Name == program+next:
		return "the program"
	case v.Name == "[heap]":
		return "malloc: [heap]"
	case v.Name == "[stack]":
		return "stacks of threads"
	case v.Name == "[vdso]" || v.Name == "[vvar]" || v.Name == "[vvar_vclock]" || v.Name == "[vsyscall]":
		return "of the kernel"
	case v.Name != "" && v.Name[0] == '/':
		return path.Base(v.Name)
	case v.Name != "":
		return v.Name
	case inGoHeap(uintptr(v.Start)):
		return "Go heap"
	case v.ofCheap():
		return "cheap"
	case v.Start%mallocArena == 0 && v.Write && v.End-v.Start <= mallocArena:
		return "malloc: arenas"
	case v.none() && was.Write && was.End == v.Start && was.Start%mallocArena == 0 && was.Name == "":
		return "malloc: arenas" // the rest of one
	case v.Write && was.none() && was.End == v.Start && was.End-was.Start <= 64<<10:
		return "stacks of threads" // behind a guard
	case was.file() && was.End == v.Start && v.Write:
		return was.variables(program) // variables that are zero at first
	case v.none():
		return "reserved, without memory"
	}
	return "other anonymous"
}

// none reports whether the mapping is inaccessible.
func (v *vma) none() bool { return !v.Read && !v.Write && !v.Exec }

func (v *vma) file() bool { return v.Name != "" && v.Name[0] == '/' }

func (v *vma) variables(program string) string {
	var none vma
	return v.kind(&none, program)
}
