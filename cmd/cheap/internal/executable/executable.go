// Package executable reads programs: whether a library can be preloaded into one, and which
// functions of Go it has. The tables of Go functions are in stripped programs as well.
package executable

import (
	"debug/buildinfo"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/cheapgo/cheap/cmem/heapprofile"
	"github.com/cheapgo/cheap/internal/page/symbols"
)

// A Range is one of addresses.
type Range struct{ From, To uint64 }

// A Program is an executable file. All addresses are those that the linker has given; where a
// program is loaded elsewhere, a base is to be added.
type Program struct {
	Path    string
	At      string // where it can be read, which is Path for a program that was not started yet
	Machine elf.Machine
	Musl    bool // it uses musl and not glibc

	// IsGo says that the tables of Go functions were found. Text is the code of these functions,
	// and Cgocall that of runtime.cgocall, through which all calls of C go.
	IsGo          bool
	Text, Cgocall Range

	// Labels is at which byte the runtime's record of a goroutine has the labels of pprof; 0 if the program sets none, if it
	// has no DWARF to tell, or if its version of Go has labels of another form.
	Labels uint64

	// Mallocs are the functions of C by which Go code calls C.malloc, also for C.CString and
	// C.CBytes. A stripped program does not say where they are.
	Mallocs []Range

	table *table
}

// machines are the values of GOARCH on which programs are recorded.
var machines = map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}

// Open reads a program. An error says in a sentence why it cannot be recorded.
func Open(path string) (*Program, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	f, err := elf.NewFile(file)
	if err != nil {
		return nil, notELF(file)
	}
	if want, ok := machines[runtime.GOARCH]; !ok || f.Machine != want || f.Class != elf.ELFCLASS64 {
		return nil, fmt.Errorf("%s is a program for %v, and this command one for %s", path, f.Machine, runtime.GOARCH)
	}
	if f.Type != elf.ET_EXEC && f.Type != elf.ET_DYN {
		return nil, fmt.Errorf("%s is no program, but a file that is linked into one", path)
	}
	i := slices.IndexFunc(f.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP })
	if i < 0 {
		return nil, fmt.Errorf("%s is linked statically, so no library can be preloaded into it; if it is a Go program that uses cgo, build it without -static, and if it uses no cgo, it has no C heap", path)
	}
	linker, err := io.ReadAll(f.Progs[i].Open())
	if err != nil {
		return nil, err
	}
	if err := moreRights(file); err != nil {
		return nil, err
	}
	p := &Program{Path: path, At: path, Machine: f.Machine, Musl: strings.HasPrefix(filepath.Base(string(linker)), "ld-musl-")}
	p.readGo(f)
	return p, nil
}

// OpenLibrary reads a shared library, which has functions of Go if it was built with -buildmode=c-shared.
func OpenLibrary(path string) (*Program, error) {
	f, err := elf.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	p := &Program{Path: path, At: path, Machine: f.Machine}
	p.readGo(f)
	return p, nil
}

// notELF says what a file is that is no ELF file.
func notELF(file *os.File) error {
	var head [2]byte
	file.ReadAt(head[:], 0)
	if string(head[:]) == "#!" {
		return fmt.Errorf("%s is a script; record the program that it starts", file.Name())
	}
	return fmt.Errorf("%s is no ELF file, as programs of Linux are", file.Name())
}

// readGo looks for the tables of Go functions. If they are not found, IsGo stays false.
func (p *Program) readGo(f *elf.File) {
	image := &image{f: f, segments: map[*elf.Prog][]byte{}}
	all, _ := f.Symbols()
	for _, s := range all {
		if strings.HasPrefix(s.Name, "_cgo_") && strings.HasSuffix(s.Name, "_Cfunc__Cmalloc") && s.Size > 0 {
			p.Mallocs = append(p.Mallocs, Range{s.Value, s.Value + s.Size})
		}
	}
	pclntab := f.Section(".gopclntab")
	if pclntab == nil {
		pclntab = f.Section(".data.rel.ro.gopclntab")
	}
	if pclntab == nil {
		return
	}
	data, err := pclntab.Data()
	if err != nil {
		return
	}
	text, etext, gofunc := symbols.Value(all, "runtime.text"), symbols.Value(all, "runtime.etext"), symbols.Value(all, "go:func.*")
	if module := f.Section(".go.module"); module != nil { // Go 1.26 and later
		word := func(i uint64) uint64 { return image.word(module.Addr + 8*i) }
		const textWord, etextWord = 22, 23
		text, etext = word(textWord), word(etextWord)
		if gofunc == 0 {
			gofunc = word(gofuncWord(p.Path))
		}
	}
	t, err := newTable(f.ByteOrder, data, text)
	if err != nil || text == 0 || etext <= text {
		return
	}
	if _, err := image.bytes(gofunc, 1); err != nil { // reads what the table needs
		gofunc = 0
	}
	t.image, t.gofunc = image, gofunc
	cgocall, ok := t.find("runtime.cgocall")
	if !ok {
		return
	}
	p.IsGo, p.Text, p.Cgocall, p.table = true, Range{text, etext}, cgocall, t
	if _, ok := t.find("runtime/pprof.runtime_setProfLabel"); ok {
		p.Labels = labelsAt(f)
	}
}

// gofuncWord returns which word of the runtime's record of the program says where the tables of
// inlined functions lie, for a version of Go. With an unknown one the tables are not found, and
// names of inlined functions are missing.
func gofuncWord(path string) uint64 {
	info, err := buildinfo.ReadFile(path)
	if err == nil && strings.HasPrefix(info.GoVersion, "go1.26") {
		return 40
	}
	return 43 // go1.27
}

// Frames returns the functions at a return address of the program, innermost first.
func (p *Program) Frames(pc uint64) []heapprofile.Frame {
	if p.table == nil {
		return nil
	}
	return p.table.frames(pc - 1)
}

// An image reads the memory that a program begins with.
type image struct {
	f         *elf.File
	relocated map[uint64]uint64    // what the dynamic linker writes, by address; nil until it is needed
	segments  map[*elf.Prog][]byte // that were read
}

var errNoMemory = errors.New("no such memory")

// bytes returns n bytes of memory. It reads the whole segment, and keeps that: the file may be
// closed when another part of the segment is asked for.
func (m *image) bytes(at, n uint64) ([]byte, error) {
	for _, p := range m.f.Progs {
		if p.Type != elf.PT_LOAD || at < p.Vaddr || at-p.Vaddr >= p.Filesz || n > p.Filesz-(at-p.Vaddr) {
			continue
		}
		data, ok := m.segments[p]
		if !ok {
			data = make([]byte, p.Filesz)
			if _, err := p.ReadAt(data, 0); err != nil {
				return nil, err
			}
			m.segments[p] = data
		}
		return data[at-p.Vaddr:][:n], nil
	}
	return nil, errNoMemory
}

// word returns a word as it is where the program is loaded at the addresses of the linker.
func (m *image) word(at uint64) uint64 {
	if m.relocated == nil {
		m.readRelocations()
	}
	if v, ok := m.relocated[at]; ok {
		return v
	}
	b, err := m.bytes(at, 8)
	if err != nil {
		return 0
	}
	return m.f.ByteOrder.Uint64(b)
}

// readRelocations reads those of a program that may be loaded anywhere.
func (m *image) readRelocations() {
	m.relocated = map[uint64]uint64{}
	s, module := m.f.Section(".rela.dyn"), m.f.Section(".go.module")
	if s == nil || module == nil {
		return
	}
	data, err := s.Data()
	if err != nil {
		return
	}
	for ; len(data) >= 24; data = data[24:] {
		at, info, addend := m.f.ByteOrder.Uint64(data), m.f.ByteOrder.Uint64(data[8:]), m.f.ByteOrder.Uint64(data[16:])
		relative := uint64(elf.R_X86_64_RELATIVE)
		if m.f.Machine == elf.EM_AARCH64 {
			relative = uint64(elf.R_AARCH64_RELATIVE)
		}
		if info == relative && at-module.Addr < module.Size {
			m.relocated[at] = addend
		}
	}
}
