package embedowner

import (
	_ "embed"
	"go/ast"
	"go/types"

	"golang.org/x/tools/go/analysis"

	"github.com/cheapgo/cheap/vet/internal/analyzer"
	"github.com/cheapgo/cheap/vet/internal/source"
)

//go:embed doc.go
var doc string

// Analyzer reports structs that embed an owner.
var Analyzer = analyzer.New("embedowner", doc, run)

// fields are the names that the message proposes for a field, by the name of its type.
var fields = map[string]string{"Handle": "h", "Number": "n"}

func run(pass *analysis.Pass, pkg *source.Package) {
	if pkg.Types.Path() == analyzer.Own {
		return
	}
	for _, f := range pkg.Files {
		ast.Inspect(f, func(n ast.Node) bool {
			st, ok := n.(*ast.StructType)
			if !ok {
				return true
			}
			for _, field := range st.Fields.List {
				if len(field.Names) > 0 {
					continue
				}
				if name := owner(pkg, field.Type); name != nil {
					analyzer.Report(pass, field.Type, "embedded", "the struct embeds an own.%s and exports its methods, Disown among them: write a field that is not exported: %s %s",
						name.Name(), fields[name.Name()], types.ExprString(field.Type))
				}
			}
			return true
		})
	}
}

// owner returns the type of package own that e is, by whatever name, or that e is a pointer to. It
// returns nil if e is another type.
func owner(pkg *source.Package, e ast.Expr) *types.TypeName {
	if name := source.TypeName(pkg.Info.TypeOf(e)); name != nil {
		return owning(name)
	}
	// An instance whose argument is a type of C is invalid, and so is an alias of it.
	name := named(pkg, e)
	for range 10 { // an alias of itself is no program
		if name == nil || owning(name) != nil || !name.IsAlias() {
			break
		}
		name = named(pkg, declared(pkg, name))
	}
	return owning(name)
}

// owning returns name if it is that of an owner, or nil.
func owning(name *types.TypeName) *types.TypeName {
	if name == nil || !analyzer.Declares(analyzer.Own, name) || fields[name.Name()] == "" {
		return nil
	}
	return name
}

// named returns the type name that an expression consists of, without pointers and arguments.
func named(pkg *source.Package, e ast.Expr) *types.TypeName {
	for {
		var id *ast.Ident
		switch x := e.(type) {
		case *ast.ParenExpr:
			e = x.X
			continue
		case *ast.StarExpr:
			e = x.X
			continue
		case *ast.IndexExpr:
			e = x.X
			continue
		case *ast.IndexListExpr:
			e = x.X
			continue
		case *ast.SelectorExpr:
			id = x.Sel
		case *ast.Ident:
			id = x
		default:
			return nil
		}
		name, _ := pkg.Info.Uses[id].(*types.TypeName)
		return name
	}
}

// declared returns what the package declares a type name to be, or nil.
func declared(pkg *source.Package, name *types.TypeName) (e ast.Expr) {
	for _, f := range pkg.Files {
		ast.Inspect(f, func(n ast.Node) bool {
			if spec, ok := n.(*ast.TypeSpec); ok && pkg.Info.Defs[spec.Name] == name {
				e = spec.Type
			}
			return e == nil
		})
	}
	return e
}
