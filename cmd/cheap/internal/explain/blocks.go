package explain

import "go/ast"

// madeHere is what a function of Go does with blocks of C, as its source says.
type madeHere struct {
	blocks bool // it frees blocks that it has made by malloc or calloc, and all of them
	texts  bool // it frees texts that it has made by CString or CBytes
	others bool // it frees what is from elsewhere, such as a result of C
}

// madeIn looks at the function around a line. It is false if the source is not here.
func (s *sources) madeIn(f frame) (m madeHere, found bool) {
	file := s.of(f.file)
	if file == nil {
		return m, false
	}
	for _, d := range file.file.Decls {
		decl, ok := d.(*ast.FuncDecl)
		if !ok || decl.Body == nil || !isFunction(f.function, decl) {
			continue
		}
		from, to := file.set.PositionFor(decl.Pos(), false).Line, file.set.PositionFor(decl.End(), false).Line
		if from <= int(f.line) && int(f.line) <= to {
			return madeInBody(decl.Body), true
		}
	}
	return m, false
}

// madeInBody tells variables apart by their names only. Two of one name, of which one is freed, count
// as one.
func madeInBody(body *ast.BlockStmt) (m madeHere) {
	by := map[string]string{} // the call of C that has made a variable
	freed := map[string]bool{}
	unnamed := false // a block that no variable has
	inVariable := map[ast.Expr]bool{}
	ast.Inspect(body, func(n ast.Node) bool {
		var names, values []ast.Expr
		switch of := n.(type) {
		case *ast.AssignStmt:
			names, values = of.Lhs, of.Rhs
		case *ast.ValueSpec:
			for _, name := range of.Names {
				names = append(names, name)
			}
			values = of.Values
		}
		for i, value := range values {
			if call := callOfC(value); call != nil && i < len(names) {
				made := nameOfCall(call)
				name, ok := names[i].(*ast.Ident)
				if !ok || by[name.Name] != "" && by[name.Name] != made {
					continue
				}
				by[name.Name] = made
				inVariable[call] = true
			}
		}
		return true
	})
	ast.Inspect(body, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || callOfC(call) != call {
			return true
		}
		switch nameOfCall(call) {
		case "malloc", "calloc":
			unnamed = unnamed || !inVariable[call]
		case "free":
			if len(call.Args) != 1 {
				return true
			}
			name, _ := withoutConversions(call.Args[0]).(*ast.Ident)
			if name == nil || by[name.Name] == "" {
				m.others = true
				return true
			}
			freed[name.Name] = true
		}
		return true
	})
	all := !unnamed
	for name, made := range by {
		switch made {
		case "malloc", "calloc":
			m.blocks = m.blocks || freed[name]
			all = all && freed[name]
		case "CString", "CBytes":
			m.texts = m.texts || freed[name]
		default:
			m.others = m.others || freed[name]
		}
	}
	m.blocks = m.blocks && all
	return m
}

// callOfC returns the call of C whose result an expression converts, nil if it does something else.
func callOfC(e ast.Expr) *ast.CallExpr {
	call, ok := withoutConversions(e).(*ast.CallExpr)
	if !ok {
		return nil
	}
	if of, ok := call.Fun.(*ast.SelectorExpr); ok {
		if pkg, ok := of.X.(*ast.Ident); ok && pkg.Name == "C" {
			return call
		}
	}
	return nil
}

// withoutConversions removes conversions to pointers: (*T)(x), unsafe.Pointer(x).
func withoutConversions(e ast.Expr) ast.Expr {
	for {
		e = ast.Unparen(e)
		call, ok := e.(*ast.CallExpr)
		if !ok || len(call.Args) != 1 {
			return e
		}
		switch fun := ast.Unparen(call.Fun).(type) {
		case *ast.StarExpr:
		case *ast.SelectorExpr:
			if pkg, ok := fun.X.(*ast.Ident); !ok || pkg.Name != "unsafe" || fun.Sel.Name != "Pointer" {
				return e
			}
		default:
			return e
		}
		e = call.Args[0]
	}
}
