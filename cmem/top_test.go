//go:build cgo && linux && !cheap_nocmem && !asan && !msan

package cmem

import (
	"strings"
	"testing"
)

// TestTop has two stacks, of which first one and then the other has the most bytes in use.
func TestTop(t *testing.T) {
	withRate(t, 1)
	first, second := &workload{site: 0b100_0001}, &workload{site: 0b100_0010}
	before(first, 20_000)
	later(second, 10_000)
	place := func(function string) int {
		t.Helper()
		all := top(20)
		for i, s := range all {
			if strings.Contains(s.Stack, function) {
				if s.Live <= 0 || s.Library == "" || i > 0 && s.Live > all[i-1].Live {
					t.Errorf("%+v", s)
				}
				return i
			}
		}
		return 1000
	}
	if a, b := place("cmem.before\n"), place("cmem.later\n"); a >= b || b == 1000 {
		t.Errorf("the places are %d and %d", a, b)
	}
	first.drop(15_000)
	if a, b := place("cmem.before\n"), place("cmem.later\n"); b >= a || a == 1000 {
		t.Errorf("after the drop the places are %d and %d", a, b)
	}
	if n := len(top(1)); n != 1 {
		t.Errorf("%d are the first one", n)
	}
	if n := len(top(0)); n != 0 {
		t.Errorf("%d are none", n)
	}
	first.drop(len(first.blocks))
	second.drop(len(second.blocks))
	if n := place("cmem.later\n"); n != 1000 {
		t.Errorf("what has nothing in use is at %d", n)
	}
}

// BenchmarkTop reads the stacks of this program, whose names are known.
func BenchmarkTop(b *testing.B) {
	for b.Loop() {
		top(5)
	}
}
