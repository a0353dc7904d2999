package resident

import (
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unsafe"

	"github.com/cheapgo/cheap/internal/mem/span"
	"github.com/cheapgo/cheap/internal/page/symbols"
	"github.com/cheapgo/cheap/internal/watch/procfs"
)

// ReadMappings sums the mappings of this process. The kernel makes the list while it is read, which
// takes 4 µs or so for each mapping, and walks all page tables; nothing can be mapped meanwhile. It
// returns nil where there is no such list, or where it is too long.
func ReadMappings() *Mappings {
	f, err := os.Open("/proc/self/smaps")
	if err != nil {
		return nil
	}
	defer f.Close()
	program, _ := os.Readlink("/proc/self/exe")
	b := blocks{pid: os.Getpid(), goThread: goThread()}
	p := Classifier{Program: program, OfCheap: ofCheap, Malloc: b.in}
	if strconv.IntSize == 64 {
		p.InGo = InGoHeap
	}
	return p.sumWith(&b, f)
}

// MappingsOf sums the mappings of another process, or returns nil where this one may not read them. program
// is the path of its program, and isGo says that it is one of Go.
func MappingsOf(pid int, program string, isGo bool) *Mappings {
	f, err := os.Open("/proc/" + strconv.Itoa(pid) + "/smaps")
	if err != nil {
		return nil
	}
	defer f.Close()
	b := blocks{pid: pid}
	p := Classifier{Program: program, Malloc: b.in, Whole: true}
	if isGo {
		p.InGo = func(addr uint64) bool { return addr >= 1<<32 && addr < goBelow() }
	}
	return p.sumWith(&b, f)
}

// sumWith is Sum with the number of arenas.
func (p *Classifier) sumWith(b *blocks, f *os.File) *Mappings {
	defer b.close()
	tasks := b.tasks()
	m := p.Sum(f)
	if b.pid != os.Getpid() && !hasMemory(b.pid) {
		return nil // it has ended meanwhile: what was read last is missing
	}
	if m != nil {
		m.Arenas, m.Unread = int64(len(b.arenas)), b.unread
		m.Threads = b.threads(m, p.Program, tasks)
		for _, f := range m.files {
			file, from := strings.TrimSuffix(f.Name, " (deleted)"), f.Name
			if f.Name == p.Program {
				from = "/proc/self/exe" // even if the file was replaced
			}
			if b.pid != os.Getpid() || !f.Exec {
				continue // package heapprofile knows the files of a program that is recorded
			}
			if line := symbols.AllocatorIn(file, from).Line; line != "" && !slices.Contains(m.Allocators, line) {
				m.Allocators = append(m.Allocators, line)
			}
		}
		m.stacks, m.files = nil, nil
	}
	return m
}

// hasMemory reports whether a process has not ended yet.
func hasMemory(pid int) bool {
	text, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/statm")
	all, _ := procfs.Resident(text, 1)
	return all > 0
}

// goSpace is more than the Go heap is large.
const goSpace = 1 << 40

// goBelow is the address below which the runtime puts its heap on 64-bit Linux, at random. The program, its
// libraries, and what is mapped without an address are above, or below 4 GiB.
func goBelow() uint64 {
	if runtime.GOARCH == "amd64" {
		return 1 << 46
	}
	return 1 << 47
}

// goHeap returns an address in the Go heap. The arenas follow each other, below it and above.
var goHeap = sync.OnceValue(func() uint64 {
	x := make([]byte, 64<<10+os.Getpid()&1) // of a size that the compiler does not know: not on a stack
	// Only the number is used.
	return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(x))))
})

// InGoHeap reports whether an address is in the Go heap of this process. On 32-bit systems that is not
// known, and it returns false.
func InGoHeap(addr uint64) bool {
	return strconv.IntSize == 64 && besideGo(addr, goHeap())
}

// besideGo reports whether an address is in the heap in which the other one is.
func besideGo(addr, in uint64) bool {
	return addr >= 1<<32 && addr+goSpace >= in && addr < in+goSpace
}

// ofCheap reports whether a mapping is a region of cheap, or has a unit that cheap uses.
func ofCheap(start, end uint64) bool {
	if start%span.RegionSize == 0 && span.Lookup(uintptr(start)) != nil {
		return true // also when all of it is idle
	}
	for at, end := uintptr(start), uintptr(end); at < end && at >= uintptr(start); at += span.UnitSize {
		if r := span.Lookup(at); r == nil {
			at |= span.RegionSize - span.UnitSize // none in this region has a record
		} else if r.LoadTag() != 0 {
			return true
		}
	}
	return false
}
