//go:build amd64 || arm64

package main

import (
	"cmp"
	"debug/buildinfo"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/google/pprof/profile"

	"github.com/cheapgo/cheap/internal/page/figure"
	"github.com/cheapgo/cheap/internal/page/heappage"
)

// mostPlaces is how many places the report names.
const mostPlaces = 5

// placesInUse returns the places in the program that have bytes in use at the end, those with the most first. at has the bytes
// in use of each sample over time, or is nil. module is the path of the program's module: a place is in its code, or in
// package main, if any function of the stack is.
func placesInUse(samples []*profile.Sample, at [][]int64, module string) (places []heappage.Place) {
	type key struct{ place, by string }
	index := map[key]int{}
	callers, labels := map[key]map[string]int64{}, map[key]map[string]int64{} // the bytes in use of each place, by its caller
	for i, s := range samples {
		place, by, caller := placeOf(s, module)
		k, blocks, bytes := key{place, by}, s.Value[2], s.Value[3]
		if callers[k] == nil {
			callers[k], labels[k] = map[string]int64{}, map[string]int64{}
		}
		callers[k][caller] += bytes
		_, has := heappage.Labels(s.Label)
		for _, label := range has {
			labels[k][label] += bytes
		}
		n, ok := index[k]
		if !ok {
			n = len(places)
			index[k] = n
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
	for k, n := range index { // a caller says more than the place if it is one of several, or if all is C
		if all := callers[k]; len(all) > 1 || !strings.Contains(k.place, ".go:") {
			places[n].Caller = callersOf(all, places[n].Bytes)
		}
		places[n].Labels = mostOf(labels[k], places[n].Bytes)
	}
	places = slices.DeleteFunc(places, func(p heappage.Place) bool { return p.Bytes <= 0 })
	slices.SortFunc(places, func(x, y heappage.Place) int {
		return cmp.Or(cmp.Compare(y.Bytes, x.Bytes), cmp.Compare(x.Name, y.Name), cmp.Compare(x.By, y.By))
	})
	return places
}

// freedAtEnd says where C memory has grown until shortly before the end of a program that has freed it as it ended: a server
// that ends in order hides what it has kept. at has the bytes in use of each sample at each moment, and all their sums. It
// returns "" if there is no such place.
func freedAtEnd(samples []*profile.Sample, at [][]int64, all []int64, moments []heappage.Moment, module string, every int64) string {
	last := len(all) - 1
	k := last - 1
	if k > 0 && all[k-1] > all[k] { // a part was freed
		k--
	}
	if k < 0 || all[k]-all[last] < leastUnseen || all[last] > all[k]/4 {
		return ""
	}
	var then []*profile.Sample
	var series [][]int64
	for i, s := range samples {
		was := &profile.Sample{Value: slices.Clone(s.Value), Location: s.Location, Label: s.Label}
		was.Value[3] = at[i][k]
		then, series = append(then, was), append(series, at[i][:k+1])
	}
	before := heappage.Recording{Moments: moments[:k+1]}
	if sentence, _ := before.Rank(placesInUse(then, series, module), every); sentence == "" {
		return ""
	}
	p := before.Places[0]
	text := fmt.Sprintf("nothing stands out at the end; %.1f s before it C had %s in use, the most from %s", (moments[last].At - moments[k].At).Seconds(), byteCount(all[k]), p.Name)
	if p.Caller != "" {
		text += ", called by " + p.Caller
	}
	return text + ", which had risen " + p.Grew
}

// callersOf returns the caller that has more than three quarters of the bytes, or else the two that have, with their shares.
func callersOf(all map[string]int64, bytes int64) string {
	names := slices.SortedFunc(maps.Keys(all), func(x, y string) int { return cmp.Or(cmp.Compare(all[y], all[x]), cmp.Compare(x, y)) })
	if len(names) == 1 || all[names[0]] > bytes/4*3 {
		return figure.Printable(names[0])
	}
	if first, second := names[0], names[1]; first != "" && second != "" && all[first]+all[second] > bytes/4*3 {
		return figure.Printable(fmt.Sprintf("%s (%d %%) and %s (%d %%)", first, 100*all[first]/bytes, second, 100*all[second]/bytes))
	}
	return ""
}

// mostOf returns the texts that have more than three quarters of the bytes.
func mostOf(all map[string]int64, bytes int64) string {
	maps.DeleteFunc(all, func(_ string, n int64) bool { return n <= bytes/4*3 })
	return figure.Printable(strings.Join(slices.Sorted(maps.Keys(all)), " "))
}

// placeOf returns the place of a stack: a function and its line, and what it has called: the function of a library that has
// called C, or else that of C, "" if it is not known; and the line that has called it. The place of a stack without Go is the
// function of C that has allocated. Functions of C in which a program and a thread begin call everything, and are not named.
func placeOf(s *profile.Sample, module string) (place, by, caller string) {
	var first, ofC, called string // the innermost function of Go, of all, and the outermost of C
	var own string                // the function of the place, once that is one of the program
	for _, l := range s.Location {
		for _, line := range l.Line {
			name, pkg := shortFunction(line.Function.Name), packagePath(line.Function.Name)
			at := name
			if line.Line > 0 {
				at += fmt.Sprintf(" %s:%d", filepath.Base(line.Function.Filename), line.Line)
			}
			isGo := strings.HasSuffix(line.Function.Filename, ".go") && !ofCgo(line.Function)
			inProgram := isGo && (pkg == "main" || module != "" && (pkg == module || strings.HasPrefix(pkg, module+"/")))
			switch {
			case own != "" && inProgram && name != own && !strings.HasPrefix(name, own+"."):
				return place, by, at
			case own != "":
			case inProgram:
				if place, by = at, called; first != "" {
					by = first
				}
				own = name
			case isGo && first == "":
				first, place = name, at
			case !isGo && ofC == "":
				ofC = at
			case !isGo && caller == "" && first == "" && isCaller(name) && !strings.HasPrefix(ofC, name):
				caller = name
			}
			if !isGo && first == "" && own == "" && !ofCgo(line.Function) && !strings.HasPrefix(name, "_cgo_") && !strings.Contains(name, "+0x") {
				called = name // not an address in a program without symbols
			}
		}
	}
	switch {
	case own != "":
		return place, by, ""
	case place == "":
		return ofC, "", caller
	}
	return place, called, ""
}

// isCaller reports whether a function of C is worth a name as a caller.
func isCaller(name string) bool {
	switch name {
	case "main", "start_thread", "clone", "clone3", "__clone", "__clone3", "_start", "__libc_start_main", "__libc_start_call_main":
		return false
	}
	return !strings.Contains(name, "+0x") && !strings.HasPrefix(name, "_cgo_") && !strings.HasPrefix(name, "[")
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
func (r *recording) reportPlaces(line func(label, format string, args ...any)) {
	for _, p := range r.places[:min(len(r.places), mostPlaces)] {
		text := p.Name
		if p.By != "" {
			text += ", by " + p.By
		}
		if p.Caller != "" {
			text += ", called by " + p.Caller
		}
		if p.Labels != "" {
			text += ", with the label " + p.Labels
		}
		if p.Grew != "" {
			text += ", grew " + p.Grew
		}
		line("", "%10s  %s", byteCount(p.Bytes), text)
	}
}
