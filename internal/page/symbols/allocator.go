package symbols

import (
	"bufio"
	"debug/elf"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// An Allocator is that of a file.
type Allocator struct {
	Name string // such as "jemalloc (duckdb_je_)" with the prefix of its functions; "" if there is none
	Line string // which one it is, whether it is malloc, and else what of it is seen; "" likewise
}

// allocators has the files that were searched, by name.
var allocators sync.Map

// AllocatorIn returns the allocator in a file, which is read once, from another name. In one that was stripped, functions
// have no names, but for those that it exports. In a program with module cmem, malloc is cmem's.
func AllocatorIn(file, from string) (a Allocator) {
	if known, ok := allocators.Load(file); ok {
		return known.(Allocator)
	}
	names := mallocs(from)
	for _, name := range names {
		if a.Name = AllocatorOf(name); a.Name != "" {
			break
		}
	}
	base := filepath.Base(file)
	for _, library := range []string{"jemalloc", "mimalloc", "tcmalloc"} {
		if strings.HasPrefix(base, "lib"+library) {
			a.Name = library
		}
	}
	if a.Line = a.Name + " is in " + base; a.Name == "" {
		a.Line = ""
	} else if slices.Contains(names, "malloc") && !slices.Contains(names, "cmem_malloc") {
		a.Line += ", as malloc"
	} else {
		a.Line += ", beside malloc: what it maps is seen, and not its blocks"
	}
	allocators.Store(file, a)
	return a
}

// mallocs returns the functions of a file whose names end as that of malloc does. It does not keep the other ones, of which
// a program may have a million.
func mallocs(file string) (list []string) {
	f, err := elf.Open(file)
	if err != nil {
		return nil
	}
	defer f.Close()
	for _, typ := range []elf.SectionType{elf.SHT_SYMTAB, elf.SHT_DYNSYM} {
		table := f.SectionByType(typ)
		if table == nil || int(table.Link) >= len(f.Sections) {
			continue
		}
		names := map[uint32]string{} // by their places, those that are an end of another one as well
		at := uint32(0)
		for in := bufio.NewReader(f.Sections[table.Link].Open()); ; {
			text, err := in.ReadSlice(0)
			if before, ok := strings.CutSuffix(string(text), "malloc\x00"); ok && err == nil {
				for i := range len(before) + 1 {
					names[at+uint32(i)] = string(text[i : len(text)-1])
				}
			}
			if at += uint32(len(text)); err != nil && err != bufio.ErrBufferFull {
				break
			}
		}
		size, info, section := 24, 4, 6
		if f.Class == elf.ELFCLASS32 {
			size, info, section = 16, 12, 14
		}
		entry := make([]byte, size)
		for in := bufio.NewReader(table.Open()); len(names) > 0; {
			if _, err := io.ReadFull(in, entry); err != nil {
				break
			}
			name, typ := names[f.ByteOrder.Uint32(entry)], elf.ST_TYPE(entry[info])
			if name != "" && (typ == elf.STT_FUNC || typ == elf.STT_GNU_IFUNC) && elf.SectionIndex(f.ByteOrder.Uint16(entry[section:])) != elf.SHN_UNDEF {
				list = append(list, name)
			}
		}
	}
	return list
}

// AllocatorOf returns the allocator that has a function of that name, or "".
func AllocatorOf(function string) string {
	if before, _, ok := strings.Cut(function, "je_"); ok && (before == "" || strings.HasSuffix(before, "_")) {
		if before != "" {
			return "jemalloc (" + before + "je_)"
		}
		return "jemalloc"
	}
	for _, k := range []struct{ prefix, name string }{
		{"_rjem_", "jemalloc (_rjem_)"}, // of Rust
		{"mi_", "mimalloc"}, {"_mi_", "mimalloc"},
		{"tc_malloc", "tcmalloc"}, {"TCMalloc", "tcmalloc"}, {"_ZN8tcmalloc", "tcmalloc"}, {"_ZNK8tcmalloc", "tcmalloc"},
		{"rpmalloc", "rpmalloc"}, {"_ZN8snmalloc", "snmalloc"}, {"sn_rust_", "snmalloc"},
	} {
		if strings.HasPrefix(function, k.prefix) {
			return k.name
		}
	}
	return ""
}
