package executable

import (
	"debug/elf"
	"os"
	"runtime"
	"slices"
	"testing"

	"github.com/cheapgo/cheap/cmem/heapprofile"
	"github.com/cheapgo/cheap/internal/test/testcall"
)

// callers returns the return addresses of its callers, through functions that are inlined.
func callers() []uintptr {
	var pcs [32]uintptr
	return pcs[:inlinedOnce(pcs[:])]
}

func inlinedOnce(pcs []uintptr) int { return inlinedTwice(pcs) }

func inlinedTwice(pcs []uintptr) int { return runtime.Callers(0, pcs) }

//go:noinline
func sorted(pcs *[]uintptr) {
	slices.SortFunc([]int{2, 1}, func(a, b int) int {
		*pcs = callers()
		return a - b
	})
}

// TestFrames compares the functions of this program with those that the runtime finds.
func TestFrames(t *testing.T) {
	self, err := os.Executable()
	testcall.Must(t, err)
	file, err := elf.Open(self)
	testcall.Must(t, err)
	f := &Program{Path: self}
	f.readGo(file)
	file.Close()
	if !f.IsGo {
		t.Fatal("the tables of Go functions were not found")
	}
	var pcs []uintptr
	sorted(&pcs)
	pcs = pcs[1:] // without runtime.Callers
	var want []heapprofile.Frame
	next := runtime.CallersFrames(pcs)
	for more := true; more; {
		var f runtime.Frame
		f, more = next.Next()
		want = append(want, heapprofile.Frame{Function: f.Function, File: f.File, Line: f.Line})
	}
	i := slices.IndexFunc(pcs, func(pc uintptr) bool { return runtime.FuncForPC(pc).Name() == "testing.tRunner" })
	tRunner, _ := f.table.find("testing.tRunner")
	base := uint64(runtime.FuncForPC(pcs[i]).Entry()) - tRunner.From // not 0 with -buildmode=pie
	// An address stands for one function, and for those into which that is inlined.
	most := 0
	for i, pc := range pcs {
		got := f.Frames(uint64(pc) - base)
		if len(got) == 0 || len(got) > len(want)-i || !slices.Equal(got, want[i:i+len(got)]) {
			t.Errorf("got %v, want the begin of %v", got, want[i:])
		}
		most = max(most, len(got))
	}
	if most < 3 {
		t.Errorf("%d functions at an address, want those of callers and two that are inlined there", most)
	}
}
