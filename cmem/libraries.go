package cmem

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/cheapgo/cheap/cmem/heapprofile"
)

// A Library is what the C code of one file holds.
type Library struct {
	Name string // of the file, without its folder; or "C.malloc, C.CString, C.CBytes"
	// Estimates.
	Live   int64 // bytes in use
	Blocks int64 // blocks in use
	Allocs int64 // bytes allocated since sampling began
}

// Libraries returns how much of the C heap each library has allocated, those that hold the most
// first. A block belongs to the library of the innermost function that does not allocate for
// others, as malloc, operator new and g_malloc do. The bytes of [Unseen] are those of a library "allocated before sampling".
//
// The library of a stack is found once. So a call takes a fraction of a millisecond for each
// thousand stacks, and longer if there are new stacks.
func Libraries() ([]Library, error) {
	isNew := func(s *site) bool {
		librariesOf.Lock()
		defer librariesOf.Unlock()
		return *libraryOf(s) == 0
	}
	anyNew := false
	eachSite(func(s *site) { anyNew = anyNew || isNew(s) })
	if anyNew {
		if _, _, err := snapshot(isNew); err != nil { // it calls findLibraries
			return nil, err
		}
	}
	librariesOf.Lock()
	defer librariesOf.Unlock()
	all := make([]Library, len(librariesOf.names))
	eachSite(func(s *site) {
		i := *libraryOf(s)
		if i == 0 {
			return // it has allocated for the first time meanwhile
		}
		l := &all[i-1]
		l.Name = librariesOf.names[i-1]
		l.Live += round(s.allocBytes - s.freeBytes)
		l.Blocks += round(s.allocs - s.frees)
		l.Allocs += round(s.allocBytes)
	})
	if n, _ := Unseen(); n > 0 {
		all = append(all, Library{Name: heapprofile.Unseen, Live: n})
	}
	all = slices.DeleteFunc(all, func(l Library) bool { return l.Name == "" })
	slices.SortFunc(all, func(x, y Library) int {
		return cmp.Or(cmp.Compare(y.Live, x.Live), cmp.Compare(y.Allocs, x.Allocs), strings.Compare(x.Name, y.Name))
	})
	return all, nil
}

// librariesOf has the number of the library of each stack, from 1 on, or 0 where no library was
// searched yet. A number stays when its library is unloaded.
var librariesOf struct {
	sync.Mutex
	stacks []int32 // by the number of the stack
	names  []string
}

// libraryOf returns the place of the number of a stack's library. The lock is held.
func libraryOf(s *site) *int32 {
	if n := s.number + 1 - len(librariesOf.stacks); n > 0 {
		librariesOf.stacks = append(librariesOf.stacks, make([]int32, n)...)
	}
	return &librariesOf.stacks[s.number]
}

// findLibraries finds the libraries of stacks.
func findLibraries(all []site, p *heapprofile.Process) {
	librariesOf.Lock()
	defer librariesOf.Unlock()
	for i := range all {
		s := &all[i]
		number := libraryOf(s)
		if *number == 0 {
			name := p.Library(s.known())
			at := slices.Index(librariesOf.names, name)
			if at < 0 {
				librariesOf.names = append(librariesOf.names, name)
				at = len(librariesOf.names) - 1
			}
			*number = int32(at + 1)
		}
		s.library = librariesOf.names[*number-1]
	}
}

func round(v float64) int64 { return int64(math.Round(max(0, v))) }
