//go:build amd64 || arm64

package main

import (
	"cmp"
	"debug/buildinfo"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/google/pprof/profile"

	"github.com/cheapgo/cheap/internal/figure"
	"github.com/cheapgo/cheap/internal/heappage"
)

// mostPlaces is how many places the report names.
const mostPlaces = 5

// placesInUse returns the places in the program that have bytes in use at the end, those with the most first. at has the bytes
// in use of each sample over time, or is nil. module is the path of the program's module: a place is in its code, or in
// package main, if any function of the stack is.
func placesInUse(samples []*profile.Sample, at [][]int64, module string) (places []heappage.Place) {
	type key struct{ place, by string }
	index := map[key]int{}
	for i, s := range samples {
		blocks, bytes := s.Value[2], s.Value[3]
		if bytes <= 0 {
			continue
		}
		place, by := placeOf(s, module)
		n, ok := index[key{place, by}]
		if !ok {
			n = len(places)
			index[key{place, by}] = n
			places = append(places, heappage.Place{Name: figure.Printable(place), By: figure.Printable(by)})
			if at != nil {
				places[n].At = make([]int64, len(at[i]))
			}
		}
		p := &places[n]
		p.Bytes, p.Blocks = p.Bytes+bytes, p.Blocks+blocks
		for m := range p.At {
			p.At[m] += at[i][m]
		}
	}
	slices.SortFunc(places, func(x, y heappage.Place) int {
		return cmp.Or(cmp.Compare(y.Bytes, x.Bytes), cmp.Compare(x.Name, y.Name), cmp.Compare(x.By, y.By))
	})
	return places
}

// placeOf returns the place of a stack: a function and its line, and what it has called: the function of a library that has
// called C, or else that of C, "" if it is not known. The place of a stack without Go is the function of C that has allocated.
func placeOf(s *profile.Sample, module string) (place, by string) {
	var first, ofC, called string // the innermost function of Go, of all, and the outermost of C
	for _, l := range s.Location {
		for _, line := range l.Line {
			name := shortFunction(line.Function.Name)
			at := name
			if line.Line > 0 {
				at += fmt.Sprintf(" %s:%d", filepath.Base(line.Function.Filename), line.Line)
			}
			if ofC == "" {
				ofC = at
			}
			if !strings.HasSuffix(line.Function.Filename, ".go") || ofCgo(line.Function) {
				if first == "" && !ofCgo(line.Function) && !strings.HasPrefix(name, "_cgo_") && !strings.Contains(name, "+0x") {
					called = name // not an address in a program without symbols
				}
				continue
			}
			if first == "" {
				first, place = name, at
			}
			if pkg := packagePath(line.Function.Name); pkg == "main" || module != "" && (pkg == module || strings.HasPrefix(pkg, module+"/")) {
				if name != first {
					return at, first
				}
				return at, called
			}
		}
	}
	if place == "" {
		return ofC, ""
	}
	return place, called
}

// ofCgo reports whether a function of Go is part of the way to C.
func ofCgo(f *profile.Function) bool {
	return strings.HasPrefix(f.Name, "runtime.") || filepath.Base(f.Filename) == "_cgo_gotypes.go"
}

// packagePath returns the path of the package of a function, as symbols have it.
func packagePath(function string) string {
	slash := strings.LastIndexByte(function, '/') + 1
	name, _, _ := strings.Cut(function[slash:], ".")
	return function[:slash] + name
}

// literals are at the end of the name of a function that is written in another one.
var literals = regexp.MustCompile(`(\.func\d+|\.gowrap\d+|\.deferwrap\d+|\.\d+)+$`)

// shortFunction returns a function with the last part of its package's path, and without the literals in it.
func shortFunction(function string) string {
	return literals.ReplaceAllString(function[strings.LastIndexByte(function, '/')+1:], "")
}

// moduleOf returns the path of a program's module, "" if that is not known.
func moduleOf(program string) string {
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return ""
	}
	return info.Main.Path
}

// reportPlaces names the places that have the most in use at the end. A page has more of them, and says which have grown.
func (r *recording) reportPlaces(line func(label, format string, args ...any), p *profile.Profile) {
	places := r.places
	if r.page == "" {
		places = placesInUse(p.Sample, nil, moduleOf(r.path))
	}
	for _, p := range places[:min(len(places), mostPlaces)] {
		text := p.Name
		if p.By != "" {
			text += ", by " + p.By
		}
		if p.Grew != "" {
			text += ", grew " + p.Grew
		}
		line("", "%10s  %s", byteCount(p.Bytes), text)
	}
}
