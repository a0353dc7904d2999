//go:build asan

package poison

import (
	"fmt"
	"slices"
	"testing"
)

// TestRegions looks at which regions the leak sanitizer is told, before Set and after it, and
// when a part of one is released.
func TestRegions(t *testing.T) {
	var known []string
	at := func(addr, size uintptr) string { return fmt.Sprintf("%d+%d", addr, size) }
	expect := func(want ...string) {
		t.Helper()
		slices.Sort(known)
		if !slices.Equal(known, want) {
			t.Errorf("%v; want %v", known, want)
		}
	}
	Poison(1, 2) // nobody is told
	Register(100, 10)
	Register(200, 10)
	Register(300, 30)
	Unregister(200, 10)
	called := 0
	OnSet(func() { called++ })
	Set(Hooks{
		Register: func(addr, size uintptr) { known = append(known, at(addr, size)) },
		Unregister: func(addr, size uintptr) {
			n := len(known)
			known = slices.DeleteFunc(known, func(s string) bool { return s == at(addr, size) })
			if len(known) != n-1 {
				t.Errorf("%d regions were %s", n-len(known), at(addr, size))
			}
		},
	})
	expect("100+10", "300+30")
	OnSet(func() { called++ })
	if called != 2 || !On() {
		t.Errorf("%d calls", called)
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
