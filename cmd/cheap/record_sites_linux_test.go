//go:build amd64 || arm64

package main

import (
	"slices"
	"testing"

	"github.com/google/pprof/profile"
)

// TestSitesInUse has stacks of a program, of a library that a program has called, of a library alone, and of C.
func TestSitesInUse(t *testing.T) {
	sample := func(inUse int64, frames ...profile.Line) *profile.Sample {
		s := &profile.Sample{Value: []int64{9 << 20, inUse}}
		for _, f := range frames {
			s.Location = append(s.Location, &profile.Location{Line: []profile.Line{f}})
		}
		return s
	}
	frame := func(name, file string, line int64) profile.Line {
		return profile.Line{Function: &profile.Function{Name: name, Filename: file}, Line: line}
	}
	c := frame("sqlite3Malloc", "sqlite3.c", 1)
	wrapper := frame("example.com/sqlite._Cfunc_step", "_cgo_gotypes.go", 12)
	call := frame("runtime.cgocall", "runtime/cgocall.go", 100)
	library := frame("example.com/sqlite.(*Rows).Next.func1", "/src/sqlite/rows.go", 70)
	own := frame("example.com/server/db.find", "/src/server/db/find.go", 30)
	main := frame("main.main", "/src/server/main.go", 10)
	p := &profile.Profile{
		SampleType: []*profile.ValueType{{Type: "alloc_space"}, {Type: "inuse_space"}},
		Sample: []*profile.Sample{
			sample(100, c, call, wrapper, library, own, main),
			sample(50, c, call, wrapper, library, own, main),
			sample(0, c, call, wrapper, main),
			sample(400, c, call, wrapper, main),
			sample(20, c, call, wrapper, library),
			sample(1000, c),
		},
	}
	for _, row := range []struct {
		module string
		most   int
		want   []recordSite
	}{
		{"example.com/server", 5, []recordSite{
			{"main.main main.go:10", "", 400}, {"db.find find.go:30", "sqlite.(*Rows).Next", 150}, {"sqlite.(*Rows).Next rows.go:70", "", 20},
		}},
		{"example.com/serv", 2, []recordSite{{"main.main main.go:10", "", 400}, {"main.main main.go:10", "sqlite.(*Rows).Next", 150}}},
		{"", 0, nil},
	} {
		if got := sitesInUse(p, row.module, row.most); !slices.Equal(got, row.want) {
			t.Errorf("%s: %v, want %v", row.module, got, row.want)
		}
	}
}
