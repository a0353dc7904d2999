package resident

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"os"
	"path"
	"runtime"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/cheapgo/cheap/internal/page/symbols"
	"github.com/cheapgo/cheap/internal/watch/procfs"
)

const (
	// glibc keeps its record of a thread, struct pthread, in the last bytes of the thread's stack, before or behind the
	// variables that are thread-local. It has the addresses of two neighbours in a list, the number of the thread in
	// the kernel, and later the function that pthread_create was called with, and its argument.
	recordIn  = 8 << 10
	mostApart = 200 // words, from the number to the function

	// Module cmem calls pthread_create with a function of its own. A thread-local variable, see begin.c, has this mark,
	// the function that was meant, and its argument.
	begunMark = 0x6d656d2062656775

	stacksAtOnce = 4

	// Of a function in the program the name is looked up if it has begun so many threads: symbols take a while.
	leastNamed = 16
)

// started are threads that one function has begun.
type started struct {
	Threads
	file *procfs.Mapping
	at   uint64 // the function, if it is in the program
	isGo bool
}

// tasks returns the numbers of the threads.
func (b *blocks) tasks() map[uint64]bool {
	folder, err := os.Open(fmt.Sprintf("/proc/%d/task", b.pid))
	if err != nil || strconv.IntSize != 64 {
		return nil
	}
	defer folder.Close()
	names, _ := folder.Readdirnames(-1)
	all := make(map[uint64]bool, len(names))
	for _, name := range names {
		if tid, err := strconv.ParseUint(name, 10, 32); err == nil {
			all[tid] = true
		}
	}
	return all
}

// threads groups threads by who has begun them. left has those that were there before the list of mappings was read, and loses
// them. m has the mappings of stacks and files.
func (b *blocks) threads(m *Mappings, program string, left map[uint64]bool) (list []Threads) {
	var groups []*started
	texts := make([]byte, stacksAtOnce*recordIn)
	at := make([]uint64, 0, stacksAtOnce)
	for rest := withUsual(m.stacks); len(rest) > 0; {
		n := min(len(rest), stacksAtOnce)
		at = at[:0]
		for _, s := range rest[:n] {
			at = append(at, s.End-recordIn)
		}
		read := b.readTexts(at, texts[:n*recordIn])
		for i := range read {
			tid, function, arg := m.record(texts[i*recordIn:(i+1)*recordIn], left)
			if tid == 0 {
				continue // a stack that is kept for the next thread
			}
			delete(left, tid)
			file, at := m.fileAt(function), uint64(0)
			if file.Name == program || file.Name == program+" (deleted)" {
				at = function
			} else if wraps(file.Name) {
				var object [1]uint64
				if b.read(arg, object[:]) {
					file = cmp.Or(m.fileAt(object[0]), file)
				}
			}
			g := groupOf(&groups, file, at)
			g.Count, g.Stacks = g.Count+1, g.Stacks+rest[i].Resident
			g.Idle += max(0, b.sleeps(tid))
			g.isGo = g.isGo || tid == b.goThread
		}
		rest = rest[max(1, min(read, n)):] // where one was not read it is gone
	}
	for _, g := range groups {
		list = merge(list, b.named(g))
	}
	for tid := range left { // some have ended since
		by := "unknown"
		if len(groups) == 0 || tid == uint64(b.pid) { // without cgo, stacks are in the Go heap
			by = "Go"
		}
		if idle := b.sleeps(tid); idle >= 0 {
			list = merge(list, Threads{By: by, Count: 1, Idle: idle})
		}
	}
	slices.SortFunc(list, func(x, y Threads) int {
		return cmp.Or(cmp.Compare(y.Count, x.Count), cmp.Compare(x.By, y.By))
	})
	return list
}

// withUsual adds stacks of the usual size, at the beginning of those that are larger: the kernel may have joined another
// mapping to one.
func withUsual(stacks []procfs.Mapping) []procfs.Mapping {
	sizes, usual := map[uint64]int{}, uint64(0)
	for _, s := range stacks {
		if n := s.End - s.Start; n >= leastStack {
			if sizes[n]++; sizes[n] > sizes[usual] {
				usual = n
			}
		}
	}
	for _, s := range stacks {
		if usual > 0 && s.End-s.Start > usual {
			s.End = s.Start + usual
			stacks = append(stacks, s)
		}
	}
	return stacks
}

// record finds the record of a thread in the end of its stack. live has the numbers of threads.
func (m *Mappings) record(text []byte, live map[uint64]bool) (tid, function, arg uint64) {
	word := func(i int) uint64 { return binary.NativeEndian.Uint64(text[8*i:]) }
	isAddress := func(x uint64) bool { return x >= 64<<10 && x%8 == 0 }
	for i := len(text)/8 - 1; i >= 2; i-- {
		if !live[word(i)] || !isAddress(word(i-1)) || !isAddress(word(i-2)) {
			continue
		}
		for j := i + 1; j < min(i+mostApart, len(text)/8-1); j++ {
			if f := m.fileAt(word(j)); f == nil || !f.Exec {
				continue
			}
			tid, function, arg = word(i), word(j), word(j+1)
			for k := range len(text)/8 - 2 {
				if word(k) == begunMark && m.fileAt(word(k+1)) != nil {
					return tid, word(k + 1), word(k + 2)
				}
			}
			return tid, function, arg
		}
	}
	return 0, 0, 0
}

// fileAt returns the mapping of a file that has an address, or nil.
func (m *Mappings) fileAt(addr uint64) *procfs.Mapping {
	i := sort.Search(len(m.files), func(i int) bool { return m.files[i].End > addr })
	if i == len(m.files) || m.files[i].Start > addr {
		return nil
	}
	return &m.files[i]
}

// wraps reports whether a library begins threads for others, and the argument of its function is an object whose first
// word points into the file of that other: a table of virtual functions, or a function.
func wraps(file string) bool {
	base := path.Base(file)
	return slices.ContainsFunc([]string{"libstdc++.", "libc++.", "libglib-"}, func(s string) bool { return strings.HasPrefix(base, s) })
}

// sleeps returns 1 if a thread sleeps, and -1 if it has ended.
func (b *blocks) sleeps(tid uint64) int64 {
	var text [256]byte
	fd, err := unix.Open(fmt.Sprintf("/proc/%d/task/%d/stat", b.pid, tid), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1
	}
	n, _ := unix.Read(fd, text[:]) // likewise
	unix.Close(fd)
	if i := bytes.LastIndex(text[:max(n, 0)], []byte(") S")); i >= 0 {
		return 1
	}
	return 0
}

// groupOf returns the group of a file and a function.
func groupOf(groups *[]*started, file *procfs.Mapping, at uint64) *started {
	for _, g := range *groups {
		if g.file.Name == file.Name && g.at == at {
			return g
		}
	}
	g := &started{file: file, at: at}
	*groups = append(*groups, g)
	return g
}

// named returns the threads with the name of who began them.
func (b *blocks) named(g *started) Threads {
	t := g.Threads
	t.By = strings.TrimSuffix(path.Base(g.file.Name), " (deleted)")
	switch {
	case g.isGo:
		t.By = "Go"
	case g.at != 0 && g.Count < leastNamed:
		t.By = "the program"
	case g.at != 0:
		switch name := b.function(g.file.Name, g.at-g.file.Start+g.file.Offset); name {
		case "threadentry": // of package runtime/cgo
			t.By = "Go"
		case "":
			t.By = "the program"
		default:
			t.By = "the program: " + name
		}
	}
	return t
}

// A place is an offset in the program of a process, whose file had a name.
type place struct {
	file   string
	offset uint64
}

// functions keeps the few names that were read, by place: to read symbols takes some milliseconds.
var functionsAt sync.Map

// function names the function at an offset of the program, or returns "".
func (b *blocks) function(file string, offset uint64) string {
	at := place{file, offset}
	name, known := functionsAt.Load(at)
	if !known {
		name = ""
		if table, err := symbols.Read(fmt.Sprintf("/proc/%d/exe", b.pid), false); err == nil {
			name = table.At(offset)
		}
		functionsAt.Store(at, name)
	}
	return name.(string)
}

// goThread returns the number of a thread that Go has begun.
func goThread() uint64 {
	tid := make(chan uint64)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		if n := unix.Gettid(); n != os.Getpid() {
			tid <- uint64(n)
		} else {
			tid <- goThread() // the thread that the program began with waits here, so another runs it
		}
	}()
	return <-tid
}
