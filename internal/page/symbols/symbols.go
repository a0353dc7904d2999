// Package symbols reads the names of functions in ELF files: programs and libraries of Linux.
package symbols

import (
	"cmp"
	"debug/elf"
	"encoding/hex"
	"path/filepath"
	"slices"
	"strings"
)

// A Table has the functions of a file. It does not change.
type Table struct {
	BuildID string           // of the linker, in hexadecimal digits, or ""
	Loads   []elf.ProgHeader // the segments with code

	functions []function // by address, the last of those that begin at one address is the one to name
}

// A function lies from an address of the linker to before another one.
type function struct {
	from, to uint64
	name     string
}

// Read reads a file. Without goToo the functions of Go, of which the runtime has the names, are left
// out: they would take some MiB.
func Read(path string, goToo bool) (*Table, error) { return read(path, goToo, "/usr/lib/debug") }

// read is Read. If the file has been stripped, its symbols are those of the file in the folder debug that has its
// build ID, if that is installed.
func read(path string, goToo bool, debug string) (*Table, error) {
	f, err := elf.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	t := &Table{BuildID: buildID(f)}
	for _, p := range f.Progs {
		if p.Type == elf.PT_LOAD && p.Flags&elf.PF_X != 0 {
			t.Loads = append(t.Loads, p.ProgHeader)
		}
	}
	static, _ := f.Symbols() // a stripped file has none
	if len(static) == 0 && len(t.BuildID) > 2 {
		if d, err := elf.Open(filepath.Join(debug, ".build-id", t.BuildID[:2], t.BuildID[2:]+".debug")); err == nil {
			static, _ = d.Symbols()
			d.Close()
		}
	}
	dynamic, _ := f.DynamicSymbols()
	text, etext := Value(static, "runtime.text"), Value(static, "runtime.etext")
	for _, s := range slices.Concat(static, dynamic) {
		typ := elf.ST_TYPE(s.Info)
		switch {
		case typ != elf.STT_FUNC && typ != elf.STT_GNU_IFUNC, s.Section == elf.SHN_UNDEF, s.Value == 0, s.Size == 0:
		case !goToo && s.Value >= text && s.Value < etext:
		default:
			t.functions = append(t.functions, function{s.Value, s.Value + s.Size, s.Name})
		}
	}
	// Of several names of one function, such as __libc_malloc and malloc, the one with underscores
	// comes before the other.
	slices.SortFunc(t.functions, func(x, y function) int {
		return cmp.Or(cmp.Compare(x.from, y.from), cmp.Compare(y.to, x.to), strings.Compare(x.name, y.name))
	})
	t.functions = slices.Clip(t.functions)
	return t, nil
}

// At returns the name of the function that is at an offset in the file, or "" if no symbol says so.
// What is between two functions belongs to neither.
func (t *Table) At(offset uint64) string {
	at, i, ok := t.behind(offset)
	if ok && i > 0 && at < t.functions[i-1].to {
		return t.functions[i-1].name
	}
	return ""
}

// Address returns the address, as the linker gave it, of an offset in the file, or 0 if it is in no
// segment with code.
func (t *Table) Address(offset uint64) uint64 {
	at, _, _ := t.behind(offset)
	return at
}

// Next returns the name of the first function that begins behind an offset in the file, or "".
func (t *Table) Next(offset uint64) string {
	if _, i, ok := t.behind(offset); ok && i < len(t.functions) {
		return t.functions[i].name
	}
	return ""
}

// behind returns the address of an offset in the file, and the index of the first function that begins
// behind it. ok is false if the offset is in no segment with code.
func (t *Table) behind(offset uint64) (at uint64, i int, ok bool) {
	for _, l := range t.Loads {
		if offset < l.Off || offset-l.Off >= l.Filesz {
			continue
		}
		at = offset - l.Off + l.Vaddr
		i, _ = slices.BinarySearchFunc(t.functions, at, func(f function, at uint64) int {
			if f.from <= at {
				return -1
			}
			return 1
		})
		return at, i, true
	}
	return 0, 0, false
}

// Value returns the value of the last symbol of a name, or 0 if there is none.
func Value(all []elf.Symbol, name string) (v uint64) {
	for _, s := range all {
		if s.Name == name {
			v = s.Value
		}
	}
	return v
}

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
