package cmem

import (
	"cmp"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/cheapgo/cheap/cmem/heapprofile"
	"github.com/google/pprof/profile"
)

// A MappedLibrary is what the C code of one file has mapped by mmap and mremap, for its own use or by one allocator.
type MappedLibrary struct {
	Name      string // of the file, without its folder
	Allocator string // that the library brings, such as "jemalloc"; or ""
	// Estimates.
	Mapped     int64 // bytes of address space that are mapped
	Accessible int64 // of these, what the library may read, write or run: the rest is reserved
	Resident   int64 // of these, what is in memory
	Calls      int64 // that have mapped, since sampling began
	Bytes      int64 // that these have mapped
}

// CountUnixMmap has [Mapped] and the profile of mappings count what Go code maps by unix.Mmap of golang.org/x/sys, by the
// Go function that calls it, as they count what C code maps. Caches outside the Go heap, such as fastcache, and databases
// such as bbolt map their memory so. What syscall.Mmap maps stays unseen.
//
// It changes a variable of package unix, so main calls it first, before other goroutines map memory. A mapping then
// takes a call of C longer. If the variable is not as it is known, CountUnixMmap does nothing, and returns an error.
func CountUnixMmap() error {
	if why := Off(); why != "" {
		return errors.New("cmem.CountUnixMmap: " + why)
	}
	return countUnixMmap()
}

// Mapped returns what each library has mapped, without malloc: those with the most in memory first. A library with an
// allocator of its own, has its blocks there; an engine of wasm its linear memories; a database its
// files. Mappings that the C library makes for itself do not count, as those of malloc and of the stacks of threads; nor
// do those of the runtime of Go. Calls of the system that pass by the C library are not
// seen, as those of rustix, by which wasmtime maps its memories. A mapping belongs to
// the library as in [Libraries]; if malloc is an allocator that was preloaded, to that one.
//
// A mapping is sampled as a block of malloc is: see [SetRate]. A thread that makes mappings all the time has fewer
// samples, so that these take at most a few percent of its time.
//
// A call reads /proc/self/smaps, for which the kernel looks at all pages of the process: some ms for each GiB that is
// resident.
func Mapped() ([]MappedLibrary, error) {
	stacks, p, err := mappedStacks()
	if err != nil {
		return nil, err
	}
	byName := map[[2]string]*MappedLibrary{}
	for i := range stacks {
		s := &stacks[i]
		name := [2]string{p.Library(s.known()), p.Allocator(s.known())}
		l := byName[name]
		if l == nil {
			l = &MappedLibrary{Name: name[0], Allocator: name[1]}
			byName[name] = l
		}
		l.Mapped += round(s.held.Mapped)
		l.Accessible += round(s.held.Accessible)
		l.Resident += round(s.held.Resident)
		l.Calls += round(s.allocs)
		l.Bytes += round(s.allocBytes)
	}
	var all []MappedLibrary
	for _, l := range byName {
		all = append(all, *l)
	}
	slices.SortFunc(all, func(x, y MappedLibrary) int {
		return cmp.Or(cmp.Compare(y.Resident, x.Resident), cmp.Compare(y.Mapped, x.Mapped),
			strings.Compare(x.Name, y.Name), strings.Compare(x.Allocator, y.Allocator))
	})
	return all, nil
}

// WriteMappedProfile writes a profile of the memory that C code has mapped, in the format of [WriteProfile]: for each
// stack how many mappings it has made, their bytes, and how many of these are mapped, accessible and resident. The
// latter is what go tool pprof shows.
func WriteMappedProfile(w io.Writer) error {
	p, err := MappedProfile()
	if err != nil {
		return err
	}
	return p.Write(w)
}

// MappedProfile returns the profile that [WriteMappedProfile] writes.
func MappedProfile() (*profile.Profile, error) {
	stacks, p, err := mappedStacks()
	if err != nil {
		return nil, err
	}
	b := p.NewMappedBuilder(Rate())
	for i := range stacks {
		b.AddMapped(stacks[i].known(), stacks[i].held)
	}
	return b.Profile()
}

// A mappedRange is a part of a sampled mapping that is still mapped.
type mappedRange struct {
	from, to uint64
	stack    uintptr // the id of its site
	weight   float64
}

// A mappedSite is a stack that has mapped memory, and what of that is left.
type mappedSite struct {
	site
	held heapprofile.Held
}

// mappedStacks returns the stacks that have mapped memory.
func mappedStacks() ([]mappedSite, *heapprofile.Process, error) {
	// Ranges before stacks: each has a stack then.
	all := ranges()
	sites, p, err := snapshotOf(eachMapping, func(s *site) bool { return s.allocs != 0 })
	if err != nil {
		return nil, nil, err
	}
	held, err := heapprofile.LookAt(len(all), func(i int) (from, to uint64) { return all[i].from, all[i].to })
	if err != nil {
		return nil, nil, err
	}
	stacks, byID := make([]mappedSite, len(sites)), map[uintptr]*mappedSite{}
	for i := range sites {
		stacks[i].site = sites[i]
		byID[sites[i].id] = &stacks[i]
	}
	for i, r := range all {
		if s := byID[r.stack]; s != nil {
			s.held.Add(held[i], r.weight)
		}
	}
	return stacks, p, nil
}
