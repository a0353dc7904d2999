// Package escapes defines an Analyzer that finds pointers which are kept longer than they are
// valid.
//
// # Analyzer escapes
//
// escapes: report a pointer of Use that is kept beyond the function
//
// Use and TryUse of an owner of package own pass what it owns to a function, and hold back its
// release until the function returns. A copy of the pointer that is kept is not protected:
//
//	var p *point
//	mem.Use(func(q *point) { p = q }) // mem may be released from here on
//	p.x = 1
//
// The analyzer reports a function for Use that stores its argument outside of itself, sends or
// returns it, or starts a goroutine with it. It says nothing about values that are read through the
// pointer, and about functions that the argument is passed to.
//
// The findings are of one kind: kept.
package escapes

import (
	_ "embed"
	"go/ast"
	"go/types"

	"golang.org/x/tools/go/analysis"

	"github.com/cheapgo/cheap/vet/internal/analyzer"
	"github.com/cheapgo/cheap/vet/internal/source"
	"github.com/cheapgo/cheap/vet/internal/uses"
)

//go:embed escapes.go
var doc string

// Analyzer reports pointers that are kept longer than they are valid.
var Analyzer = analyzer.New("escapes", doc, run)

func run(pass *analysis.Pass, pkg *source.Package) {
	if !analyzer.Imports(pkg.Types, analyzer.Own) {
		return
	}
	handles := handleFields(pkg)
	byNode := map[ast.Node]*uses.Unit{}
	byFunc := map[*types.Func]*uses.Unit{}
	units := uses.Units(pkg)
	for _, u := range units {
		byNode[u.Node] = u
		if u.Obj != nil {
			byFunc[u.Obj] = u
		}
	}
	for _, u := range units {
		u.Own(func(n ast.Node) {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) != 1 || !isUse(pkg, call, handles) {
				return
			}
			f := byNode[ast.Unparen(call.Args[0])]
			if f == nil {
				f = byFunc[pkg.Func(call.Args[0])]
			}
			if f != nil {
				check(pass, f)
			}
		})
	}
}

// handleFields returns the variables and fields whose types are of package own. Those with a type
// of C as a parameter are invalid, so the source is read.
func handleFields(pkg *source.Package) map[types.Object]bool {
	handles := map[types.Object]bool{}
	of := func(names []*ast.Ident, t ast.Expr) {
		if star, ok := t.(*ast.StarExpr); ok {
			t = star.X
		}
		if index, ok := t.(*ast.IndexExpr); ok {
			t = index.X
		}
		sel, ok := t.(*ast.SelectorExpr)
		if !ok {
			return
		}
		if !analyzer.Declares(analyzer.Own, pkg.Info.Uses[sel.Sel]) {
			return
		}
		for _, name := range names {
			handles[pkg.Info.Defs[name]] = true
		}
	}
	for _, f := range pkg.Files {
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.Field:
				of(n.Names, n.Type)
			case *ast.ValueSpec:
				of(n.Names, n.Type)
			}
			return true
		})
	}
	return handles
}

// isUse reports whether a call is one of Use or TryUse of package own.
func isUse(pkg *source.Package, call *ast.CallExpr, handles map[types.Object]bool) bool {
	sel, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr)
	if !ok || sel.Sel.Name != "Use" && sel.Sel.Name != "TryUse" {
		return false
	}
	if f, ok := pkg.Info.Uses[sel.Sel].(*types.Func); ok {
		return analyzer.Declares(analyzer.Own, f)
	}
	switch x := ast.Unparen(sel.X).(type) {
	case *ast.Ident:
		return handles[pkg.Info.Uses[x]]
	case *ast.SelectorExpr:
		return handles[pkg.Info.Uses[x.Sel]]
	}
	return false
}

// check reports where a function keeps its parameter.
func check(pass *analysis.Pass, u *uses.Unit) {
	params := u.Params()
	if len(params) == 0 || params[len(params)-1] == nil {
		return
	}
	v := params[len(params)-1]
	if !pointer(v.Type()) {
		return
	}
	report := func(n ast.Node) {
		analyzer.Report(pass, n, "kept", "%s is kept here, and is valid only until the function for Use returns", v.Name())
	}
	u.Own(func(n ast.Node) {
		if g, ok := n.(*ast.GoStmt); ok && u.Mentions(g, v) {
			report(g)
		}
	})
	fate := u.Fate(v, false, func(*uses.Unit, *ast.CallExpr, *types.Func, int, bool) uses.Role { return uses.Looks })
	for _, use := range append(fate.Uses, fate.Inner...) {
		switch use.Role {
		case uses.Keeps, uses.Leaves:
			if call, ok := use.Node.(*ast.CallExpr); ok {
				if _, ok := u.Parent(call).(*ast.GoStmt); ok || u.C(call.Fun) != "" {
					continue // reported, or C may count its own reference
				}
			}
			report(use.Node)
		}
	}
}

// pointer reports whether a value of a type leads to memory: all but numbers do. Types of C are
// invalid.
func pointer(t types.Type) bool {
	b, ok := t.Underlying().(*types.Basic)
	return !ok || b.Info()&types.IsNumeric == 0
}
