package heapprofile

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/cheapgo/cheap/internal/page/symbols"
	"github.com/cheapgo/cheap/internal/watch/procfs"
	"github.com/ianlancetaylor/demangle"
)

// A Mapping is a range of addresses at which a file lies whose code may be run.
type Mapping struct {
	Start, End, Offset uint64
	File               string

	symbols *symbols.Table // nil if the file cannot be read
}

// Mappings returns where files with code are mapped in this process, by address.
func Mappings() ([]Mapping, error) {
	f, err := os.Open("/proc/self/maps")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var all []Mapping
	err = procfs.Mappings(f, func(p procfs.Mapping) (more bool) {
		if p.Exec {
			m := Mapping{Start: p.Start, End: p.End, Offset: p.Offset}
			m.File = strings.TrimSuffix(p.Name, " (deleted)") // or replaced while the program runs
			if strings.HasPrefix(m.File, "/") {
				m.symbols = symbolsOf(m.File, p.Inode)
			}
			all = append(all, m)
		}
		return true
	})
	return all, err
}

// Loaded returns the mappings of a file whose addresses were moved by base when it was loaded.
func Loaded(file string, base uint64) []Mapping {
	table := symbolsOf(file, 0)
	if table == nil {
		return nil
	}
	var all []Mapping
	const page = 4096
	for _, l := range table.Loads {
		start := base + l.Vaddr&^(page-1)
		all = append(all, Mapping{
			Start: start, End: (base + l.Vaddr + l.Memsz + page - 1) &^ (page - 1), Offset: l.Off &^ (page - 1), File: file, symbols: table,
		})
	}
	sortMappings(all)
	return all
}

func sortMappings(all []Mapping) {
	slices.SortFunc(all, func(x, y Mapping) int { return cmp.Compare(x.Start, y.Start) })
}

// mappingOf returns the mapping with that address, or nil.
func mappingOf(all []Mapping, pc uint64) *Mapping {
	i, found := slices.BinarySearchFunc(all, pc, func(m Mapping, pc uint64) int { return cmp.Compare(m.Start, pc) })
	if !found {
		i--
	}
	if i < 0 || pc >= all[i].End {
		return nil
	}
	return &all[i]
}

// function returns the name of the function that has the address, or "" if no symbol says so. An
// address between two functions belongs to neither.
func (m *Mapping) function(pc uint64) string {
	if m == nil || m.symbols == nil {
		return ""
	}
	return m.symbols.At(pc - m.Start + m.Offset)
}

// plainName returns the name that a function of C++ or Rust has in its source, as go tool pprof shows it: without
// parameters and those of templates. Other names stay as they are.
func plainName(symbol string) string {
	return demangle.Filter(symbol, demangle.NoParams, demangle.NoEnclosingParams, demangle.NoTemplateParams)
}

// tables has the files that were read. A file that is replaced has another inode.
var tables struct {
	sync.Mutex
	m map[string]*symbols.Table
}

func symbolsOf(file string, inode uint64) *symbols.Table {
	tables.Lock()
	defer tables.Unlock()
	key := fmt.Sprint(file, " ", inode)
	t, ok := tables.m[key]
	if !ok {
		t, _ = symbols.Read(nameOf(file), false)
		if tables.m == nil {
			tables.m = map[string]*symbols.Table{}
		}
		tables.m[key] = t
	}
	return t
}

// nameOf returns the name by which a file is read.
func nameOf(file string) string {
	if file == Executable() {
		return "/proc/self/exe" // even if the file was replaced
	}
	return file
}

// Executable returns the file of this program.
func Executable() string {
	name, _ := os.Readlink("/proc/self/exe")
	return strings.TrimSuffix(name, " (deleted)")
}
