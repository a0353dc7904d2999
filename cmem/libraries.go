package cmem

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"sync"
)

// A Library is what the C code of one file holds.
type Library struct {
	Name   string // of the file, without its folder; or "C.malloc, C.CString, C.CBytes"
	Live   int64  // bytes in use, an estimate
	Blocks int64  // in use, likewise
	Allocs int64  // bytes allocated since sampling began, likewise
}

// Libraries returns how much of the C heap each library has allocated, those that hold the most
// first. A block belongs to the library of the innermost function that does not allocate for
// others, as malloc, operator new and g_malloc do.
//
// It looks for the library of a stack once. So a call takes a fraction of a millisecond for each
// thousand stacks, unless there are new ones.
func Libraries() ([]Library, error) {
	librariesOf.Lock()
	defer librariesOf.Unlock()
	of := &librariesOf.stacks
	isNew := func(s *site) bool { return s.number >= len(*of) || (*of)[s.number] == 0 }
	anyNew := false
	eachSite(func(s *site) { anyNew = anyNew || isNew(s) })
	if anyNew {
		found, p, err := snapshot(isNew)
		if err != nil {
			return nil, err
		}
		for i := range found {
			s := &found[i]
			if n := s.number + 1 - len(*of); n > 0 {
				*of = append(*of, make([]int32, n)...)
			}
			(*of)[s.number] = numberOfLibrary(p.Library(s.known()))
		}
	}
	all := make([]Library, len(librariesOf.names))
	eachSite(func(s *site) {
		if isNew(s) {
			return // it has allocated for the first time meanwhile
		}
		i := (*of)[s.number] - 1
		l := &all[i]
		l.Name = librariesOf.names[i]
		l.Live += round(s.allocBytes - s.freeBytes)
		l.Blocks += round(s.allocs - s.frees)
		l.Allocs += round(s.allocBytes)
	})
	all = slices.DeleteFunc(all, func(l Library) bool { return l.Name == "" })
	slices.SortFunc(all, func(x, y Library) int {
		return cmp.Or(cmp.Compare(y.Live, x.Live), cmp.Compare(y.Allocs, x.Allocs), strings.Compare(x.Name, y.Name))
	})
	return all, nil
}

// librariesOf has the library of each stack: its number from 1 on, and 0 where it was not looked
// for. It stays, also when the library is unloaded.
var librariesOf struct {
	sync.Mutex
	stacks []int32 // by the number of the stack
	names  []string
}

func numberOfLibrary(name string) int32 {
	i := slices.Index(librariesOf.names, name)
	if i < 0 {
		librariesOf.names = append(librariesOf.names, name)
		i = len(librariesOf.names) - 1
	}
	return int32(i + 1)
}

func round(v float64) int64 { return int64(math.Round(max(0, v))) }
