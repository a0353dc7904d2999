package main

import (
	"go/ast"
	"go/parser"
	"go/token"
)

// A stringCount says how many strings of C a module makes by C.CString, and how many of these within
// the arguments of a call of C, where no variable has them.
type stringCount struct{ all, inline int }

// countStrings returns the count for a file, and its lines.
func countStrings(name string) (stringCount, int, error) {
	set := token.NewFileSet()
	f, err := parser.ParseFile(set, name, nil, parser.SkipObjectResolution)
	if f == nil {
		return stringCount{}, 0, err
	}
	// A file with errors counts as far as it was read: cheapvet names it.
	var c stringCount
	ast.Inspect(f, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		switch ofC(call.Fun) {
		case "CString":
			c.all++
		case "":
		default:
			for _, arg := range call.Args {
				if ofC(converted(arg)) == "CString" {
					c.inline++
				}
			}
		}
		return true
	})
	return c, set.File(f.Pos()).LineCount(), nil
}

// ofC returns the name of a function of C that an expression names, "" if it names none.
func ofC(e ast.Expr) string {
	s, ok := e.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	if x, ok := s.X.(*ast.Ident); !ok || x.Name != "C" {
		return ""
	}
	return s.Sel.Name
}

// converted returns the function whose result an argument is, below conversions of its type.
func converted(e ast.Expr) ast.Expr {
	for {
		switch x := e.(type) {
		case *ast.ParenExpr:
			e = x.X
		case *ast.CallExpr:
			if ofC(x.Fun) == "CString" || len(x.Args) != 1 || !isType(x.Fun) {
				return x.Fun
			}
			e = x.Args[0]
		default:
			return e
		}
	}
}

// isType reports whether an expression that is called is a type, as far as the source says so:
// (*C.char) and unsafe.Pointer.
func isType(e ast.Expr) bool {
	if s, ok := e.(*ast.SelectorExpr); ok {
		x, ok := s.X.(*ast.Ident)
		return ok && x.Name == "unsafe" && s.Sel.Name == "Pointer"
	}
	_, ok := e.(*ast.ParenExpr)
	return ok
}
