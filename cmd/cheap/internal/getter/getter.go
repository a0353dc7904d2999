// Package getter finds functions of C that do nothing but read a field, in the machine code of a
// program with cgo: a function of Go can read the field without a call.
//
// It executes the function that cgo has made around such a function, with symbols in place of numbers:
// machine.go. What that function calls is executed as well, in the program or in one of its libraries,
// so it does not matter whether the compiler has inlined it. If all that is left of it is that a field
// has been copied to the result, the types of the arguments, which the debug information of Go has, say
// which field that is. Of a type that is opaque to Go no field is found.
package getter

import (
	"cmp"
	"debug/dwarf"
	"errors"
	"strings"
)

// A Field is what a function of C reads.
type Field struct {
	Type string // of the argument of the function, as Go code writes it: C.struct_item
	Path string // from the argument on: n, next.n

	// Union says that a union is on the path. Go has its bytes only, and the path has the names of C.
	Union bool
}

// errOther is the error of Find for a function that does something else.
var errOther = errors.New("the function does not only read a field")

// A Program is an executable with cgo, and its libraries. It is not for concurrent use.
type Program struct {
	main      *file
	names     []string // of the libraries that are not read yet
	libraries []*file
	debug     *dwarf.Data
}

// Open reads the symbols of an executable. What it calls in shared libraries is looked for in those
// that are given, which are read when they are needed.
func Open(executable string, libraries []string) (*Program, error) {
	main, err := openFile(executable)
	if err != nil {
		return nil, err
	}
	debug, err := main.elf.DWARF()
	if err != nil {
		main.Close()
		return nil, err
	}
	return &Program{main: main, names: libraries, debug: debug}, nil
}

// BuildID is that of the executable, as a profile has it, "" if it has none.
func (p *Program) BuildID() string { return p.main.buildID() }

// Close closes the files.
func (p *Program) Close() {
	p.main.Close()
	for _, f := range p.libraries {
		f.Close()
	}
}

// Find returns the field that a function of C reads, by what cgo has made for it in Go:
// example.com/binding._Cfunc_item_n. There is an error if the function does anything else, if Go does
// not know the field, or if something about the two is not known.
func (p *Program) Find(wrapper string) (Field, error) {
	pkg, local, found := strings.Cut(wrapper, "._Cfunc_")
	if !found {
		return Field{}, errOther // with errno, or a macro
	}
	start := p.main.cgoFunction(pkg, local)
	if start == 0 {
		return Field{}, errors.New("the program does not have the symbol of the function")
	}
	m := newMachine(p, start)
	if err := m.run(); err != nil {
		return Field{}, err
	}
	steps, size, signed := m.copied()
	if steps == nil {
		return Field{}, errOther
	}
	arguments, result, err := p.goTypes(wrapper)
	if err != nil {
		return Field{}, err
	}
	steps[len(steps)-1].float = isFloat(result)
	f, leaf, err := walk(arguments, steps)
	if err != nil {
		return Field{}, err
	}
	inC, leafInC, err := p.checkC(start, steps)
	if err != nil {
		return Field{}, err
	}
	f.Type = cmp.Or(inC.Type, f.Type)
	if _, f.Union = leaf.(*dwarf.ArrayType); f.Union {
		if leafInC == nil {
			return Field{}, errUnknown
		}
		f.Path, leaf = inC.Path, leafInC
	}
	if err := checkLeaf(leaf, steps[len(steps)-1].size, size, signed, result); err != nil {
		return Field{}, err
	}
	return f, nil
}

// library returns the function of a name in a library, with its file.
func (p *Program) library(name string) (*file, uint64) {
	for i := 0; ; i++ {
		if i == len(p.libraries) {
			if len(p.names) == 0 {
				return nil, 0
			}
			next := p.names[0]
			p.names = p.names[1:]
			f, err := openFile(next)
			if err != nil {
				i--
				continue
			}
			p.libraries = append(p.libraries, f)
		}
		if at := p.libraries[i].exported(name); at != 0 {
			return p.libraries[i], at
		}
	}
}
