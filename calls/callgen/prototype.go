package main

import (
	"debug/dwarf"
	"debug/elf"
	"debug/macho"
	"debug/pe"
	"errors"
	"fmt"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// A function is a C function whose calls are recorded.
type function struct {
	name   string
	params []value
	result *value // nil: void
	macro  bool   // there is a macro of the same name as well
}

// A value is a parameter or a result.
type value struct {
	name string // of a parameter
	kind valueKind
	typ  string // in Go
}

// A valueKind says how a value is passed: in which registers, and how it is widened.
type valueKind int

const (
	signed valueKind = iota
	unsigned
	boolean
	float32Kind
	float64Kind
	pointer
)

// variable is the prefix of the pointers whose types are read.
const variable = "callgen_type_of_"

// maxParams is the most parameters: an argument has two bits of a word, see calls.Arg.
const maxParams = 32

// prototypes has the compiler compile pointers to all functions, and reads their types.
func (s *source) prototypes(names []string) ([]function, error) {
	dir, err := os.MkdirTemp("", "callgen")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	var b strings.Builder
	fmt.Fprintf(&b, "#line 1 \"preamble\"\n%s\n", s.preamble)
	for _, name := range names {
		if !token.IsIdentifier(name) && !token.IsKeyword(name) {
			return nil, fmt.Errorf("%q is not the name of a function", name)
		}
		// A type has no address: one that is a function, as some callbacks are, is no function. The
		// parentheses keep a macro of the name away.
		fmt.Fprintf(&b, "#line 1 \"%s\"\n__typeof__(&(%[1]s)) %[2]s%[1]s;\n", name, variable)
	}
	file, object := filepath.Join(dir, "types.c"), filepath.Join(dir, "types.o")
	if err := os.WriteFile(file, []byte(b.String()), 0o666); err != nil {
		return nil, err
	}
	if _, err := s.compiler("-g", "-gdwarf-4", "-O0", "-fno-lto", "-c", "-o", object, file); err != nil {
		return nil, err
	}
	text, err := s.compiler("-E", "-P", file)
	if err != nil {
		return nil, err
	}
	macros, err := s.compiler("-E", "-dM", file)
	if err != nil {
		return nil, err
	}
	data, err := debugData(object)
	if err != nil {
		return nil, err
	}
	types, err := variableTypes(data)
	if err != nil {
		return nil, err
	}
	var list []function
	var refused []error // all of them, so that names are taken out at once
	for _, name := range names {
		f, err := convert(name, types[name])
		if err != nil {
			refused = append(refused, err)
			continue
		}
		f.nameParams(text)
		f.macro = strings.Contains(macros, "#define "+name+"(")
		list = append(list, f)
	}
	return list, errors.Join(refused...)
}

// compiler runs the C compiler of the go command, in the folder of the package.
func (s *source) compiler(args ...string) (string, error) {
	out, err := exec.Command("go", "env", "CC", "CGO_CPPFLAGS", "CGO_CFLAGS").Output()
	if err != nil {
		return "", errors.New(reason(err))
	}
	cc, flags, _ := strings.Cut(string(out), "\n")
	command, err := splitQuoted(cc)
	if err != nil || len(command) == 0 {
		return "", fmt.Errorf("go env CC names no compiler: %q", cc)
	}
	all, err := splitQuoted(flags)
	if err != nil {
		return "", fmt.Errorf("go env CGO_CPPFLAGS CGO_CFLAGS: %w", err)
	}
	all = append(append(append(command[1:], all...), s.flags...), "-I", ".", "-w")
	cmd := exec.Command(command[0], append(all, args...)...)
	cmd.Dir = s.dir
	text, err := cmd.Output()
	if err != nil {
		return "", errors.New(reason(err))
	}
	return string(text), nil
}

// debugData opens the debugging information of an object file.
func debugData(name string) (*dwarf.Data, error) {
	if f, err := elf.Open(name); err == nil {
		defer f.Close()
		return f.DWARF()
	}
	if f, err := macho.Open(name); err == nil {
		defer f.Close()
		return f.DWARF()
	}
	f, err := pe.Open(name)
	if err != nil {
		return nil, fmt.Errorf("the compiler has written a file of an unknown format")
	}
	defer f.Close()
	return f.DWARF()
}

// variableTypes returns the types of the pointers, by the names of the functions.
func variableTypes(data *dwarf.Data) (map[string]dwarf.Type, error) {
	types := map[string]dwarf.Type{}
	r := data.Reader()
	for {
		e, err := r.Next()
		if err != nil {
			return nil, err
		}
		if e == nil {
			return types, nil
		}
		name, _ := e.Val(dwarf.AttrName).(string)
		off, ok := e.Val(dwarf.AttrType).(dwarf.Offset)
		if name, found := strings.CutPrefix(name, variable); found && ok && e.Tag == dwarf.TagVariable {
			if types[name], err = data.Type(off); err != nil {
				return nil, fmt.Errorf("%s: a type that is not known: %w", name, err)
			}
		}
		if e.Tag != dwarf.TagCompileUnit {
			r.SkipChildren()
		}
	}
}

// strip takes typedefs and qualifiers off a type.
func strip(t dwarf.Type) dwarf.Type {
	for {
		switch x := t.(type) {
		case *dwarf.TypedefType:
			t = x.Type
		case *dwarf.QualType:
			t = x.Type
		default:
			return t
		}
	}
}

// convert makes a function of the type of its address, or says why its calls cannot be recorded.
func convert(name string, address dwarf.Type) (function, error) {
	f := function{name: name}
	p, ok := address.(*dwarf.PtrType)
	if !ok {
		return f, fmt.Errorf("%s: the compiler has left no type", name)
	}
	t, ok := strip(p.Type).(*dwarf.FuncType)
	if !ok {
		return f, fmt.Errorf("%s is not a function, but of the type %s", name, p.Type)
	}
	if err := f.setTypes(t); err != nil {
		return f, fmt.Errorf("%s: %w", name, err)
	}
	return f, nil
}

// setTypes adds the parameters and the result.
func (f *function) setTypes(t *dwarf.FuncType) error {
	for i, p := range t.ParamType {
		if _, ok := p.(*dwarf.DotDotDotType); ok {
			return errors.New("it is variadic, or declared without a prototype; write a C function around it that has the parameters of one use")
		}
		v, err := toGo(p)
		if err != nil {
			return fmt.Errorf("parameter %d %w", i+1, err)
		}
		v.name = fmt.Sprint("a", i)
		f.params = append(f.params, v)
	}
	if len(f.params) > maxParams {
		return fmt.Errorf("it has %d parameters; a recorded call has %d at most", len(f.params), maxParams)
	}
	if t.ReturnType == nil {
		return nil
	}
	if _, void := strip(t.ReturnType).(*dwarf.VoidType); void {
		return nil
	}
	v, err := toGo(t.ReturnType)
	if err != nil {
		return fmt.Errorf("the result %w", err)
	}
	f.result = &v
	return nil
}

// toGo returns the kind and the Go type of a C type.
func toGo(t dwarf.Type) (value, error) {
	bare := strip(t)
	size := bare.Common().ByteSize
	if p, ok := bare.(*dwarf.PtrType); ok {
		return value{kind: pointer, typ: pointerType(t, p)}, nil
	}
	switch x := bare.(type) {
	case *dwarf.StructType:
		return value{}, fmt.Errorf("is a %s that is passed by value (%s); write a C function around it that takes a pointer", x.Kind, t)
	case *dwarf.BoolType:
		return value{kind: boolean, typ: "bool"}, nil
	case *dwarf.FloatType:
		switch size {
		case 4:
			return value{kind: float32Kind, typ: "float32"}, nil
		case 8:
			return value{kind: float64Kind, typ: "float64"}, nil
		}
	case *dwarf.EnumType:
		for _, v := range x.Val {
			if v.Val < 0 {
				return integer(signed, size, t)
			}
		}
		return integer(unsigned, size, t)
	case *dwarf.IntType, *dwarf.CharType:
		return integer(signed, size, t)
	case *dwarf.UintType, *dwarf.UcharType:
		return integer(unsigned, size, t)
	}
	return value{}, fmt.Errorf("is of a type that a word does not hold (%s)", t)
}

// integer returns an integer of size bytes.
func integer(k valueKind, size int64, t dwarf.Type) (value, error) {
	if size != 1 && size != 2 && size != 4 && size != 8 {
		return value{}, fmt.Errorf("is of a type that a word does not hold (%s)", t)
	}
	typ := fmt.Sprint("int", size*8)
	if k == unsigned {
		typ = "u" + typ
	}
	return value{kind: k, typ: typ}, nil
}

// pointerType returns the Go type of a pointer: cgo's if it points to a structure with a name.
// cgo has no name for a type that is called as a keyword of Go.
func pointerType(t dwarf.Type, p *dwarf.PtrType) string {
	for { // a typedef of a pointer
		q, ok := t.(*dwarf.QualType)
		if !ok {
			break
		}
		t = q.Type
	}
	to := p.Type
	for {
		q, ok := to.(*dwarf.QualType)
		if !ok {
			break
		}
		to = q.Type
	}
	x, ok := strip(to).(*dwarf.StructType)
	if !ok {
		return "unsafe.Pointer"
	}
	if name, ok := t.(*dwarf.TypedefType); ok && !token.IsKeyword(name.Name) {
		return "C." + name.Name
	}
	if name, ok := to.(*dwarf.TypedefType); ok && !token.IsKeyword(name.Name) {
		return "*C." + name.Name
	}
	if x.StructName != "" && (x.Kind == "struct" || x.Kind == "union") {
		return "*C." + x.Kind + "_" + x.StructName
	}
	return "unsafe.Pointer"
}
