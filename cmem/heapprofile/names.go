package heapprofile

import (
	"cmp"
	"debug/elf"
	"encoding/hex"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/cheapgo/cheap/internal/procfs"
)

// A Mapping is a range of addresses at which a file lies whose code may be run.
type Mapping struct {
	Start, End, Offset uint64
	File               string

	object *object // nil if the file cannot be read
}

// An object is what is known of a file with code.
type object struct {
	buildID string
	symbols []symbol // of functions, by address
	loads   []elf.ProgHeader
}

type symbol struct {
	at, end uint64
	name    string
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
				m.object = objectOf(m.File, p.Inode)
			}
			all = append(all, m)
		}
		return true
	})
	return all, err
}

// Loaded returns the mappings of a file whose addresses were moved by base when it was loaded.
func Loaded(file string, base uint64) []Mapping {
	o := objectOf(file, 0)
	if o == nil {
		return nil
	}
	var all []Mapping
	const page = 4096
	for _, l := range o.loads {
		start := base + l.Vaddr&^(page-1)
		all = append(all, Mapping{
			Start: start, End: (base + l.Vaddr + l.Memsz + page - 1) &^ (page - 1), Offset: l.Off &^ (page - 1), File: file, object: o,
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
	if m == nil || m.object == nil {
		return ""
	}
	o := m.object
	at := pc - m.Start + m.Offset // in the file
	for _, l := range o.loads {
		if at < l.Off || at >= l.Off+l.Filesz {
			continue
		}
		at = at - l.Off + l.Vaddr
		i, found := slices.BinarySearchFunc(o.symbols, at, func(s symbol, at uint64) int { return cmp.Compare(s.at, at) })
		if !found {
			i--
		}
		if i >= 0 && at < o.symbols[i].end {
			return o.symbols[i].name
		}
		break
	}
	return ""
}

// objects has the files that were read. A file that is replaced has another inode.
var objects struct {
	sync.Mutex
	m map[string]*object
}

func objectOf(file string, inode uint64) *object {
	objects.Lock()
	defer objects.Unlock()
	key := fmt.Sprint(file, " ", inode)
	o, ok := objects.m[key]
	if !ok {
		name := file
		if file == Executable() {
			name = "/proc/self/exe" // even if the file was replaced
		}
		o, _ = readObject(name)
		if objects.m == nil {
			objects.m = map[string]*object{}
		}
		objects.m[key] = o
	}
	return o
}

// Executable returns the file of this program.
func Executable() string {
	name, _ := os.Readlink("/proc/self/exe")
	return strings.TrimSuffix(name, " (deleted)")
}

func readObject(file string) (*object, error) {
	f, err := elf.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	o := &object{buildID: buildID(f)}
	for _, p := range f.Progs {
		if p.Type == elf.PT_LOAD && p.Flags&elf.PF_X != 0 {
			o.loads = append(o.loads, p.ProgHeader)
		}
	}
	all, _ := f.Symbols()
	dynamic, _ := f.DynamicSymbols()
	text, etext := goSymbols(all)
	for _, s := range append(all, dynamic...) {
		if s.Value >= text && s.Value < etext {
			continue
		}
		if elf.ST_TYPE(s.Info) == elf.STT_FUNC && s.Value != 0 && s.Size != 0 && s.Section != elf.SHN_UNDEF {
			o.symbols = append(o.symbols, symbol{s.Value, s.Value + s.Size, s.Name})
		}
	}
	slices.SortStableFunc(o.symbols, func(x, y symbol) int { return cmp.Compare(x.at, y.at) })
	o.symbols = slices.Clip(slices.CompactFunc(o.symbols, func(x, y symbol) bool { return x.at == y.at }))
	return o, nil
}

// goSymbols returns the range of the functions of Go. The runtime has their names; here they would
// take some MiB.
func goSymbols(all []elf.Symbol) (text, etext uint64) {
	for _, s := range all {
		switch s.Name {
		case "runtime.text":
			text = s.Value
		case "runtime.etext":
			etext = s.Value
		}
	}
	return text, etext
}

// buildID returns the build ID of the linker, in hexadecimal digits, or "".
func buildID(f *elf.File) string {
	s := f.Section(".note.gnu.build-id")
	if s == nil {
		return ""
	}
	b, err := s.Data()
	if err != nil || len(b) < 16 {
		return ""
	}
	name, desc := f.ByteOrder.Uint32(b), f.ByteOrder.Uint32(b[4:])
	at := 12 + uint64(name+3)&^3
	if at+uint64(desc) > uint64(len(b)) {
		return ""
	}
	return hex.EncodeToString(b[at : at+uint64(desc)])
}
