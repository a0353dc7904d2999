package cfree

import (
	"go/ast"
	"go/types"

	"github.com/cheapgo/cheap/vet/internal/analyzer"
	"github.com/cheapgo/cheap/vet/internal/source"
)

// fromCheap reports whether a call allocates a block of the default heap of package cheap. Blocks
// of another heap, or of an Arena, may end with it.
func fromCheap(p *source.Package, f *types.Func, call *ast.CallExpr) bool {
	if !analyzer.Declares(analyzer.Cheap, f) || p.Types.Path() == analyzer.Cheap {
		return false
	}
	switch f.Name() {
	case "Malloc", "Calloc", "Realloc":
		return f.Signature().Recv() == nil
	case "New", "MakeSlice", "CString", "CBytes":
		if len(call.Args) == 0 || f.Signature().Recv() != nil {
			return false
		}
		return isDefault(p, call.Args[0])
	}
	return false
}

// isDefault reports whether e is cheap.Default(), a heap that is never dropped as a whole.
func isDefault(p *source.Package, e ast.Expr) bool {
	call, ok := ast.Unparen(e).(*ast.CallExpr)
	return ok && source.IsFunc(p.Callee(call), analyzer.Cheap, "Default")
}

// freesForCheap reports whether a function of package cheap frees the argument, or a method of
// that name of one of its allocators.
func freesForCheap(f *types.Func, arg int) bool {
	if !analyzer.Declares(analyzer.Cheap, f) {
		return false
	}
	switch f.Name() {
	case "Free", "Realloc":
		return arg == 0
	case "Delete", "FreeSlice", "Append":
		return arg == 1
	}
	return false
}
