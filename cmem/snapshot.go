package cmem

import (
	"slices"

	"github.com/cheapgo/cheap/cmem/heapprofile"
)

// snapshot returns the stacks that wanted selects, the newest first, and what is known of the process
// at one moment. A stack is stale if a library was unloaded between its first allocation and that
// moment: its addresses may belong to another library now.
func snapshot(wanted func(*site) bool) ([]site, *heapprofile.Process, error) {
	all, p, err := snapshotOf(eachSite, wanted)
	if err == nil {
		findLibraries(all, p)
	}
	return all, p, err
}

// snapshotOf is snapshot for the stacks that each calls its argument for, without their libraries.
func snapshotOf(each func(func(*site)), wanted func(*site) bool) ([]site, *heapprofile.Process, error) {
	for tries := 0; ; tries++ {
		var all []site
		n := closed()
		each(func(s *site) {
			if wanted(s) {
				all = append(all, *s)
			}
		})
		p, err := process()
		if err != nil {
			return nil, nil, err
		}
		if n != closed() && tries < 10 {
			continue // a library was unloaded meanwhile
		}
		for i := range all {
			s := &all[i]
			unmapped := func(pc uintptr) bool { return !p.Mapped(pc) }
			s.stale = s.stale || n != closed() || slices.ContainsFunc(s.c, unmapped)
			for kind, pcs := range heapprofile.Parts(s.goPart) {
				s.stale = s.stale || kind == heapprofile.CPart && slices.ContainsFunc(pcs, unmapped)
			}
		}
		return all, p, nil
	}
}

// process returns what is known of this process.
func process() (*heapprofile.Process, error) {
	maps, err := heapprofile.Mappings()
	return &heapprofile.Process{Mappings: maps, Program: heapprofile.Executable(), Frames: frames}, err
}
