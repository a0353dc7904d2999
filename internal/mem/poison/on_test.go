//go:build asan

package poison

import (
	"fmt"
	"slices"
	"testing"
)

// A counter counts the calls of SanitizerSet.
type counter int

func (c *counter) SanitizerSet() { *c++ }

// told is a sanitizer that knows regions.
type told struct {
	Sanitizer
	t       *testing.T
	regions []string
}

func text(addr, size uintptr) string { return fmt.Sprintf("%d+%d", addr, size) }

func (s *told) Register(addr, size uintptr) { s.regions = append(s.regions, text(addr, size)) }

func (s *told) Unregister(addr, size uintptr) {
	n := len(s.regions)
	s.regions = slices.DeleteFunc(s.regions, func(r string) bool { return r == text(addr, size) })
	if len(s.regions) != n-1 {
		s.t.Errorf("%d regions were %s", n-len(s.regions), text(addr, size))
	}
}

// TestRegions looks at which regions the leak sanitizer is told, before Set and after it, and
// when a part of one is released.
func TestRegions(t *testing.T) {
	known := &told{t: t}
	expect := func(want ...string) {
		t.Helper()
		slices.Sort(known.regions)
		if !slices.Equal(known.regions, want) {
			t.Errorf("%v; want %v", known.regions, want)
		}
	}
	Poison(1, 2) // nobody is told
	Register(100, 10)
	Register(200, 10)
	Register(300, 30)
	Unregister(200, 10)
	early, late := new(counter), new(counter)
	SetHeaps(early)
	if *early != 0 {
		t.Error("the heaps are told of a sanitizer that is not there")
	}
	Set(known)
	expect("100+10", "300+30")
	SetHeaps(late)
	if *early != 1 || *late != 1 || !On() {
		t.Errorf("the heaps are told %d times if they come before the sanitizer, and %d times if after it", *early, *late)
	}
	Register(400, 10)
	expect("100+10", "300+30", "400+10")
	Unregister(310, 5)
	expect("100+10", "300+10", "315+15", "400+10")
	Unregister(300, 10)
	Unregister(100, 10)
	expect("315+15", "400+10")
	Unregister(500, 10) // metadata, which is not registered
	expect("315+15", "400+10")
}
