package cfree

import (
	"go/ast"
	"go/types"

	"github.com/cheapgo/cheap/vet/internal/source"
)

const cheapPath = "github.com/cheapgo/cheap"

// fromCheap reports whether a call allocates a block of a heap of package cheap: by a function
// for the default heap, or by a method of a Heap. Blocks of an Arena end with the Arena.
func fromCheap(p *source.Package, f *types.Func, call *ast.CallExpr) bool {
	if f.Pkg() == nil || f.Pkg().Path() != cheapPath || p.Types.Path() == cheapPath {
		return false
	}
	switch f.Name() {
	case "Malloc", "Calloc", "Realloc":
		recv := f.Signature().Recv()
		return recv == nil || isHeap(recv.Type())
	case "New", "MakeSlice", "CString", "CBytes":
		if len(call.Args) == 0 || f.Signature().Recv() != nil {
			return false
		}
		return isDefault(p, call.Args[0])
	}
	return false
}

func isHeap(t types.Type) bool {
	name := source.TypeName(t)
	return name != nil && name.Name() == "Heap" && name.Pkg() != nil && name.Pkg().Path() == cheapPath
}

// isDefault reports whether e is cheap.Default(), a heap that is never dropped as a whole.
func isDefault(p *source.Package, e ast.Expr) bool {
	call, ok := ast.Unparen(e).(*ast.CallExpr)
	return ok && source.IsFunc(p.Callee(call), cheapPath, "Default")
}

// freesForCheap reports whether a function of package cheap frees the argument, or a method of
// that name of one of its allocators.
func freesForCheap(f *types.Func, arg int) bool {
	if f.Pkg() == nil || f.Pkg().Path() != cheapPath {
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
