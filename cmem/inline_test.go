package cmem

import (
	"reflect"
	"runtime"
	"slices"
	"testing"
)

// TestInlined compares the functions that were inlined at the addresses of a stack with those that the runtime names.
func TestInlined(t *testing.T) {
	if runtime.GOOS != "linux" {
		return // there is no /proc
	}
	if findTables() == nil {
		var stack [8]uintptr
		if f, _ := runtime.CallersFrames(stack[:inlinedTwice(stack[:])]).Next(); f.Func != nil {
			return // a build without optimizations
		}
		t.Fatal("the tables of this version of Go are not known")
	}
	var stack [64]uintptr
	slices.SortFunc([]int{2, 1}, func(int, int) int { // an instance, with a dictionary
		callsTwice(func() { stack = [64]uintptr{}; runtime.Callers(1, stack[:]) })
		return 0
	})
	pcs := stack[:slices.Index(stack[:], 0)]
	groups := 0
	for len(pcs) > 0 {
		got := inlined(pcs[0])
		if len(got) > len(pcs) || !slices.Equal(got, pcs[:len(got)]) {
			t.Fatalf("got %v, want the first of %v", namesOf(got), namesOf(pcs))
		}
		if f, _ := runtime.CallersFrames(got[len(got)-1:]).Next(); f.Func == nil && !wraps(&f) {
			t.Errorf("%s is inlined, and is the last", f.Function)
		}
		if len(got) > 1 {
			groups++
		}
		pcs = pcs[len(got):]
	}
	if groups < 1 {
		t.Error("nothing was inlined")
	}
	// Each address of some functions leads to the function.
	for _, f := range []any{TestInlined, reflect.DeepEqual, slices.Index[[]int], (*Watch).Look, Profile} {
		pc := reflect.ValueOf(f).Pointer()
		for at := pc + 1; at < pc+4096; at++ {
			if first, _ := runtime.CallersFrames([]uintptr{at}).Next(); first.Entry != pc {
				break
			}
			got := inlined(at)
			last, _ := runtime.CallersFrames(got[len(got)-1:]).Next()
			if last.Func == nil && !wraps(&last) || last.Entry != pc {
				t.Fatalf("the last at %#x is %v", at, last)
			}
		}
	}
}

func callsTwice(f func()) { callsOnce(f) }
func callsOnce(f func())  { f() }

func namesOf(pcs []uintptr) (all []string) {
	for _, pc := range pcs {
		f, _ := runtime.CallersFrames([]uintptr{pc}).Next()
		all = append(all, f.Function)
	}
	return all
}
