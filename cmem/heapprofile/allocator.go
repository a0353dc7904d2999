package heapprofile

import (
	"fmt"
	"path/filepath"
	"strings"
	"sync"
)

// Allocator returns the allocator by which a stack has come to memory of its own, if it is known: one that a library
// brings, or one that was preloaded. "jemalloc (duckdb_je_)" has the prefix of its functions.
func (p *Process) Allocator(s *Site) string {
	var innermost *Mapping
	for _, pc := range s.C {
		if pc == 0 {
			continue
		}
		m := mappingOf(p.Mappings, uint64(pc-1))
		if name := allocatorOf(m.function(uint64(pc - 1))); name != "" {
			return name
		}
		if innermost == nil {
			innermost = m
		}
	}
	if innermost == nil || innermost.File == p.Program {
		return "" // a program may have other functions that map memory
	}
	return innermost.allocator()
}

// Allocators says which files of a process bring an allocator of their own, in a line for each. The malloc of the program is
// not among them: all its blocks are seen.
func (p *Process) Allocators() (lines []string) {
	seen := map[string]bool{}
	for i := range p.Mappings {
		m := &p.Mappings[i]
		name := m.allocator()
		isMalloc := m.File != p.Program && m.symbols != nil && m.symbols.Find(func(function string) bool { return function == "malloc" }) != ""
		if name == "" || isMalloc || seen[m.File] {
			continue
		}
		seen[m.File] = true
		lines = append(lines, fmt.Sprintf("%s has %s of its own, of which only what it maps is seen, and not its blocks", filepath.Base(m.File), name))
	}
	return lines
}

// allocators has the allocators of files that were searched.
var allocators sync.Map // by *symbols.Table

// allocator returns the allocator of a library, whose functions have no names if it was stripped: but for those that it
// exports.
func (m *Mapping) allocator() string {
	for _, prefix := range []string{"libjemalloc", "libmimalloc", "libtcmalloc"} {
		if strings.HasPrefix(filepath.Base(m.File), prefix) {
			return prefix[len("lib"):]
		}
	}
	if m.symbols == nil {
		return ""
	}
	if name, ok := allocators.Load(m.symbols); ok {
		return name.(string)
	}
	name := allocatorOf(m.symbols.Find(func(function string) bool {
		return strings.HasSuffix(function, "malloc") && allocatorOf(function) != ""
	}))
	allocators.Store(m.symbols, name)
	return name
}

// allocatorOf returns the allocator that has a function of that name, or "".
func allocatorOf(function string) string {
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
