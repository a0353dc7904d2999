package callbackcycle

import (
	"go/ast"
	"go/types"
	"slices"

	"golang.org/x/tools/go/analysis"

	"github.com/cheapgo/cheap/vet/internal/analyzer"
	"github.com/cheapgo/cheap/vet/internal/register"
	"github.com/cheapgo/cheap/vet/internal/source"
)

// Owns marks types that have a finalizer or a cleanup.
type Owns struct{}

// AFact marks facts.
func (*Owns) AFact() {}

func (*Owns) String() string { return "owns" }

// owners knows which types own something that the collector has to release.
type owners struct {
	pass  *analysis.Pass
	pkg   *source.Package
	names map[*types.TypeName]bool // of the package
}

// findOwners finds the types of the package that have a finalizer or a cleanup.
func findOwners(pass *analysis.Pass, pkg *source.Package) owners {
	o := owners{pass, pkg, map[*types.TypeName]bool{}}
	for _, call := range register.Calls(pkg) {
		if name := source.TypeName(pkg.Info.TypeOf(call.Ptr)); name != nil && name.Pkg() == pkg.Types {
			o.names[name] = true
		}
	}
	for _, f := range pkg.Files {
		ast.Inspect(f, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			st, ok := spec.Type.(*ast.StructType)
			if name, _ := pkg.Info.Defs[spec.Name].(*types.TypeName); ok && name != nil && slices.ContainsFunc(st.Fields.List, o.field) {
				o.names[name] = true
			}
			return true
		})
	}
	for name := range o.names {
		if obj := pkg.TypeObject(name); obj != nil && obj.Exported() && obj.Parent() == obj.Pkg().Scope() {
			pass.ExportObjectFact(obj, new(Owns))
		}
	}
	return o
}

// field reports whether a field is an owner of package own.
func (o owners) field(f *ast.Field) bool {
	e := f.Type
	if star, ok := e.(*ast.StarExpr); ok {
		e = star.X
	}
	return isOwner[analyzer.OwnType(o.pkg, e)]
}

// is reports whether a value of the type owns something, or points to one that does.
func (o owners) is(t types.Type) bool { return o.in(t, 0) }

func (o owners) in(t types.Type, depth int) bool {
	name := source.TypeName(t)
	if name != nil {
		if o.names[name] || name.Pkg() != nil && name.Pkg() != o.pkg.Types && o.pass.ImportObjectFact(name, new(Owns)) {
			return true
		}
		if analyzer.Declares(analyzer.Own, name) {
			return isOwner[name.Name()]
		}
	}
	if ptr, ok := t.Underlying().(*types.Pointer); ok {
		t = ptr.Elem()
	}
	st, ok := t.Underlying().(*types.Struct)
	if !ok || depth > 12 {
		return false
	}
	for f := range st.Fields() {
		if f.Embedded() && o.in(f.Type(), depth+1) {
			return true
		}
	}
	return false
}

var isOwner = map[string]bool{"Handle": true, "Number": true, "Mem": true, "Bytes": true, "Group": true}
