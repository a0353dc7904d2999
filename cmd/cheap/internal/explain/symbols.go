package explain

import (
	"debug/elf"
	"path/filepath"
	"slices"
	"sort"
	"strings"

	"github.com/google/pprof/profile"
)

// Symbolize gives names to the instructions of C in a profile, by the symbols of the program and
// of its libraries. An instruction without a symbol gets the name of the library: [libc.so.6], and
// in its allocator [libc.so.6 malloc].
func Symbolize(p *profile.Profile) {
	tables := map[string]*symbolTable{}
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
		if tables[m.File] == nil {
			tables[m.File] = readSymbols(m.File)
		}
		offset := loc.Address - m.Start + m.Offset
		name := tables[m.File].name(offset)
		if name == "" {
			name = "[" + filepath.Base(m.File) + "]"
			if tables[m.File].isBeforeMalloc(offset) {
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

// A symbolTable has the functions of a file, by their place in it.
type symbolTable struct {
	symbols []symbol // sorted by from
}

type symbol struct {
	from, to uint64 // offsets in the file
	name     string
}

// readSymbols reads the symbols of a file. Of one that cannot be read it knows none.
func readSymbols(file string) *symbolTable {
	t := new(symbolTable)
	f, err := elf.Open(file)
	if err != nil {
		return t
	}
	defer f.Close()
	static, _ := f.Symbols() // a stripped file has none
	dynamic, _ := f.DynamicSymbols()
	for _, s := range slices.Concat(static, dynamic) {
		if elf.ST_TYPE(s.Info) != elf.STT_FUNC && elf.ST_TYPE(s.Info) != elf.STT_GNU_IFUNC || s.Value == 0 {
			continue
		}
		for _, p := range f.Progs {
			if p.Type == elf.PT_LOAD && p.Vaddr <= s.Value && s.Value < p.Vaddr+p.Filesz {
				from := s.Value - p.Vaddr + p.Off
				t.symbols = append(t.symbols, symbol{from, from + max(s.Size, 1), s.Name})
			}
		}
	}
	slices.SortFunc(t.symbols, func(a, b symbol) int {
		switch {
		case a.from != b.from:
			return compare(a.from, b.from)
		case a.to != b.to:
			return compare(b.to, a.to)
		}
		return strings.Compare(a.name, b.name)
	})
	return t
}

func compare(a, b uint64) int {
	if a < b {
		return -1
	} else if a > b {
		return 1
	}
	return 0
}

// name returns the function at an offset in the file, "" if there is none.
func (t *symbolTable) name(offset uint64) string {
	i := sort.Search(len(t.symbols), func(i int) bool { return t.symbols[i].from > offset })
	if i == 0 || offset >= t.symbols[i-1].to {
		return ""
	}
	return t.symbols[i-1].name
}

// inMalloc is the end of the name of an instruction in an allocator.
const inMalloc = " malloc]"

// isBeforeMalloc reports whether an instruction without a symbol is most likely of an allocator: the
// next function of the file that has a symbol is. In C, the functions that malloc and free are made of
// are before them in a source file, and a stripped library has no symbols of these.
func (t *symbolTable) isBeforeMalloc(offset uint64) bool {
	i := sort.Search(len(t.symbols), func(i int) bool { return t.symbols[i].from > offset })
	return i < len(t.symbols) && isMalloc(frame{function: t.symbols[i].name, isC: true})
}
