package cmem

import (
	"bufio"
	"bytes"
	"cmp"
	"debug/elf"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// A mapping is a range of addresses at which a file lies whose code may be run.
type mapping struct {
	start, end, offset uint64
	file               string
	object             *object // nil if the file cannot be read
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

// mappings returns where files with code are mapped, by address.
func mappings() ([]mapping, error) {
	text, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return nil, err
	}
	var all []mapping
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		var m mapping
		var mode, device string
		var inode uint64
		if n, _ := fmt.Sscanf(lines.Text(), "%x-%x %s %x %s %d", &m.start, &m.end, &mode, &m.offset, &device, &inode); n != 6 || len(mode) < 3 || mode[2] != 'x' {
			continue
		}
		if i := strings.IndexAny(lines.Text(), "/["); i >= 0 {
			m.file = strings.TrimSuffix(lines.Text()[i:], " (deleted)") // or replaced while the program runs
		}
		if strings.HasPrefix(m.file, "/") {
			m.object = objectOf(m.file, inode)
		}
		all = append(all, m)
	}
	slices.SortFunc(all, func(x, y mapping) int { return cmp.Compare(x.start, y.start) })
	return all, nil
}

// mappingOf returns the mapping with that address, or nil.
func mappingOf(all []mapping, pc uint64) *mapping {
	i, found := slices.BinarySearchFunc(all, pc, func(m mapping, pc uint64) int { return cmp.Compare(m.start, pc) })
	if !found {
		i--
	}
	if i < 0 || pc >= all[i].end {
		return nil
	}
	return &all[i]
}

// function returns the name of the function that has the address, or "" if no symbol says so. An
// address between two functions belongs to neither.
func (m *mapping) function(pc uint64) string {
	if m == nil || m.object == nil {
		return ""
	}
	o := m.object
	at := pc - m.start + m.offset // in the file
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
		if file == executable() {
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

// executable returns the file of the program.
func executable() string {
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
	for _, s := range append(all, dynamic...) {
		if elf.ST_TYPE(s.Info) == elf.STT_FUNC && s.Value != 0 && s.Size != 0 && s.Section != elf.SHN_UNDEF {
			o.symbols = append(o.symbols, symbol{s.Value, s.Value + s.Size, s.Name})
		}
	}
	slices.SortStableFunc(o.symbols, func(x, y symbol) int { return cmp.Compare(x.at, y.at) })
	o.symbols = slices.Clip(slices.CompactFunc(o.symbols, func(x, y symbol) bool { return x.at == y.at }))
	return o, nil
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

// library says to which library bytes belong that were allocated by such a stack of C, innermost
// frame first: the first one that does not allocate for others.
func library(maps []mapping, c []uintptr) string {
	last := ""
	for _, pc := range c {
		m := mappingOf(maps, uint64(pc-1))
		if pc == 0 {
			return "a library that was unloaded"
		}
		if m == nil || m.file == "" {
			continue
		}
		name := filepath.Base(m.file)
		function := m.function(uint64(pc - 1))
		if strings.HasPrefix(function, "_cgo_") && strings.Contains(function, "_Cfunc__Cmalloc") {
			return "C.malloc, C.CString, C.CBytes"
		}
		last = name
		if !allocatesForOthers(name, function) {
			return name
		}
	}
	if last == "" {
		return "unknown"
	}
	return last
}

// The libraries whose blocks belong to their caller, by the beginning of the file's name.
var allocatingLibraries = []string{"libc.so", "libc-", "libc.musl", "ld-linux", "ld-musl", "libstdc++.so", "libc++.so", "libc++abi.so"}

// The functions that allocate for their caller, by their beginning.
var allocatingFunctions = []string{
	"g_malloc", "g_try_malloc", "g_realloc", "g_try_realloc", "g_memdup", "g_strdup", "g_slice_", "g_aligned_alloc", // GLib
	"CRYPTO_malloc", "CRYPTO_zalloc", "CRYPTO_realloc", "CRYPTO_memdup", "CRYPTO_strdup", // OpenSSL
	"av_malloc", "av_calloc", "av_realloc", "av_fast_", // FFmpeg
	"_Znw", "_Zna", // operator new
	"xmalloc", "xcalloc", "xrealloc", "xstrdup",
}

func allocatesForOthers(library, function string) bool {
	hasPrefix := func(s string) func(string) bool { return func(p string) bool { return strings.HasPrefix(s, p) } }
	return slices.ContainsFunc(allocatingLibraries, hasPrefix(library)) || slices.ContainsFunc(allocatingFunctions, hasPrefix(function))
}
