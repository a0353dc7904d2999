package getter

import (
	"debug/elf"
	"encoding/binary"
	"encoding/hex"
	"strings"
)

// A file is an executable or a library in ELF.
type file struct {
	elf   *elf.File
	names map[uint64]string // of the functions, by address
	cgo   map[string]uint64 // what cgo has made: _cgo_0123456789ab_Cfunc_item_n
	vars  map[string]string // the variables of Go with its address, by package and function

	exports map[string]uint64
	slots   map[uint64]string // the names that the linker has left for the loader, by address
}

func openFile(name string) (*file, error) {
	e, err := elf.Open(name)
	if err != nil {
		return nil, err
	}
	f := &file{elf: e, names: map[uint64]string{}, cgo: map[string]uint64{}, vars: map[string]string{}, exports: map[string]uint64{}, slots: map[uint64]string{}}
	static, _ := e.Symbols() // a stripped file has none
	for _, s := range static {
		switch elf.ST_TYPE(s.Info) {
		case elf.STT_FUNC:
			f.names[s.Value] = s.Name
			if strings.HasPrefix(s.Name, "_cgo_") {
				f.cgo[s.Name] = s.Value
			}
		case elf.STT_OBJECT:
			if pkg, local, found := strings.Cut(s.Name, "._cgo_"); found {
				if _, name, found := strings.Cut(local, "_Cfunc_"); found {
					f.vars[pkg+"._Cfunc_"+name] = "_cgo_" + local
				}
			}
		}
	}
	dynamic, _ := e.DynamicSymbols()
	for _, s := range dynamic {
		if elf.ST_TYPE(s.Info) == elf.STT_FUNC && s.Section != elf.SHN_UNDEF {
			f.exports[s.Name] = s.Value
			f.names[s.Value] = s.Name
		}
	}
	f.readSlots(dynamic)
	return f, nil
}

func (f *file) Close() { f.elf.Close() }

// readSlots reads which words of the file get the addresses of which functions.
func (f *file) readSlots(dynamic []elf.Symbol) {
	for _, s := range f.elf.Sections {
		if s.Type != elf.SHT_RELA || s.Flags&elf.SHF_ALLOC == 0 {
			continue
		}
		data, err := s.Data()
		if err != nil {
			continue
		}
		for ; len(data) >= 24; data = data[24:] {
			word := func(i int) uint64 { return f.elf.ByteOrder.Uint64(data[8*i:]) }
			if i := int(word(1) >> 32); i > 0 && i <= len(dynamic) && word(2) == 0 {
				f.slots[word(0)] = dynamic[i-1].Name
			}
		}
	}
}

// exported returns the address of a function for other files, 0 if there is none. A function of which
// the loader chooses one of several is none.
func (f *file) exported(name string) uint64 { return f.exports[name] }

// cgoFunction returns the address of what cgo has made for a function of C.
func (f *file) cgoFunction(pkg, name string) uint64 { return f.cgo[f.vars[pkg+"._Cfunc_"+name]] }

// function returns the address of a function of Go.
func (f *file) function(name string) uint64 {
	for at, n := range f.names {
		if n == name || n == name+".abi0" {
			return at
		}
	}
	return 0
}

// code reads up to n bytes at an address, fewer at the end of a segment. It is nil for data.
func (f *file) code(at uint64, n int) []byte {
	for _, p := range f.elf.Progs {
		if p.Type == elf.PT_LOAD && p.Flags&elf.PF_X != 0 && p.Vaddr <= at && at-p.Vaddr < p.Filesz {
			b := make([]byte, min(uint64(n), p.Filesz-(at-p.Vaddr)))
			if _, err := p.ReadAt(b, int64(at-p.Vaddr)); err != nil {
				return nil
			}
			return b
		}
	}
	return nil
}

// buildID is that of the linker of C, in hexadecimal digits.
func (f *file) buildID() string {
	s := f.elf.Section(".note.gnu.build-id")
	if s == nil {
		return ""
	}
	b, err := s.Data()
	if err != nil || len(b) < 16 {
		return ""
	}
	size := binary.LittleEndian.Uint32(b[4:])
	if 16+uint64(size) > uint64(len(b)) {
		return ""
	}
	return hex.EncodeToString(b[16 : 16+size])
}
