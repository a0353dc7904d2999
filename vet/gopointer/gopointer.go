// Package gopointer defines an Analyzer that finds types which must not be outside the Go heap.
//
// # Analyzer gopointer
//
// gopointer: report types with Go pointers in memory outside the Go heap
//
// The collector does not look into memory outside the Go heap. So cheap.New, cheap.MakeSlice,
// cheap.Append, own.NewMem and the like panic when they run with a type that has Go pointers. The
// analyzer reports them before:
//
//	p := cheap.New[struct{ name string }](heap) // name is a string
//
// It says nothing about type parameters, which may be fine, and about types of C, in which the
// rules of cgo forbid Go pointers.
//
// The findings are of one kind: type.
package gopointer

import (
	"cmp"
	_ "embed"
	"go/ast"
	"go/token"
	"go/types"
	"maps"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis"

	"github.com/cheapgo/cheap/vet/internal/analyzer"
	"github.com/cheapgo/cheap/vet/internal/source"
)

//go:embed gopointer.go
var doc string

// Analyzer reports types that must not be outside the Go heap.
var Analyzer = analyzer.New("gopointer", doc, run)

var checked = map[string]bool{
	analyzer.Cheap + ".New": true, analyzer.Cheap + ".MakeSlice": true, analyzer.Cheap + ".Append": true,
	analyzer.Own + ".NewMem": true,
}

func run(pass *analysis.Pass, pkg *source.Package) {
	ids := slices.SortedFunc(maps.Keys(pkg.Info.Instances), func(a, b *ast.Ident) int { return cmp.Compare(a.Pos(), b.Pos()) })
	for _, id := range ids {
		inst := pkg.Info.Instances[id]
		f, ok := pkg.Info.Uses[id].(*types.Func)
		if !ok || f.Pkg() == nil || !checked[f.Pkg().Path()+"."+f.Name()] || inst.TypeArgs.Len() == 0 {
			continue
		}
		t := inst.TypeArgs.At(0)
		if path, what := find(t, 0); what != "" {
			pass.Report(analysis.Diagnostic{
				Pos: id.Pos(), End: end(pkg, id), Category: "type",
				Message: f.Pkg().Name() + "." + f.Name() + " panics: " + types.TypeString(t, types.RelativeTo(pkg.Types)) + path + " is a " + what + ", and memory outside the Go heap must not have Go pointers",
			})
		}
	}
}

// end is the end of the name with its type arguments.
func end(pkg *source.Package, id *ast.Ident) token.Pos {
	var n ast.Node = id
	for {
		switch p := pkg.Parent(n).(type) {
		case *ast.SelectorExpr, *ast.IndexExpr, *ast.IndexListExpr:
			n = p
		default:
			return n.End()
		}
	}
}

// find looks for the first part of a type that may be a Go pointer, and returns the path to it,
// and what it is.
func find(t types.Type, depth int) (path, what string) {
	if depth > 20 {
		return "", ""
	}
	switch t := types.Unalias(t).(type) {
	case *types.TypeParam:
		return "", ""
	case *types.Named:
		if strings.HasPrefix(t.Obj().Name(), "_Ctype_") {
			return "", ""
		}
	}
	switch u := t.Underlying().(type) {
	case *types.Struct:
		for f := range u.Fields() {
			if path, what := find(f.Type(), depth+1); what != "" {
				return "." + f.Name() + path, what
			}
		}
	case *types.Array:
		if u.Len() > 0 {
			path, what = find(u.Elem(), depth+1)
			return "[0]" + path, what
		}
	case *types.Pointer:
		elem := u.Elem()
		for {
			ptr, ok := elem.Underlying().(*types.Pointer)
			if !ok {
				break
			}
			elem = ptr.Elem()
		}
		if named, ok := types.Unalias(elem).(*types.Named); ok && strings.HasPrefix(named.Obj().Name(), "_Ctype_") || elem.Underlying() == types.Typ[types.Invalid] {
			return "", ""
		}
		return "", "pointer"
	case *types.Basic:
		switch u.Kind() {
		case types.UnsafePointer:
			return "", "unsafe.Pointer"
		case types.String:
			return "", "string"
		}
	case *types.Slice:
		return "", "slice"
	case *types.Map:
		return "", "map"
	case *types.Chan:
		return "", "channel"
	case *types.Signature:
		return "", "function"
	case *types.Interface:
		return "", "interface"
	}
	return "", ""
}
