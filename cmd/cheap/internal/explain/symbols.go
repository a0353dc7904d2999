package explain

import (
	"cmp"
	"debug/dwarf"
	"debug/elf"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/pprof/profile"

	"github.com/cheapgo/cheap/internal/page/symbols"
)

// Symbolize gives names to the instructions of C in a profile, by the symbols of the program and
// of its libraries. An instruction without a symbol gets the name of the library: [libc.so.6], and
// in its allocator [libc.so.6 malloc].
func Symbolize(p *profile.Profile) {
	tables := map[string]*symbols.Table{}
	lines := map[string][]dwarf.LineEntry{}
	nextID := uint64(0)
	for _, f := range p.Function {
		nextID = max(nextID, f.ID)
	}
	functions := map[string]*profile.Function{}
	for _, loc := range p.Location {
		m := mappingOf(p, loc)
		if m == nil || m.File == "" || hasName(loc) {
			continue
		}
		table, ok := tables[m.File]
		if !ok {
			table, _ = symbols.Read(m.File, true)
			tables[m.File], lines[m.File] = table, cgoLines(m.File)
		}
		name, offset := "", loc.Address-m.Start+m.Offset
		if table != nil { // the file can be read
			name = table.At(offset)
			if called := calledBy(name); called != "" && isInlined(lines[m.File], table.Address(offset)) {
				name = called
			}
		}
		if name == "" {
			name = "[" + filepath.Base(m.File) + "]"
			if table != nil && isBeforeMalloc(table.Next(offset)) {
				name = "[" + filepath.Base(m.File) + inMalloc
			}
		}
		key := m.File + " " + name
		if functions[key] == nil {
			nextID++
			functions[key] = &profile.Function{ID: nextID, Name: name, SystemName: name, Filename: m.File}
			p.Function = append(p.Function, functions[key])
		}
		loc.Line = []profile.Line{{Function: functions[key]}}
	}
}

// calledBy returns the function of C that a function of C which cgo has made calls, "" for other
// functions: x for _cgo_1e0d9af9df68_Cfunc_x.
func calledBy(function string) string {
	if rest, found := strings.CutPrefix(function, "_cgo_"); found {
		_, rest, _ = strings.Cut(rest, "_") // behind the hash
		for _, kind := range cgoKinds {
			if name, found := strings.CutPrefix("_"+rest, kind); found {
				return name
			}
		}
	}
	return ""
}

// cgoLines returns the line entries of the functions that cgo has made in a file, by address. There are
// none without debugging information.
func cgoLines(path string) (list []dwarf.LineEntry) {
	f, err := elf.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	data, err := f.DWARF()
	if err != nil {
		return nil
	}
	units := data.Reader()
	for u, err := units.Next(); u != nil && err == nil; u, err = units.Next() {
		units.SkipChildren()
		if name, _ := u.Val(dwarf.AttrName).(string); !strings.HasSuffix(name, ".cgo2.c") {
			continue
		}
		r, err := data.LineReader(u)
		if r == nil || err != nil {
			continue
		}
		for e := (dwarf.LineEntry{}); r.Next(&e) == nil; {
			list = append(list, e)
		}
	}
	slices.SortStableFunc(list, func(x, y dwarf.LineEntry) int { return cmp.Compare(x.Address, y.Address) })
	return list
}

// isInlined reports whether an instruction of a function that cgo has made is of another function: the
// compiler inlines a static function of the comment above import "C". What cgo has written itself is in
// a file of this name.
func isInlined(lines []dwarf.LineEntry, at uint64) bool {
	i, _ := slices.BinarySearchFunc(lines, at+1, func(e dwarf.LineEntry, at uint64) int { return cmp.Compare(e.Address, at) })
	return i > 0 && !lines[i-1].EndSequence && filepath.Base(lines[i-1].File.Name) != "cgo-gcc-prolog"
}

func mappingOf(p *profile.Profile, loc *profile.Location) *profile.Mapping {
	for _, m := range p.Mapping {
		if m.Start <= loc.Address && loc.Address < m.Limit {
			return m
		}
	}
	return loc.Mapping
}

func hasName(loc *profile.Location) bool {
	for _, line := range loc.Line {
		if line.Function != nil && line.Function.Name != "" {
			return true
		}
	}
	return false
}

// inMalloc is the end of the name of an instruction in an allocator.
const inMalloc = " malloc]"

// isBeforeMalloc reports whether an instruction without a symbol is most likely of an allocator: the
// next function of the file that has a symbol is. In C, the functions that malloc and free are made of
// are before them in a source file, and a stripped library has no symbols of these.
func isBeforeMalloc(next string) bool {
	return next != "" && isMalloc(frame{function: next, isC: true})
}
