//go:build amd64 || arm64

package main

import (
	"fmt"
	"testing"

	"github.com/google/pprof/profile"
)

// TestPlacesInUse has stacks of a program, of a library that a program has called, of a library alone, whose function of C is
// called by a stub, and of C.
func TestPlacesInUse(t *testing.T) {
	sample := func(inUse int64, frames ...profile.Line) *profile.Sample {
		s := &profile.Sample{Value: []int64{9, 9 << 20, inUse / 10, inUse}}
		for _, f := range frames {
			s.Location = append(s.Location, &profile.Location{Line: []profile.Line{f}})
		}
		return s
	}
	frame := func(name, file string, line int64) profile.Line {
		return profile.Line{Function: &profile.Function{Name: name, Filename: file}, Line: line}
	}
	c := frame("sqlite3Malloc", "sqlite3.c", 1)
	step := frame("sqlite3_step", "sqlite3.c", 2)
	wrapper := frame("example.com/sqlite._Cfunc_step", "_cgo_gotypes.go", 12)
	call := frame("runtime.cgocall", "runtime/cgocall.go", 100)
	library := frame("example.com/sqlite.(*Rows).Next.func1", "/src/sqlite/rows.go", 70)
	own := frame("example.com/server/db.find", "/src/server/db/find.go", 30)
	main := frame("main.main", "/src/server/main.go", 10)
	samples := []*profile.Sample{
		sample(100, c, call, wrapper, library, own, main),
		sample(50, c, call, wrapper, library, own, main),
		sample(0, c, call, wrapper, main),
		sample(400, c, call, wrapper, main),
		sample(20, c, step, frame("_cgo_1f2e3d_Cfunc_step", "", 0), frame("server+0x140c34", "", 0), call, wrapper, library),
		sample(1000, c),
	}
	samples[0].Label = map[string][]string{"library": {"x"}, "route": {"/a"}}
	samples[1].Label = map[string][]string{"route": {"/a"}, "user": {"1"}}
	at := [][]int64{{1, 100}, {2, 50}, {9, 0}, {400, 400}, {0, 20}, {1000, 1000}}
	for module, want := range map[string]string{
		"example.com/server": "sqlite3Malloc sqlite3.c:1  1000 100 [1000 1000]; main.main main.go:10 sqlite3Malloc 400 40 [409 400]; db.find find.go:30 sqlite.(*Rows).Next 150 15 [3 150]route=/a; sqlite.(*Rows).Next rows.go:70 sqlite3_step 20 2 [0 20]; ",
		"example.com/serv":   "sqlite3Malloc sqlite3.c:1  1000 100 [1000 1000]; main.main main.go:10 sqlite3Malloc 400 40 [409 400]; main.main main.go:10 sqlite.(*Rows).Next 150 15 [3 150]route=/a; sqlite.(*Rows).Next rows.go:70 sqlite3_step 20 2 [0 20]; ",
	} {
		got := ""
		for _, p := range placesInUse(samples, at, module) {
			got += fmt.Sprint(p.Name, " ", p.By, " ", p.Bytes, " ", p.Blocks, " ", p.At, p.Labels, "; ")
		}
		if got != want {
			t.Errorf("%s: %s, want %s", module, got, want)
		}
	}
	if got := placesInUse(samples, nil, ""); len(got) != 4 || got[0].At != nil {
		t.Errorf("without moments: %v", got)
	}
}

// TestCallers has a helper that is called at two lines. What it gave one of them is freed, or less is in use, or the same.
func TestCallers(t *testing.T) {
	frame := func(name string, line int64) *profile.Location {
		return &profile.Location{Line: []profile.Line{{Function: &profile.Function{Name: name, Filename: "/src/main.go"}, Line: line}}}
	}
	sample := func(inUse int64, line int64) *profile.Sample {
		return &profile.Sample{Value: []int64{9, 900, 1, inUse}, Location: []*profile.Location{frame("main.dup", 3), frame("main.main", line)}}
	}
	for _, c := range []struct {
		inUse []int64 // of the callers, each at the line of its number
		want  string
	}{
		{[]int64{90}, ""},
		{[]int64{0, 90}, "main.main main.go:2"},
		{[]int64{10, 90}, "main.main main.go:2"},
		{[]int64{60, 40}, "main.main main.go:1 (60 %) and main.main main.go:2 (40 %)"},
		{[]int64{40, 60}, "main.main main.go:2 (60 %) and main.main main.go:1 (40 %)"},
		{[]int64{30, 30, 30}, ""},
	} {
		var samples []*profile.Sample
		for line, n := range c.inUse {
			samples = append(samples, sample(n, int64(line+1)))
		}
		places := placesInUse(samples, nil, "")
		if len(places) != 1 || places[0].Name != "main.dup main.go:3" || places[0].Caller != c.want {
			t.Errorf("%d in use: %+v, want the caller %s", c.inUse, places, c.want)
		}
	}
}
