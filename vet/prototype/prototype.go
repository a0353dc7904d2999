// Package prototype defines an Analyzer that finds functions of C which package libc calls with
// another prototype than they have.
//
// # Analyzer prototype
//
// prototype: report functions of C that package libc calls with another prototype
//
// The functions of package libc get the address of a function of C, whose type neither cgo nor the
// linker compares with the one that it is called as:
//
//	Release: libc.Destructor(unsafe.Pointer(C.journal_close)) // void journal_close(journal *, int flags)
//
// C.journal_close finds whatever is in the register of its second parameter. The remedy is a
// function of C around it, which has the prototype that the documentation of libc.Destructor says.
//
// The analyzer looks at the first argument of Destructor, StatusDestructor, ContextDestructor and
// Constructor, also through a parameter of a function of the same package. It looks for the
// declaration above import "C", and in the headers that are included there: in the folder of the
// package, those of -I in #cgo lines, and those of the system. It follows no condition and no
// macro. So it says nothing about a function without a declaration there, or with one that suits,
// and about types that are not plain.
//
// The findings are of these kinds:
//
//   - parameters: the function has more or fewer parameters than are passed.
//   - argument: a parameter is not a pointer.
//   - result: the result is not an int (StatusDestructor), not a pointer (Constructor), or is a
//     structure or a floating-point number.
package prototype

import (
	_ "embed"
	"fmt"
	"go/ast"
	"go/types"
	"math"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis"

	"github.com/cheapgo/cheap/vet/internal/analyzer"
	"github.com/cheapgo/cheap/vet/internal/source"
)

//go:embed prototype.go
var doc string

// Analyzer reports functions of C that package libc calls with another prototype.
var Analyzer = analyzer.New("prototype", doc, run)

// A use is how package libc calls a function.
type use struct {
	params  int
	results []kind
	result  string // what the result is not, or is
}

var anyResult = []kind{unknown, void, pointer, word, integer, other}

var uses = map[string]use{
	"Destructor":        {1, anyResult, "a structure or a floating-point number"},
	"ContextDestructor": {2, anyResult, "a structure or a floating-point number"},
	"StatusDestructor":  {1, []kind{unknown, integer}, "no int"},
	"Constructor":       {1, []kind{unknown, pointer, word}, "no pointer"},
}

type checker struct {
	*analysis.Pass
	pkg  *source.Package
	text string // of C, without comments, directives and strings
}

func run(pass *analysis.Pass, pkg *source.Package) {
	if !pkg.Cgo || !analyzer.Imports(pkg.Types, analyzer.Cheap+"/libc") {
		return
	}
	c := &checker{Pass: pass, pkg: pkg}
	c.calls(func(call *ast.CallExpr, f *types.Func) {
		if of, ok := uses[f.Name()]; ok && analyzer.Declares(analyzer.Cheap+"/libc", f) && len(call.Args) > 0 {
			c.check(call.Args[0], f.Name(), of, 0)
		}
	})
}

// calls calls f with the calls of functions of Go.
func (c *checker) calls(f func(*ast.CallExpr, *types.Func)) {
	for _, file := range c.pkg.Files {
		ast.Inspect(file, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok {
				if fn := c.pkg.Callee(call); fn != nil {
					f(call, fn)
				}
			}
			return true
		})
	}
}

// check looks at an expression that is the address of a function of C, or a parameter that is.
func (c *checker) check(e ast.Expr, by string, of use, depth int) {
	if call, ok := ast.Unparen(e).(*ast.CallExpr); ok && len(call.Args) == 1 && c.pkg.IsConversion(call) {
		e = call.Args[0]
	}
	if name := c.pkg.C(e); name != "" {
		if kind, message := c.compare(name, by, of); kind != "" {
			analyzer.Report(c.Pass, e, kind, "%s: write a function of C around it, with the prototype that libc.%s has in its documentation", message, by)
		}
		return
	}
	v, _ := c.pkg.ObjectOf(e).(*types.Var)
	if v == nil || depth == 3 {
		return
	}
	c.calls(func(call *ast.CallExpr, f *types.Func) {
		for i := range min(f.Signature().Params().Len(), len(call.Args)) {
			if f.Signature().Params().At(i) == v {
				c.check(call.Args[i], by, of, depth+1)
			}
		}
	})
}

// compare returns what differs in all declarations of a function.
func (c *checker) compare(name, by string, of use) (kind, message string) {
	for _, d := range c.declarations(name) {
		if kind, message = c.differs(name, by, of, d); kind == "" {
			return "", ""
		}
	}
	return kind, message
}

func (c *checker) differs(name, by string, of use, d declaration) (kind, message string) {
	if k := c.kind(d.result); !slices.Contains(of.results, k) {
		return "result", fmt.Sprintf("the result of C.%s is %s (%s)", name, of.result, d.result)
	}
	switch n := len(d.params); {
	case n == of.params:
	case n == 0:
		return "parameters", fmt.Sprintf("C.%s has no parameter, and libc.%s passes %d", name, by, of.params)
	case n == 1:
		return "parameters", fmt.Sprintf("C.%s has 1 parameter, and libc.%s passes %d", name, by, of.params)
	default:
		return "parameters", fmt.Sprintf("C.%s has %d parameters, and libc.%s passes %d", name, n, by, of.params)
	}
	for i, p := range d.params {
		if k := c.kind(p); k != unknown && k != pointer && k != word {
			return "argument", fmt.Sprintf("parameter %d of C.%s is no pointer (%s)", i+1, name, p)
		}
	}
	return "", ""
}

// A declaration has the text of a function's result and of its parameters.
type declaration struct {
	result string
	params []string
}

// statement matches what stands before a call, or before the name of a type.
var statement = regexp.MustCompile(`=|\b(return|if|else|while|for|switch|case|do|goto|sizeof|typedef)\b`)

// declarations returns the declarations and definitions of a function, but for those without a prototype.
func (c *checker) declarations(name string) (list []declaration) {
	if c.text == "" {
		c.text = source.Blank(c.pkg.Headers(math.MaxInt))
	}
	for _, m := range regexp.MustCompile(name+`\s*\(`).FindAllStringIndex(c.text, -1) {
		before := c.text[strings.LastIndexAny(c.text[:m[0]], ";{}")+1 : m[0]]
		result := strings.Join(strings.Fields(before), " ")
		if result == "" || wordAtEnd.MatchString(before) || statement.MatchString(result) || strings.Count(result, "(") != strings.Count(result, ")") {
			continue
		}
		switch params, _ := source.Parameters(c.text[m[1]:]); {
		case len(params) == 1 && params[0] == "":
		case len(params) == 1 && c.kind(params[0]) == void:
			list = append(list, declaration{result, nil})
		default:
			list = append(list, declaration{result, params})
		}
	}
	return list
}

var wordAtEnd = regexp.MustCompile(`\w$`)

// A kind is what a type is, as far as the way matters in which it is passed.
type kind int

const (
	unknown kind = iota
	void
	pointer
	word    // an integer that is as large as a pointer
	integer // as large as an int
	other   // another integer
	odd     // a structure or a floating-point number
)

// plain are the types that are known from a word, those first that decide with others beside them.
var plain = []struct {
	kind  kind
	words *regexp.Regexp
}{
	{pointer, regexp.MustCompile(`[*\[]`)},
	{odd, regexp.MustCompile(`\b(struct|union|float|double)\b`)},
	{word, regexp.MustCompile(`\bu?intptr_t\b`)},
	{other, regexp.MustCompile(`\b(char|short|long|bool|_Bool|s?size_t|u?int(8|16|64)_t)\b`)},
	{integer, regexp.MustCompile(`\b(int|signed|unsigned|enum|u?int32_t)\b`)},
	{void, regexp.MustCompile(`\bvoid\b`)},
}

// kind returns the kind of a type in a text that may have other words beside it: macros, qualifiers and
// the name of a parameter. What is behind the last parenthesis decides, if that is a type.
func (c *checker) kind(text string) kind { return c.kindAt(text, 0) }

func (c *checker) kindAt(text string, depth int) kind {
	if i := strings.LastIndex(text, ")"); i >= 0 {
		if k := c.kindAt(text[i+1:], depth); k != unknown {
			return k
		}
	}
	for _, p := range plain {
		if p.words.MatchString(text) {
			return p.kind
		}
	}
	for _, name := range words.FindAllString(text, -1) {
		m := regexp.MustCompile(`\btypedef\s+([^;{}()]*)\b` + name + `\s*;`).FindStringSubmatch(c.text)
		if m != nil && depth < 5 {
			return c.kindAt(m[1], depth+1)
		}
	}
	return unknown
}

var words = regexp.MustCompile(`[A-Za-z_]\w*`)
