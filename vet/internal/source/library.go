package source

import (
	_ "embed"
	"go/ast"
	"slices"
	"strconv"
	"strings"
	"sync"
)

//go:embed library.txt
var library string

// A Rule says what has to release what a function of a library gives.
type Rule struct {
	By    []string // one of these functions; none if it belongs to something else
	At    int      // the argument by which it gives it, from 1 on, 0 for its result, -1 for any
	Fails bool     // it gives it only if it fails
	Both  bool     // it gives it if it fails as well

	unless int // it gives nothing if this argument is not nil, from 1 on, or 0
}

// rules has what library.txt says of makers, what releases, and what keeps an argument or takes it over.
var rules = sync.OnceValue(func() (all struct {
	makers, keepers, takers map[string][]Rule
	enders                  map[string]bool
}) {
	all.makers, all.keepers, all.takers, all.enders = map[string][]Rule{}, map[string][]Rule{}, map[string][]Rule{}, map[string]bool{}
	for line := range strings.Lines(library) {
		line, _, _ = strings.Cut(line, "#")
		for group := range strings.SplitSeq(line, ";") {
			names, pattern, ok := strings.Cut(strings.TrimSpace(group), ": ")
			if !ok {
				names, pattern = "*", names
			}
			for name := range strings.SplitSeq(names, ",") {
				by, given, _ := strings.Cut(strings.ReplaceAll(pattern, "*", name), " ")
				for word := range strings.FieldsSeq(given) {
					r := Rule{By: strings.Split(by, "|")}
					word, r.Fails = strings.CutSuffix(word, "!")
					word, r.Both = strings.CutSuffix(word, "&")
					word, unless, _ := strings.Cut(word, "?")
					word, at, _ := strings.Cut(word, ":")
					r.unless, _ = strconv.Atoi(unless)
					r.At, _ = strconv.Atoi(at)
					if strings.HasPrefix(word, "*") {
						r.At = -1
					}
					switch by {
					case "+":
						all.keepers[word] = append(all.keepers[word], r)
						continue
					case ">":
						all.takers[word] = append(all.takers[word], r)
						continue
					case "-":
						r.By = nil
					}
					for _, by := range r.By {
						all.enders[by] = true
					}
					all.makers[word] = append(all.makers[word], r)
				}
			}
		}
	}
	return all
})

// allocates reports whether the result of a function of a library must be freed with C.free, whatever it is given.
func allocates(name string) bool {
	return slices.ContainsFunc(rules().makers[name], func(r Rule) bool { return r.At == 0 && r.unless == 0 && slices.Equal(r.By, []string{"free"}) })
}

// given returns the arguments, from 1 on, and 0 for the result, by which a function of a library gives what something has to release.
func given(name string) (list []int) {
	for _, r := range rules().makers[name] {
		if r.unless == 0 && r.By != nil {
			list = append(list, r.At)
		}
	}
	return list
}

// Ends reports whether a function of a library releases its first argument.
func (p *Package) Ends(name string) bool {
	_, own := p.cused[name]
	return rules().enders[name] && !own
}

// Listed reports whether a library says what a function gives, of some calls at least.
func (p *Package) Listed(name string) bool { return rules().makers[name] != nil }

// Rule returns what a library says of what a call of C gives by an argument, from 1 on, or of its result, for 0. A definition in the
// package may pass to a function of a library what it is given, or return what one returns; if it does not, there is no rule.
func (p *Package) Rule(call *ast.CallExpr, at int) *Rule {
	makers, name := rules().makers, p.C(call.Fun)
	list := makers[name]
	if f, ok := p.cused[name]; ok {
		list = nil
		for _, g := range f.Gives {
			for _, r := range makers[g.By] {
				if r.At == g.At && r.unless == 0 && r.By != nil && g.Param == at {
					r.At = at
					return &r
				}
			}
		}
	}
	if at > 0 {
		list = slices.Concat(list, makers[p.typeOfVar(call.Args[at-1])])
	}
	for _, r := range list {
		if (r.At == at || r.At < 0) && r.of(call) {
			return &r
		}
	}
	return nil
}

// of reports whether a rule holds for a call.
func (r Rule) of(call *ast.CallExpr) bool {
	return r.unless == 0 || r.unless <= len(call.Args) && isNil(call.Args[r.unless-1])
}

// takesOver reports whether a function of a library takes an argument over, from 0 on.
func takesOver(name string, arg int) bool {
	return slices.ContainsFunc(rules().takers[name], func(r Rule) bool { return r.At == arg+1 })
}

// Takes reports whether a function of C takes an argument over, from 0 on, unless it fails: its definition or a library says so.
func (p *Package) Takes(name string, arg int) bool {
	f, own := p.cused[name]
	return arg < len(f.Takes) && f.Takes[arg] || !own && takesOver(name, arg)
}

// Keeps reports whether a library says that a function keeps an argument of a call of C, from 1 on.
func (p *Package) Keeps(call *ast.CallExpr, at int) bool {
	_, own := p.cused[p.C(call.Fun)]
	return !own && slices.ContainsFunc(rules().keepers[p.C(call.Fun)], func(r Rule) bool { return r.At == at && r.of(call) })
}

func isNil(e ast.Expr) bool {
	id, ok := e.(*ast.Ident)
	return ok && id.Name == "nil"
}

// typeOfVar returns the type *C.T of a variable whose address an expression is, as *T, or "".
func (p *Package) typeOfVar(e ast.Expr) string {
	addr, ok := p.Bare(e).(*ast.UnaryExpr)
	if !ok {
		return ""
	}
	if v := p.ObjectOf(addr.X); v != nil {
		p.once.Do(p.index)
		if star, ok := p.declaredAs[v].(*ast.StarExpr); ok {
			return "*" + p.C(star.X)
		}
	}
	return ""
}
