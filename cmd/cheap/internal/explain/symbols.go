package explain

import (
	"path/filepath"

	"github.com/google/pprof/profile"

	"github.com/cheapgo/cheap/internal/symbols"
)

// Symbolize gives names to the instructions of C in a profile, by the symbols of the program and
// of its libraries. An instruction without a symbol gets the name of the library: [libc.so.6], and
// in its allocator [libc.so.6 malloc].
func Symbolize(p *profile.Profile) {
	tables := map[string]*symbols.Table{}
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
			tables[m.File] = table
		}
		name, offset := "", loc.Address-m.Start+m.Offset
		if table != nil { // the file can be read
			name = table.At(offset)
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
