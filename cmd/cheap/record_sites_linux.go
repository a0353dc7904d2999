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
)

// mostSites is how many places in Go code the report names.
const mostSites = 5

// A recordSite is a place in the program that has called C, or code of libraries that has.
type recordSite struct {
	place string // the function and its line
	by    string // the function of a library that has called C, "" if the place has
	bytes int64  // in use at the end
}

// sitesInUse returns the places that have the most bytes in use, the largest first. module is the path of the program's
// module: a place is in its code, or in package main, if any function of the stack is.
func sitesInUse(p *profile.Profile, module string, most int) (sites []recordSite) {
	value := slices.IndexFunc(p.SampleType, func(t *profile.ValueType) bool { return t.Type == "inuse_space" })
	sums := map[recordSite]int64{}
	for _, s := range p.Sample {
		if at, ok := siteOf(s, module); ok && value >= 0 && s.Value[value] > 0 {
			sums[at] += s.Value[value]
		}
	}
	for at, n := range sums {
		at.bytes = n
		sites = append(sites, at)
	}
	slices.SortFunc(sites, func(x, y recordSite) int {
		return cmp.Or(cmp.Compare(y.bytes, x.bytes), cmp.Compare(x.place, y.place), cmp.Compare(x.by, y.by))
	})
	return sites[:min(len(sites), most)]
}

// siteOf returns the place of a stack. It is not ok if the stack has no function of Go.
func siteOf(s *profile.Sample, module string) (at recordSite, ok bool) {
	var first string // the innermost function of Go
	for _, l := range s.Location {
		for _, line := range l.Line {
			if !strings.HasSuffix(line.Function.Filename, ".go") || ofCgo(line.Function) {
				continue
			}
			name := shortFunction(line.Function.Name)
			place := fmt.Sprintf("%s %s:%d", name, filepath.Base(line.Function.Filename), line.Line)
			if first == "" {
				first, at.place = name, place
			}
			if pkg := packagePath(line.Function.Name); pkg == "main" || module != "" && (pkg == module || strings.HasPrefix(pkg, module+"/")) {
				at.place = place
				if name != first {
					at.by = first
				}
				return at, true
			}
		}
	}
	return at, first != ""
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

// reportSites names the places that have the most in use at the end.
func (r *recording) reportSites(line func(label, format string, args ...any), p *profile.Profile) {
	for _, s := range sitesInUse(p, moduleOf(r.path), mostSites) {
		by := ""
		if s.by != "" {
			by = ", by " + figure.Printable(s.by)
		}
		line("", "%10s  %s%s", byteCount(s.bytes), figure.Printable(s.place), by)
	}
}
