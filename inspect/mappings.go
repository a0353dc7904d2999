package inspect

import (
	"bufio"
	"bytes"
	"cmp"
	"io"
	"os"
	"path"
	"slices"
	"strconv"
	"sync"
	"unsafe"

	"github.com/cheapgo/cheap/internal/span"
)

// A mapped is what is added up of the mappings of one name, in bytes.
type mapped struct {
	name                       string
	resident, anonymous, space int64
	count                      int64 // of mappings
}

// A vma is one mapping, as /proc/self/smaps has it.
type vma struct {
	start, end          uintptr
	writes, none        bool // what may be done there; nothing
	name                string
	resident, anonymous int64
}

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
	var was, v vma
	add := func() {
		if v.end == 0 {
			return
		}
		name := v.kind(&was, program)
		m := byName[name]
		if m == nil {
			m = &mapped{name: name}
			byName[name] = m
		}
		for _, sum := range []*mapped{m, &all} {
			sum.resident += v.resident
			sum.anonymous += v.anonymous
			sum.space += int64(v.end - v.start)
			sum.count++
		}
	}
	for lines := bufio.NewReaderSize(from, 64<<10); ; {
		line, err := lines.ReadSlice('\n')
		if err != nil {
			break
		}
		if next, ok := parseVMA(line); ok {
			add()
			was, v = v, next
			continue
		}
		switch {
		case bytes.HasPrefix(line, []byte("Rss:")):
			v.resident = kilobytesOf(line[4:])
		case bytes.HasPrefix(line, []byte("Anonymous:")):
			v.anonymous = kilobytesOf(line[10:])
		}
	}
	add()
	for _, m := range byName {
		list = append(list, *m)
	}
	slices.SortFunc(list, func(x, y mapped) int {
		return cmp.Or(cmp.Compare(y.resident, x.resident), cmp.Compare(x.name, y.name))
	})
	return list, all, from.N > 0 && all.resident > 0
}

// parseVMA reads a line such as "7f00-7f10 rw-p 00000000 00:00 0   [heap]".
func parseVMA(line []byte) (v vma, ok bool) {
	at, rest, ok := bytes.Cut(line, []byte(" "))
	from, to, isRange := bytes.Cut(at, []byte("-"))
	if !ok || !isRange || len(rest) < 4 {
		return v, false
	}
	start, err := strconv.ParseUint(string(from), 16, strconv.IntSize)
	end, err2 := strconv.ParseUint(string(to), 16, strconv.IntSize)
	if err != nil || err2 != nil {
		return v, false
	}
	v = vma{start: uintptr(start), end: uintptr(end), writes: rest[1] == 'w', none: rest[0] == '-' && rest[1] == '-' && rest[2] == '-'}
	for range 4 { // mode, offset, device, inode
		_, rest, _ = bytes.Cut(rest, []byte(" "))
	}
	v.name = string(bytes.TrimSpace(rest))
	return v, true
}

func kilobytesOf(text []byte) int64 {
	n, err := strconv.ParseInt(string(bytes.TrimSuffix(bytes.TrimSpace(text), []byte(" kB"))), 10, 64)
	if err != nil {
		return 0
	}
	return n << 10
}

// goHeap returns an address at or below the first arena of the Go heap. The arenas follow each
// other from there on.
var goHeap = sync.OnceValue(func() uint64 {
	x := make([]byte, 64<<10+os.Getpid()&1) // of a size that the compiler does not know: not on a stack
	return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(x)))) &^ (64<<30 - 1)
})

// inGoHeap reports whether an address is of the Go heap. In 32 bits there is no telling.
func inGoHeap(addr uintptr) bool {
	const terabyte = 1 << 40
	return strconv.IntSize == 64 && uint64(addr) >= goHeap() && uint64(addr)-goHeap() < terabyte
}

// ofCheap reports whether the mapping is a region of cheap, or has a unit that cheap uses.
func (v *vma) ofCheap() bool {
	if v.start%span.RegionSize == 0 && span.Lookup(v.start) != nil {
		return true // also when all of it is idle
	}
	for at := v.start; at < v.end && at >= v.start; at += span.UnitSize {
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

// kind returns the name under which a mapping is added up. was is the one before it. A mapping that
// has no name is told by its address and by its neighbour: the kernel makes one mapping of two that
// are next to each other, so a part of it may be of another kind.
func (v *vma) kind(was *vma, program string) string {
	const next = " (deleted)"
	switch {
	case v.name == program || v.name == program+next:
		return "the program"
	case v.name == "[heap]":
		return "malloc: [heap]"
	case v.name == "[stack]":
		return "stacks of threads"
	case v.name == "[vdso]" || v.name == "[vvar]" || v.name == "[vvar_vclock]" || v.name == "[vsyscall]":
		return "of the kernel"
	case v.name != "" && v.name[0] == '/':
		return path.Base(v.name)
	case v.name != "":
		return v.name
	case inGoHeap(v.start):
		return "Go heap"
	case v.ofCheap():
		return "cheap"
	case v.start%mallocArena == 0 && v.writes && v.end-v.start <= mallocArena:
		return "malloc: arenas"
	case v.none && was.writes && was.end == v.start && was.start%mallocArena == 0 && was.name == "":
		return "malloc: arenas" // the rest of one
	case v.writes && was.none && was.end == v.start && was.end-was.start <= 64<<10:
		return "stacks of threads" // behind a guard
	case was.file() && was.end == v.start && v.writes:
		return was.variables(program) // variables that are zero at first
	case v.none:
		return "reserved, without memory"
	}
	return "other anonymous"
}

func (v *vma) file() bool { return v.name != "" && v.name[0] == '/' }

func (v *vma) variables(program string) string {
	var none vma
	return v.kind(&none, program)
}
