package resident

import (
	"cmp"
	"slices"
	"strings"
)

// A Kind says what a part of the resident memory is.
type Kind int

// The kinds, in the order of the table.
const (
	GoInUse      Kind = iota // objects, garbage included
	GoIdle                   // free in the Go heap
	GoStacks                 // of goroutines
	GoRuntime                // what the runtime keeps of everything
	CheapInUse               // blocks of heaps
	CheapIdle                // what heaps have beside them
	CheapRecords             // what is kept of blocks and owners
	CInUse                   // blocks of malloc in use
	MallocFree               // what malloc has beside them
	MallocAll                // both, where they are not told apart
	Unseparated              // all that is C's, where mappings were not read either
	ThreadStacks             // on which C code runs
	Program                  // its code and variables
	Library                  // code and variables of libraries
	File                     // other files that are mapped
	SharedMemory             // tmpfs, memfd, shared anonymous memory
	Sandbox                  // anonymous memory in a large reservation, as those of wasm have it
	Mapped                   // large anonymous mappings, of which nobody has said what they are
	Rest                     // small mappings of which nobody has said what they are
	kinds
)

// kindTable says of each kind how it is called in tables, how in a sentence, the part of an overview that has it, and where to
// look at what it has.
var kindTable = [kinds]struct{ name, noun, group, lookAt string }{
	GoInUse:      {"Go heap, in use", "the Go heap in use", "Go", "see the heap profile of net/http/pprof, if it is too much"},
	GoIdle:       {"Go heap, idle", "free in the Go heap", "Go", ""},
	GoStacks:     {"Go stacks", "stacks of goroutines", "Go", ""},
	GoRuntime:    {"Go runtime", "what the Go runtime keeps", "Go", ""},
	CheapInUse:   {"heaps of cheap, in use", "blocks of heaps of cheap", "heaps of cheap", "see inspect.WriteHeap, if it is too much"},
	CheapIdle:    {"heaps of cheap, idle", "free in heaps of cheap", "heaps of cheap", ""},
	CheapRecords: {"records of cheap", "records of cheap", "heaps of cheap", ""},
	CInUse:       {"C, in use", "C in use", "C, in use", "see the profile of module cmem, if it is too much"},
	MallocFree:   {"malloc, free", "free inside malloc", "malloc, free", ""},
	MallocAll:    {"malloc, in use and free", "in malloc", "C, in use or free", "import module cmem, which tells what is in use, and who has allocated it"},
	Unseparated:  {"C and mappings, not separated", "C, and mappings", "C, in use or free", "import module cmem, which tells what C has in use, or read the table mappings"},
	ThreadStacks: {"stacks of threads", "stacks of threads", "stacks of threads", ""},
	Program:      {"the program", "the program itself", "program and files", ""},
	Library:      {"libraries", "libraries", "program and files", ""},
	File:         {"files", "files that are mapped", "program and files", "they are page cache, which the kernel drops when memory is short"},
	SharedMemory: {"shared memory", "shared memory", "mapped or shared", ""},
	Sandbox:      {"sandboxes (such as wasm)", "memory in large reservations, such as that of wasm", "mapped or shared", "ask the engine that runs the modules for their sizes"},
	Mapped:       {"large mappings", "mapped without malloc", "mapped or shared", "the line mapped of cheap record and mapped.txt of module cmem name who maps, Go code as well after cmem.CountUnixMmap; strace -f -k -e mmap shows all"},
	Rest:         {"the rest", "small mappings", "the rest", ""},
}

// String returns the name of the kind in tables.
func (k Kind) String() string { return kindTable[k].name }

// Groups returns the parts of an overview, which have one or more kinds each, in the order of the kinds.
func (t *Table) Groups() (list []Part) {
	for k := range kinds {
		name := kindTable[k].group
		if n := len(list); n == 0 || list[n-1].Name != name {
			list = append(list, Part{Kind: k, Name: name})
		}
		list[len(list)-1].Bytes += t.Of(k)
	}
	return list
}

// A Part is a part of the resident memory.
type Part struct {
	Kind  Kind
	Name  string // that of the kind, or of a file
	Bytes int64  // resident
	Swap  int64  // swapped out, as far as mappings say; not among Bytes
}

// A Table says what the resident memory of a process is for. The Bytes of the parts add up to
// Resident, each page is in one part, and no part is negative.
type Table struct {
	Parts    []Part
	Resident int64 // what the kernel charges the process; 0 if that is not known
	Swap     int64
	Mapped   bool // mappings were read: files have names, and stacks of threads are apart
}

// Of returns the resident bytes of all parts of a kind.
func (t *Table) Of(k Kind) (n int64) {
	for _, p := range t.Parts {
		if p.Kind == k {
			n += p.Bytes
		}
	}
	return n
}

// Largest returns the n parts with the most bytes, the largest first.
func (t *Table) Largest(n int) []Part {
	list := slices.Clone(t.Parts)
	slices.SortStableFunc(list, func(x, y Part) int { return cmp.Compare(y.Bytes, x.Bytes) })
	return list[:min(n, len(list))]
}

// whole is Of with what was swapped out.
func (t *Table) whole(k Kind) (n int64) {
	for _, p := range t.Parts {
		if p.Kind == k {
			n += p.Bytes + p.Swap
		}
	}
	return n
}

// A divider makes parts. It takes them from pools of bytes, so that nothing is counted twice.
type divider struct {
	t Table
}

// take adds a part of at most n bytes of the pool, which becomes smaller by it.
func (d *divider) take(k Kind, n int64, pool *int64) {
	n = max(0, min(n, *pool))
	*pool -= n
	d.add(k, k.String(), n, 0)
}

// add adds bytes to the part of a kind and a name.
func (d *divider) add(k Kind, name string, n, swap int64) {
	if n <= 0 && swap <= 0 {
		return
	}
	for i := range d.t.Parts {
		if p := &d.t.Parts[i]; p.Kind == k && p.Name == name {
			p.Bytes, p.Swap = p.Bytes+max(n, 0), p.Swap+max(swap, 0)
			return
		}
	}
	d.t.Parts = append(d.t.Parts, Part{k, name, max(n, 0), max(swap, 0)})
}

// Table divides the resident bytes.
//
// Go, cheap and malloc count bytes that they have from the system, and a page that was never touched
// is not resident. So a part is at most
//
//	min(the resident bytes of its mappings, where these are known; what the parts before it have left)
//
// bytes. Where mappings are not known all parts but files share the anonymous bytes.
func (r *Reading) Table() Table {
	d := &divider{Table{Parts: make([]Part, 0, kinds)}}
	if r.Mappings != nil {
		r.divideMappings(d)
	} else {
		r.divide(d)
	}
	return d.t
}

// divide divides by what the kernel says of the process as a whole.
func (r *Reading) divide(d *divider) {
	k := &r.Kernel
	d.t.Resident, d.t.Swap = k.Resident, k.Swap
	left := k.Anonymous
	d.take(GoStacks, r.Go.Stacks, &left)
	d.take(GoInUse, r.Go.Objects, &left)
	d.take(CheapInUse, r.Cheap.InUse, &left)
	if used, ok := r.inUse(); ok {
		d.take(CInUse, used, &left)
	}
	d.take(GoIdle, r.Go.Idle, &left)
	d.take(CheapIdle, r.Cheap.Idle, &left)
	d.take(CheapRecords, r.Cheap.Records, &left)
	d.take(GoRuntime, r.Go.Runtime, &left) // most of its tables is never touched
	switch {
	case r.Malloc.Known && !r.C.Known:
		d.take(MallocFree, r.Malloc.Free, &left)
		d.take(Unseparated, left, &left)
	case r.C.Known: // resident − Go − what is counted
		d.take(MallocFree, left, &left)
	default:
		d.take(Unseparated, left, &left)
	}
	d.add(File, File.String(), k.File, 0)
	d.add(SharedMemory, SharedMemory.String(), k.Shared, 0)
	d.add(Rest, Rest.String(), k.Resident-k.Anonymous-k.File-k.Shared, 0)
	d.sort()
}

// inUse returns the bytes of C that are in use, and not free inside malloc.
func (r *Reading) inUse() (n int64, ok bool) {
	if r.C.Known {
		return max(r.C.Live, r.C.Held), true
	}
	return r.Malloc.InUse, r.Malloc.Known
}

// divideMappings divides by the list of mappings.
func (r *Reading) divideMappings(d *divider) {
	m := r.Mappings
	d.t.Resident, d.t.Swap, d.t.Mapped = m.All.Resident, m.All.Swap, true
	anonymous := m.of(isAnonymous)
	large := m.large()
	r.divideGo(d, &anonymous)
	r.divideCheap(d, &anonymous)
	r.divideC(d, &anonymous)
	named := m.of(isGo)
	d.add(GoRuntime, GoRuntime.String(), named.Resident, named.Swap)
	d.take(GoRuntime, r.Go.Runtime-named.Resident, &anonymous.Resident)
	if m.of(isGoHeap).Count == 0 {
		d.take(GoIdle, r.Go.Idle, &anonymous.Resident) // last, because some of it is not resident
	}
	for _, l := range m.List {
		if k, ok := plainKinds[l.is]; ok {
			name := k.String()
			if k == Library || k == File || k == SharedMemory {
				name = l.Name
			}
			d.add(k, name, l.Resident, l.Swap)
		}
	}
	large = min(large, anonymous.Resident)
	d.add(Mapped, Mapped.String(), large, anonymous.Swap)
	d.add(Rest, Rest.String(), anonymous.Resident-large, 0)
	d.fewNames()
	d.sort()
}

// plainKinds are what the table takes from the list of mappings as it is.
var plainKinds = map[mapping]Kind{
	isThread: ThreadStacks, isProgram: Program, isLibrary: Library, isFile: File, isShared: SharedMemory, isSandbox: Sandbox, isKernel: Rest,
	isReserved: Rest, // was accessible before
}

// divideGo takes the parts of the Go heap from its mappings, or from anonymous.
func (r *Reading) divideGo(d *divider, anonymous *Sum) {
	heap := r.Mappings.of(isGoHeap)
	if heap.Count == 0 { // on 32-bit systems the heap has no addresses of its own
		d.take(GoStacks, r.Go.Stacks, &anonymous.Resident)
		d.take(GoInUse, r.Go.Objects, &anonymous.Resident)
	} else if r.Go == (Go{}) { // another process
		d.add(GoInUse, "Go heap", heap.Resident, heap.Swap)
	} else {
		left := heap.Resident
		out := min(heap.Swap, max(0, r.Go.Stacks+r.Go.Objects-left))
		d.take(GoStacks, r.Go.Stacks, &left)
		d.take(GoInUse, r.Go.Objects, &left)
		d.add(GoInUse, GoInUse.String(), 0, out)
		d.add(GoIdle, GoIdle.String(), left, heap.Swap-out)
	}
}

// divideCheap takes the parts of package cheap from its mappings, and from anonymous what has no name.
func (r *Reading) divideCheap(d *divider, anonymous *Sum) {
	heaps, named := r.Mappings.of(isCheap), r.Mappings.of(isCheapRecords)
	if r.Cheap == (Cheap{}) { // another process
		d.add(CheapInUse, "heaps of cheap", heaps.Resident, heaps.Swap)
	} else {
		left := heaps.Resident
		out := min(heaps.Swap, max(0, r.Cheap.InUse-left))
		d.take(CheapInUse, r.Cheap.InUse, &left)
		d.add(CheapInUse, CheapInUse.String(), 0, out)
		d.add(CheapIdle, CheapIdle.String(), left, heaps.Swap-out)
	}
	d.add(CheapRecords, CheapRecords.String(), named.Resident, named.Swap)
	d.take(CheapRecords, r.Cheap.Records-named.Resident, &anonymous.Resident)
}

// divideC takes the parts of C from the mappings of malloc. Blocks with a mapping of their own are in
// use: free of glibc gives them back. Another malloc than glibc's has mappings that nothing tells from
// others, so what it has in use and free is taken from anonymous.
func (r *Reading) divideC(d *divider, anonymous *Sum) {
	arenas, blocks := r.Mappings.of(isMalloc), r.Mappings.of(isBlock)
	used, ok := r.inUse()
	switch {
	case arenas.Count+blocks.Count == 0 && ok: // another malloc
		d.take(CInUse, used, &anonymous.Resident)
		if r.Malloc.Known {
			d.take(MallocFree, r.Malloc.Free, &anonymous.Resident)
		}
	case ok:
		left := arenas.Resident
		out := min(arenas.Swap, max(0, used-blocks.Space-left))
		d.add(CInUse, CInUse.String(), blocks.Resident, blocks.Swap+out)
		d.take(CInUse, used-blocks.Space, &left)
		d.add(MallocFree, MallocFree.String(), left, arenas.Swap-out)
	default:
		d.add(CInUse, CInUse.String(), blocks.Resident, blocks.Swap)
		d.add(MallocAll, MallocAll.String(), arenas.Resident, arenas.Swap)
	}
}

// mostNames is how many libraries, and how many files, have a part of their own.
const mostNames = 4

// fewNames puts all libraries and files but the largest together.
func (d *divider) fewNames() {
	for _, k := range []Kind{Library, File, SharedMemory} {
		d.sort()
		n := 0
		kept := d.t.Parts[:0]
		others := Part{Kind: k, Name: "other " + k.String()}
		for _, p := range d.t.Parts {
			if p.Kind == k {
				if n++; n > mostNames {
					others.Bytes, others.Swap = others.Bytes+p.Bytes, others.Swap+p.Swap
					continue
				}
			}
			kept = append(kept, p)
		}
		if d.t.Parts = kept; n > mostNames {
			d.t.Parts = append(kept, others)
		}
	}
}

// sort puts the parts in the order of the kinds, and those of one kind by bytes, the largest first.
func (d *divider) sort() {
	slices.SortStableFunc(d.t.Parts, func(x, y Part) int {
		other := func(p Part) int { // what is left over comes last
			if strings.HasPrefix(p.Name, "other ") {
				return 1
			}
			return 0
		}
		return cmp.Or(cmp.Compare(x.Kind, y.Kind), other(x)-other(y), cmp.Compare(y.Bytes+y.Swap, x.Bytes+x.Swap), cmp.Compare(x.Name, y.Name))
	})
}
