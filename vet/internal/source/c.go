package source

import (
	"go/ast"
	"go/token"
	"go/types"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/cheapgo/cheap/vet/internal/ctext"
)

// C returns the name after "C." in an expression, or the empty string.
func (p *Package) C(e ast.Expr) string {
	sel, ok := ast.Unparen(e).(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	if id, ok := sel.X.(*ast.Ident); ok && id.Name == "C" && p.Cgo && p.isCgoImport(id) {
		return sel.Sel.Name
	}
	return ""
}

// isCgoImport reports whether an identifier C is the import, and not a variable of that name.
func (p *Package) isCgoImport(id *ast.Ident) bool {
	obj := p.Info.Uses[id]
	if obj == nil {
		return true
	}
	name, ok := obj.(*types.PkgName)
	return ok && name.Imported().Path() == "C"
}

// IsConversion reports whether a call converts its argument to another type. Whether C.name is a
// type is guessed from where else the name is used, and from the name.
func (p *Package) IsConversion(call *ast.CallExpr) bool {
	if len(call.Args) != 1 {
		return false
	}
	if p.Info.Types[call.Fun].IsType() {
		return true
	}
	switch fun := ast.Unparen(call.Fun).(type) {
	case *ast.StarExpr, *ast.ArrayType:
		return true
	case *ast.SelectorExpr:
		name := p.C(fun)
		return name != "" && p.IsCType(name)
	}
	return false
}

// Unsafe reports whether a call is of a function of package unsafe whose result points to the same memory, or has its address.
func (p *Package) Unsafe(call *ast.CallExpr) bool {
	sel, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr)
	if !ok {
		return false
	}
	b, ok := p.Info.Uses[sel.Sel].(*types.Builtin)
	return ok && b.Name() != "Sizeof" && b.Name() != "Offsetof" && b.Name() != "Alignof"
}

// Bare returns an expression without the parentheses and the conversions around it.
func (p *Package) Bare(e ast.Expr) ast.Expr {
	for {
		e = ast.Unparen(e)
		call, ok := e.(*ast.CallExpr)
		if !ok || !p.IsConversion(call) {
			return e
		}
		e = call.Args[0]
	}
}

// Dressed returns an expression with the parentheses and the conversions around it.
func (p *Package) Dressed(e ast.Expr) ast.Expr {
	for {
		outer, _ := p.Parent(e).(ast.Expr)
		ok := false
		if call, isCall := outer.(*ast.CallExpr); isCall {
			ok = call.Fun != e && p.IsConversion(call)
		} else {
			_, ok = outer.(*ast.ParenExpr)
		}
		if !ok {
			return e
		}
		e = outer
	}
}

// Variable returns the variable whose value an expression is, perhaps converted, or nil.
func (p *Package) Variable(n ast.Node) types.Object {
	if e, ok := n.(ast.Expr); ok {
		if v, ok := p.ObjectOf(p.Bare(e)).(*types.Var); ok {
			return v
		}
	}
	return nil
}

// Result returns the call of C whose result an expression is, perhaps converted, and the name of the function, or "".
func (p *Package) Result(e ast.Expr) (*ast.CallExpr, string) {
	if call, ok := p.Bare(e).(*ast.CallExpr); ok {
		return call, p.C(call.Fun)
	}
	return nil, ""
}

var basicC = regexp.MustCompile(`^(char|[su]?char|u?(short|int|long|longlong)|float|double|\w+_t|(struct|union|enum)_\w+|g(pointer|constpointer|char|boolean|u?int(8|16|32|64)?|size|float|double|u?long)|GL(u?int|enum|sizei|float)|GType)$`)

// IsCType reports whether C.name is a type, as far as can be seen.
func (p *Package) IsCType(name string) bool {
	if name == "free" || allocates(name) || strings.HasPrefix(name, "GoString") || name == "GoBytes" {
		return false // also where it is called as (C.free)(p)
	}
	return p.ctypes[name] || basicC.MatchString(name)
}

// IsPointer reports whether a type in the source may be that of a pointer to C memory.
func (p *Package) IsPointer(e ast.Expr) bool {
	switch t := ast.Unparen(e).(type) {
	case *ast.StarExpr:
		return p.C(t.X) != "" || p.IsPointer(t.X)
	case *ast.SelectorExpr:
		if name := p.C(t); name != "" { // a type of C with a name, such as xmlDocPtr, that is no number
			return !IsNumeric(name) && !strings.HasPrefix(name, "struct_") && !strings.HasPrefix(name, "union_")
		}
		if t.Sel.Name == "Pointer" {
			id, ok := t.X.(*ast.Ident)
			return ok && id.Name == "unsafe"
		}
	case *ast.Ident:
		return t.Name == "uintptr"
	}
	return false
}

// FileOf returns the file that a position is in, or nil.
func (p *Package) FileOf(pos token.Pos) *ast.File {
	i := slices.IndexFunc(p.Files, func(f *ast.File) bool { return f.FileStart <= pos && pos < f.FileEnd })
	if i < 0 {
		return nil
	}
	return p.Files[i]
}

// Imports reports whether a file imports a package under its own name.
func Imports(f *ast.File, path string) bool {
	return slices.ContainsFunc(f.Imports, func(s *ast.ImportSpec) bool { return s.Path.Value == `"`+path+`"` && s.Name == nil })
}

// IsStar reports whether a variable is declared as a pointer.
func (p *Package) IsStar(v types.Object) bool {
	p.once.Do(p.index)
	_, ok := p.declaredAs[v].(*ast.StarExpr)
	return ok
}

// IsNumber reports whether a variable is declared as a number of C.
func (p *Package) IsNumber(v types.Object) bool {
	p.once.Do(p.index)
	e, ok := p.declaredAs[v].(*ast.SelectorExpr)
	return ok && IsNumeric(p.C(e))
}

// numeric matches the names of types of C that are numbers, and hold no address.
var numeric = regexp.MustCompile(`^(enum_.*|_?[Bb]ool|[su]?char|u?(short|int|long|longlong)|float|double|(\w+_)?[gU]?u?int(8|16|32|64|ptr|max|_\w+)?(_t)?|s?size_t|time_t|off_t|g(boolean|u?int|s?size|float|double|u?long)|SDL_bool)$`)

// IsNumeric reports whether C.name is the type of a number.
func IsNumeric(name string) bool { return numeric.MatchString(name) }

// Points reports whether a variable or a field may have a pointer to C memory. Of another package only the type is known, which is
// invalid or made by cgo.
func (p *Package) Points(v types.Object) bool {
	p.once.Do(p.index)
	if e := p.declaredAs[v]; e != nil || v == nil {
		return v != nil && p.IsPointer(e)
	}
	switch t := v.Type().Underlying().(type) {
	case *types.Basic:
		return t.Kind() == types.Invalid || t.Kind() == types.UnsafePointer
	case *types.Pointer:
		name, ok := t.Elem().(*types.Named)
		return ok && strings.HasPrefix(name.Obj().Name(), "_Ctype_")
	}
	return false
}

// readC collects the names of C types, and what the comments above import "C" define.
func (p *Package) readC() {
	p.ctypes, p.cnames, p.cused = map[string]bool{}, map[string]bool{}, map[string]ctext.Func{}
	p.ctext = &ctext.Functions{Ends: frees, Takes: takesOver, Gives: given}
	for _, f := range p.Files {
		if !importsC(f) {
			continue
		}
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.Field:
				p.typePosition(n.Type)
			case *ast.ValueSpec:
				p.typePosition(n.Type)
			case *ast.TypeSpec:
				p.typePosition(n.Type)
			case *ast.CompositeLit:
				p.typePosition(n.Type)
			case *ast.ArrayType:
				p.typePosition(n.Elt)
			case *ast.MapType:
				p.typePosition(n.Value)
			case *ast.TypeAssertExpr:
				p.typePosition(n.Type)
			case *ast.SelectorExpr:
				if name := p.C(n); name != "" {
					p.cnames[name] = true
				}
			case *ast.CallExpr:
				if fun, ok := n.Fun.(*ast.ParenExpr); ok { // (C.name)(x)
					p.typePosition(fun)
				}
				switch fun := ast.Unparen(n.Fun).(type) {
				case *ast.StarExpr: // (*C.name)(x)
					p.typePosition(fun)
				case *ast.Ident:
					if (fun.Name == "new" || fun.Name == "make") && len(n.Args) > 0 {
						p.typePosition(n.Args[0])
					}
				}
			}
			return true
		})
		p.ctext.Add(Preamble(f), false)
	}
}

// Preamble returns the text of the comments above import "C" in a file.
func Preamble(f *ast.File) string {
	var b strings.Builder
	for _, decl := range f.Decls {
		decl, ok := decl.(*ast.GenDecl)
		if !ok {
			continue
		}
		for _, spec := range decl.Specs {
			spec, ok := spec.(*ast.ImportSpec)
			if !ok || spec.Path.Value != `"C"` {
				continue
			}
			doc := spec.Doc
			if doc == nil {
				doc = decl.Doc
			}
			if doc == nil {
				continue
			}
			for _, c := range doc.List {
				s := strings.TrimPrefix(c.Text, "//")
				b.WriteString(strings.TrimSuffix(strings.TrimPrefix(s, "/*"), "*/") + "\n")
			}
		}
	}
	return b.String()
}

func (p *Package) typePosition(e ast.Expr) {
	for {
		switch t := e.(type) {
		case *ast.ParenExpr:
			e = t.X
		case *ast.StarExpr:
			e = t.X
		case *ast.ArrayType:
			e = t.Elt
		case *ast.Ellipsis:
			e = t.Elt
		case *ast.SelectorExpr:
			if name := p.C(t); name != "" {
				p.ctypes[name] = true
			}
			return
		default:
			return
		}
	}
}

// maxFile is the size of the largest file in C that is read. An amalgamation is larger.
const maxFile = 1 << 20

// readOther reads the files in C and C++ beside those in Go.
func (p *Package) readOther(names []string, read func(string) ([]byte, error)) {
	for _, name := range names {
		switch filepath.Ext(name) {
		case ".c", ".h", ".m":
			p.readFile(name, false, read)
		case ".cc", ".cpp", ".cxx", ".hpp":
			p.readFile(name, true, read)
		}
	}
	for name := range p.cnames {
		if f, ok := p.ctext.Func(name); ok {
			p.cused[name] = f
		}
	}
	p.ctext = nil // the texts are large
}

func (p *Package) readFile(name string, plus bool, read func(string) ([]byte, error)) {
	if text, err := read(name); err == nil && len(text) <= maxFile {
		p.ctext.Add(string(text), plus)
	}
}

var (
	freeing    = regexp.MustCompile(`(?i)(free|realloc|dealloc|destroy|dispose|_take|take_|takes|adopt|steal|static_str|directly$|^set_?(string|array)s?$)`)
	notFreeing = regexp.MustCompile(`(?i)free(type|ze|nect|dom)`)
	releasing  = regexp.MustCompile(`(?i)(free|destroy|delete|dispose|release|unref|finali[sz]e|dealloc|drop|cleanup|close|unset|^(mp[zqf]|mpfr|mpc)_clear|_del$|_fini$|_term$|shutdown|deinit|uninit|disconnect|teardown|(txn|trans)\w*_?(commit|abort|rollback)$)`)
)

// frees reports whether a function of C frees what it is given, or takes it over, as far as its name tells.
func frees(name string) bool {
	return freeing.MatchString(notFreeing.ReplaceAllString(name, "")) || rules().enders[name]
}

// Frees reports whether the C function of that name frees the memory that it is given, or takes
// it over, as far as its name or its definition tell.
func (p *Package) Frees(name string) bool {
	return frees(name) || slices.Contains(p.cused[name].Frees, true)
}

// FreesArg reports whether the C function of that name frees the argument with an index, as far as its name or its
// definition tell.
func (p *Package) FreesArg(name string, index int) bool {
	f := p.cused[name]
	return frees(name) || index < len(f.Frees) && f.Frees[index] || p.Declared(name).Takes(index)
}

// KeepsArg reports whether the definition of the C function of that name stores the argument where others find it, or a comment
// or the signature says so.
func (p *Package) KeepsArg(name string, index int) bool {
	f := p.cused[name]
	return index < len(f.Keeps) && f.Keeps[index] || p.Takes(name, index) || slices.ContainsFunc(rules().keepers[name], func(r Rule) bool { return r.At == index+1 && r.unless == 0 }) || p.Declared(name).Keeps(index) || p.Declared(name).opaque(index)
}

// ReturnsArg reports whether the C function of that name returns the argument, as far as its definition tells.
func (p *Package) ReturnsArg(name string, index int) bool {
	f, ok := p.cused[name]
	return index < len(f.Returns) && f.Returns[index] || !ok && index == 0 && returnsFirst.MatchString(name)
}

// returnsFirst matches the names of functions of the C library that return their first argument.
var returnsFirst = regexp.MustCompile(`^(mem(set|cpy|move)|str(n?cpy|n?cat))$`)

// Defined returns what the definition of the C function of that name says, if there is one in the package.
func (p *Package) Defined(name string) (f ctext.Func, ok bool) {
	f, ok = p.cused[name]
	return f, ok
}

// Releases reports whether the C function of that name releases the object that it is given, as
// far as its name or its definition tell.
func (p *Package) Releases(name string) bool {
	return releasing.MatchString(notFreeing.ReplaceAllString(name, "")) || p.Ends(name) || slices.Contains(p.cused[name].Frees, true)
}

// Allocates reports whether the result of the C function of that name must be freed with C.free.
func (p *Package) Allocates(name string) bool {
	return allocates(name) || p.cused[name].Allocates || p.Declared(name).Made()
}
