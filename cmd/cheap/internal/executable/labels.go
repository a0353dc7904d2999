package executable

import (
	"debug/dwarf"
	"debug/elf"
	"strings"
)

// labelsAt returns at which byte of a record of a goroutine, a runtime.g, there is a pointer to labels, if these have the form
// that cmem/source/labels.c reads: a slice of keys and values. Before Go 1.24 they were a map.
func labelsAt(f *elf.File) (at uint64) {
	section := func(name string) []byte {
		if s := f.Section(name); s != nil {
			data, _ := s.Data() // nothing is found in what cannot be read
			return data
		}
		return nil
	}
	d, err := dwarf.New(section(".debug_abbrev"), nil, nil, section(".debug_info"), nil, nil, nil, section(".debug_str"))
	if err != nil || d.AddSection(".debug_addr", section(".debug_addr")) != nil {
		return 0
	}
	known := false
	for r := d.Reader(); at == 0 || !known; {
		e, err := r.Next()
		if err != nil || e == nil {
			return 0
		}
		name, _ := e.Val(dwarf.AttrName).(string)
		if e.Tag == dwarf.TagCompileUnit && name == "runtime" { // that of all types
			continue
		}
		r.SkipChildren()
		if e.Tag != dwarf.TagStructType || name != "runtime.g" && name != "runtime/pprof.labelMap" {
			continue
		}
		t, err := d.Type(e.Offset)
		s, ok := t.(*dwarf.StructType)
		if err != nil || !ok {
			return 0
		}
		if known = known || isLabels(s); name == "runtime/pprof.labelMap" && !known {
			return 0
		}
		for _, field := range s.Field {
			if name == "runtime.g" && field.Name == "labels" && field.Type.Size() == 8 {
				at = uint64(field.ByteOffset)
			}
		}
	}
	return at
}

// isLabels reports whether a type is nothing but a slice of pairs of strings.
func isLabels(t dwarf.Type) bool {
	s := structOf(t)
	for s != nil && len(s.Field) == 1 {
		s = structOf(s.Field[0].Type)
	}
	if s == nil || !strings.HasPrefix(s.StructName, "[]") {
		return false
	}
	array, ok := s.Field[0].Type.(*dwarf.PtrType)
	if !ok {
		return false
	}
	pair := structOf(array.Type)
	return pair != nil && len(pair.Field) == 2 && pair.Field[0].Type.String() == "struct string" && pair.Field[1].Type.String() == "struct string"
}

// structOf returns the struct that a type is, or nil.
func structOf(t dwarf.Type) *dwarf.StructType {
	for {
		switch u := t.(type) {
		case *dwarf.StructType:
			return u
		case *dwarf.TypedefType:
			t = u.Type
		default:
			return nil
		}
	}
}
