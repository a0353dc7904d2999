//go:build linux && (amd64 || arm64)

package shared

import (
	"cmp"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"unsafe"

	"github.com/cheapgo/cheap/cmd/cheap/internal/executable"
	"github.com/cheapgo/cheap/cmem/heapprofile"
)

// A module is a file that the program has loaded.
type module struct {
	base, from, to, closed uint64
	initial                bool
	name                   string // "" is the program
}

// modules reads which files the program has loaded, the last one first.
func (f *File) modules() ([]module, error) {
	r := &reader{f: f}
	var all []module
	const name = 6 * 8 // where it begins
	for m := f.header().modules; m != 0 && r.err == nil; m = r.uint64(m) {
		text, err := f.at(m, name+8)
		if err != nil {
			return nil, err
		}
		all = append(all, module{
			base: r.uint64(m + 8), from: r.uint64(m + 16), to: r.uint64(m + 24), closed: r.uint64(m + 32),
			initial: r.uint64(m+40) != 0, name: cString(unsafe.Add(text, name)),
		})
	}
	return all, r.err
}

func cString(p unsafe.Pointer) string {
	b := unsafe.Slice((*byte)(p), 4096) // there is more of the file behind it
	return string(b[:max(0, slices.Index(b, 0))])
}

func isInitial(modules []module, pc uint64) bool {
	return slices.ContainsFunc(modules, func(m module) bool { return m.initial && pc >= m.from && pc < m.to })
}

// A goFile is the file that has the runtime of Go: the program, or a library of -buildmode=c-shared.
type goFile struct {
	*executable.Program
	base uint64 // what is to be added to its addresses, more than to those of the program
}

// SetGo says which file has the runtime of Go, if that has it.
func (f *File) SetGo(p *executable.Program, base uint64) {
	if !p.IsGo {
		return
	}
	f.goFile.Store(&goFile{p, base})
	f.header().labels = p.Labels
	code := &f.header().goCode
	code[0], code[2], code[3] = p.Text.From+base, p.Cgocall.From+base, p.Cgocall.To+base
	atomic.StoreUint64(&code[1], p.Text.To+base)
}

// FindGo looks whether a library with the runtime of Go has been loaded. One goroutine calls it.
func (f *File) FindGo() {
	h := f.header()
	last := atomic.LoadUint64(&h.modules)
	if f.goFile.Load() != nil || last == f.looked || !f.Started() {
		return
	}
	f.looked = last
	all, _ := f.modules()
	for _, m := range all {
		if p, err := executable.OpenLibrary(m.name); err == nil && m.name != "" {
			f.SetGo(p, m.base-h.program)
		}
	}
}

// Process returns what profiles need to know of the program.
func (f *File) Process(program *executable.Program) (*heapprofile.Process, error) {
	modules, err := f.modules()
	if err != nil {
		return nil, err
	}
	p := &heapprofile.Process{Program: program.Path, Peak: true}
	p.Frames = func(pc uintptr) []heapprofile.Frame { return program.Frames(uint64(pc) - f.Base()) }
	if file := f.goFile.Load(); file != nil {
		p.Frames = func(pc uintptr) []heapprofile.Frame { return file.Frames(uint64(pc) - f.Base() - file.base) }
	}
	// Of files that were loaded at the same addresses, the last one counts.
	slices.SortStableFunc(modules, func(x, y module) int { return cmp.Compare(y.closed, x.closed) })
	for i, m := range modules {
		covered := func(n module) bool { return m.from < n.to && n.from < m.to }
		if slices.ContainsFunc(modules[:i], covered) {
			continue
		}
		file, at := m.name, m.name
		if file == "" {
			file, at = program.Path, program.At
		} else if f.root != nil {
			at = In(f.root, file)
		}
		if !strings.Contains(file, "/") { // the kernel's part
			continue
		}
		if file, err = filepath.Abs(file); err != nil {
			return nil, err
		}
		for _, l := range heapprofile.Loaded(at, m.base) {
			l.File = file
			p.Mappings = append(p.Mappings, l)
		}
	}
	slices.SortFunc(p.Mappings, func(x, y heapprofile.Mapping) int { return cmp.Compare(x.Start, y.Start) })
	return p, nil
}
