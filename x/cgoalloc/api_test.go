//go:build cgo

package cgoalloc

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/cheapgo/cheap/internal/test/testcall"
)

// The signatures of the original that Go code outside of the package can name.
var (
	_ Allocator           = (*DefaultAllocator)(nil)
	_ Allocator           = (*ArenaAllocator)(nil)
	_ Allocator           = (*FallbackAllocator)(nil)
	_ Allocator           = FixedBlockAllocator(nil)
	_ FixedBlockAllocator = (*fixedBlockAlloc)(nil)

	_ func(Allocator) *ArenaAllocator                                         = CreateArenaAllocator
	_ func(FixedBlockAllocator, Allocator) *FallbackAllocator                 = CreateFallbackAllocator
	_ func(Allocator, uintptr, uintptr, uintptr) (FixedBlockAllocator, error) = CreateFixedBlockAllocator
	_ func(Allocator, []byte) unsafe.Pointer                                  = CBytes
	_ interface{ FreeAll() }                                                  = (*ArenaAllocator)(nil)
	_                                                                         = DefaultAllocator{}
	_                                                                         = ArenaAllocator{}
	_                                                                         = FallbackAllocator{}
)

// TestAPI compares what the package exports with what the original does, which
// is recorded in testdata.
func TestAPI(t *testing.T) {
	recorded, err := os.ReadFile("testdata/api-v1.2.1.txt")
	testcall.Must(t, err)
	want := strings.Split(strings.TrimSpace(string(recorded)), "\n")
	got := exported(t, ".")
	for _, line := range want {
		if !slices.Contains(got, line) {
			t.Errorf("missing: %s", line)
		}
	}
	for _, line := range got {
		if !slices.Contains(want, line) {
			t.Errorf("not in the original: %s", line)
		}
	}
}

// exported lists the exported declarations of the package in dir, as built with
// cgo: a line for each name, with the types of parameters, results and fields.
func exported(t *testing.T, dir string) []string {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	testcall.Must(t, err)
	var list []string
	fset := token.NewFileSet()
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") || filepath.Base(name) == "nocgo.go" {
			continue
		}
		file, err := parser.ParseFile(fset, name, nil, parser.SkipObjectResolution)
		testcall.Must(t, err)
		for _, decl := range file.Decls {
			switch decl := decl.(type) {
			case *ast.FuncDecl:
				if line, ok := exportedFunc(decl); ok {
					list = append(list, line)
				}
			case *ast.GenDecl:
				for _, spec := range decl.Specs {
					list = append(list, exportedSpec(decl.Tok, spec)...)
				}
			}
		}
	}
	slices.Sort(list)
	return list
}

func exportedFunc(decl *ast.FuncDecl) (line string, ok bool) {
	line = "func "
	if decl.Recv != nil {
		recv := types.ExprString(decl.Recv.List[0].Type)
		if !ast.IsExported(strings.TrimPrefix(recv, "*")) {
			return "", false
		}
		line += "(" + recv + ") "
	}
	return line + decl.Name.Name + signature(decl.Type), decl.Name.IsExported()
}

func exportedSpec(tok token.Token, spec ast.Spec) (list []string) {
	switch spec := spec.(type) {
	case *ast.ValueSpec:
		for _, name := range spec.Names {
			if name.IsExported() {
				list = append(list, tok.String()+" "+name.Name)
			}
		}
	case *ast.TypeSpec:
		if !spec.Name.IsExported() {
			return nil
		}
		kind := types.ExprString(spec.Type)
		switch typ := spec.Type.(type) {
		case *ast.StructType:
			kind = "struct"
			for _, f := range typ.Fields.List {
				for _, name := range f.Names {
					if name.IsExported() {
						list = append(list, "field "+spec.Name.Name+"."+name.Name+" "+types.ExprString(f.Type))
					}
				}
			}
		case *ast.InterfaceType:
			kind = "interface"
			for _, m := range typ.Methods.List {
				if len(m.Names) == 0 {
					list = append(list, "embedded "+spec.Name.Name+"."+types.ExprString(m.Type))
				} else if m.Names[0].IsExported() {
					list = append(list, "method "+spec.Name.Name+"."+m.Names[0].Name+signature(m.Type.(*ast.FuncType)))
				}
			}
		}
		list = append(list, "type "+spec.Name.Name+" "+kind)
	}
	return list
}

// signature returns the parameters and results of a function, without names.
func signature(f *ast.FuncType) string {
	fields := func(l *ast.FieldList) string {
		var all []string
		if l != nil {
			for _, f := range l.List {
				for range max(1, len(f.Names)) {
					all = append(all, types.ExprString(f.Type))
				}
			}
		}
		return "(" + strings.Join(all, ", ") + ")"
	}
	return fields(f.Params) + fields(f.Results)
}
