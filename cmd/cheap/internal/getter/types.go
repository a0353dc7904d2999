package getter

import (
	"debug/dwarf"
	"errors"
	"fmt"
	"strings"
)

var errUnknown = errors.New("the field is not known to Go")

// goTypes returns the arguments of a function as the struct that cgo passes, and the result. They are
// from the debug information of Go, so a type that is opaque to Go has no fields.
func (p *Program) goTypes(wrapper string) (*dwarf.StructType, dwarf.Type, error) {
	list, err := p.children(p.main.function(wrapper))
	if err != nil {
		return nil, nil, err
	}
	arguments, result := new(dwarf.StructType), dwarf.Type(nil)
	end := int64(0)
	for _, e := range list {
		offset, ok := e.Val(dwarf.AttrType).(dwarf.Offset)
		if e.Tag != dwarf.TagFormalParameter || !ok {
			continue
		}
		t, err := p.debug.Type(offset)
		if err != nil {
			return nil, nil, err
		}
		if isResult, _ := e.Val(dwarf.AttrVarParam).(bool); isResult {
			result = t
			continue
		}
		align := alignment(t)
		end = (end + align - 1) / align * align
		name, _ := e.Val(dwarf.AttrName).(string)
		arguments.Field = append(arguments.Field, &dwarf.StructField{Name: name, Type: t, ByteOffset: end})
		end += t.Size()
	}
	if result == nil || len(arguments.Field) == 0 {
		return nil, nil, errUnknown
	}
	return arguments, result, nil
}

// children returns what the debug information has of a function at an address.
func (p *Program) children(at uint64) (list []*dwarf.Entry, err error) {
	if at == 0 {
		return nil, errUnknown
	}
	r := p.debug.Reader()
	if _, err := r.SeekPC(at); err != nil {
		return nil, err
	}
	in := false
	for {
		e, err := r.Next()
		switch {
		case err != nil:
			return nil, err
		case e == nil || e.Tag == dwarf.TagCompileUnit:
			return nil, errUnknown
		case in && e.Tag == 0:
			return list, nil
		case in:
			list = append(list, e)
			if e.Children {
				r.SkipChildren()
			}
		case e.Tag == dwarf.TagSubprogram:
			if low, ok := e.Val(dwarf.AttrLowpc).(uint64); ok && low == at && e.Children {
				in = true
				continue
			}
			r.SkipChildren()
		case e.Children:
			r.SkipChildren()
		}
	}
}

func alignment(t dwarf.Type) int64 {
	switch t := t.(type) {
	case *dwarf.TypedefType:
		return alignment(t.Type)
	case *dwarf.QualType:
		return alignment(t.Type)
	case *dwarf.ArrayType:
		return alignment(t.Type)
	case *dwarf.ComplexType:
		return t.Size() / 2
	case *dwarf.StructType:
		most := int64(1)
		for _, f := range t.Field {
			most = max(most, alignment(f.Type))
		}
		return most
	}
	return max(1, t.Size())
}

// walk follows a path through types, from the struct with the arguments on.
func walk(arguments *dwarf.StructType, steps []step) (f Field, leaf dwarf.Type, err error) {
	t := dwarf.Type(arguments)
	for i, s := range steps {
		if i > 0 {
			pointer, ok := plain(t).(*dwarf.PtrType)
			if !ok {
				return f, nil, errUnknown
			}
			t = pointer.Type
		}
		var path []string
		if path, t, err = within(t, s); err != nil {
			return f, nil, err
		}
		if i == 0 {
			path = path[1:] // the argument
			f.Type = goName(argumentAt(arguments, s.at))
		}
		if len(path) > 0 && f.Path != "" {
			f.Path += "."
		}
		f.Path += strings.ReplaceAll(strings.Join(path, "."), ".[", "[")
	}
	if f.Path == "" {
		return f, nil, errUnknown // the argument itself, or what a pointer to no struct points to
	}
	return f, t, nil
}

// argumentAt returns the type of the argument at an offset; for a pointer that to which it points.
func argumentAt(arguments *dwarf.StructType, at int64) dwarf.Type {
	for _, f := range arguments.Field {
		if f.ByteOffset <= at && at < f.ByteOffset+f.Type.Size() {
			if pointer, ok := plain(f.Type).(*dwarf.PtrType); ok {
				return pointer.Type
			}
			return f.Type
		}
	}
	return nil
}

// within looks for a piece of a type: a field, an element, or a part of these.
func within(t dwarf.Type, s step) (path []string, leaf dwarf.Type, err error) {
	at := s.at
	for {
		switch of := plain(t).(type) {
		case *dwarf.StructType:
			field := (*dwarf.StructField)(nil)
			for _, f := range of.Field {
				if f.ByteOffset <= at && at < f.ByteOffset+max(1, f.Type.Size()) && f.Name != "_" && f.BitSize == 0 {
					if of.Kind != "union" {
						field = f
					} else if more, leaf, err := within(f.Type, step{at, s.size, s.float}); err == nil && leaf.Size() == int64(s.size) && isFloat(leaf) == s.float {
						return append(append(path, f.Name), more...), leaf, nil // the first that fits
					}
				}
			}
			if field == nil {
				return nil, nil, errUnknown
			}
			path, t, at = append(path, field.Name), field.Type, at-field.ByteOffset
		case *dwarf.ArrayType:
			size := of.Type.Size()
			if size == 1 && s.size > 1 && at+int64(s.size) <= of.Count {
				return path, of, nil // what cgo makes of a union
			}
			if size <= 0 || at < 0 || at/size >= of.Count {
				return nil, nil, errUnknown
			}
			path, t, at = append(path, fmt.Sprintf("[%d]", at/size)), of.Type, at%size
		case nil:
			return nil, nil, errUnknown
		default:
			if at != 0 || of.Size() < int64(s.size) {
				return nil, nil, errUnknown
			}
			return path, t, nil
		}
		if q, ok := t.(*dwarf.QualType); ok && q.Qual == "volatile" {
			return nil, nil, errOther
		}
	}
}

// plain removes the names of a type. It is nil for volatile ones, and for ones that package dwarf does not
// have, such as atomic ones.
func plain(t dwarf.Type) dwarf.Type {
	for {
		switch of := t.(type) {
		case *dwarf.TypedefType:
			t = of.Type
		case *dwarf.QualType:
			if of.Qual == "volatile" {
				return nil
			}
			t = of.Type
		case *dwarf.UnsupportedType, *dwarf.UnspecifiedType, *dwarf.VoidType, nil:
			return nil
		default:
			return t
		}
	}
}

// goName is a type as Go code of the binding writes it. The debug information of C has names for types
// that Go has numbered, such as C.struct___0.
func goName(t dwarf.Type) string {
	for {
		switch of := t.(type) {
		case *dwarf.QualType:
			t = of.Type
		case *dwarf.TypedefType:
			return "C." + afterCtype(of.Name)
		case *dwarf.StructType:
			if name := afterCtype(of.StructName); name != of.StructName {
				return "C." + name
			}
			return "C." + of.Kind + "_" + of.StructName
		default:
			return "C"
		}
	}
}

func afterCtype(name string) string {
	_, name, _ = cutLast(name, "_Ctype_")
	return name
}

func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return "", s, false
}

// checkLeaf compares the number in the field with the one in the result. Where the result has more
// bytes, they are as the type of the field says; where the function has taken a part of the field, the
// result has no more than that.
func checkLeaf(leaf dwarf.Type, read, size int, signed bool, result dwarf.Type) error {
	whole := int64(read) == leaf.Size()
	switch plain(leaf).(type) {
	case *dwarf.IntType, *dwarf.CharType:
		if size > read && !signed {
			return errOther
		}
	case *dwarf.UintType, *dwarf.UcharType, *dwarf.BoolType:
		if size > read && signed {
			return errOther
		}
	case *dwarf.PtrType, *dwarf.FloatType:
		if !whole || size != read {
			return errOther
		}
	default:
		return errOther
	}
	if !whole && size > read || isFloat(leaf) != isFloat(result) {
		return errOther // such as the low byte of it
	}
	return nil
}

func isFloat(t dwarf.Type) bool {
	_, ok := plain(t).(*dwarf.FloatType)
	return ok
}

// checkC looks at the types of C, which say what Go does not know: whether a field is volatile or
// atomic, and the names in unions. There is no field where C has no debug information.
func (p *Program) checkC(start uint64, steps []step) (f Field, leaf dwarf.Type, err error) {
	list, err := p.children(start)
	if err != nil {
		return f, nil, err // nobody knows whether the field is volatile
	}
	for _, e := range list {
		name, _ := e.Val(dwarf.AttrName).(string)
		offset, ok := e.Val(dwarf.AttrType).(dwarf.Offset)
		if name != "_cgo_a" || !ok {
			continue
		}
		t, err := p.debug.Type(offset)
		if err != nil {
			return f, nil, err
		}
		pointer, ok := plain(t).(*dwarf.PtrType)
		if !ok {
			return f, nil, nil
		}
		arguments, ok := plain(pointer.Type).(*dwarf.StructType)
		if !ok {
			return f, nil, nil
		}
		f, leaf, err = walk(arguments, steps)
		if err == nil && plain(leaf) == nil {
			err = errOther
		}
		return f, leaf, err
	}
	return f, nil, nil
}
