// Package ctext reads definitions of functions in C, as far as one can without a compiler: which
// parameters a function frees or keeps, and whether it returns what malloc has returned.
//
// It sees tokens. It follows no macro, and no type. So it says of a function what its text says
// plainly, and nothing of the others.
package ctext

import (
	"regexp"
	"slices"
)

// A Func is what the text of a function says.
type Func struct {
	// Allocates is true if the function returns memory that it got from malloc or one of its kin, and nothing else has it.
	Allocates bool

	// Frees, Keeps and Returns have an entry for each parameter. A function frees one that it passes to a function that does so. It
	// keeps one that it stores where others find it, or passes on together with a function that frees it, and one into which its
	// result points. It takes one over that it passes on together with free itself.
	Frees, Keeps, Returns, Takes []bool
	Outside                      []bool // it keeps the parameter in a variable outside of it
	Passes                       []bool // it passes the parameter to a function that may keep it, for all that is known
	Makes                        []bool // it puts memory that it has allocated where the parameter points to, and nothing else
	Calls                        bool   // something other than what allocates
	News                         bool   // it returns what new of C++ has made
	Gives                        []Give
}

// A Give is what a function gives by a parameter, from 1 on, or by its result, 0: what another one gives it, by its argument At.
type Give struct {
	Param int
	By    string
	At    int
}

// Functions are the definitions of a package, by their names.
type Functions struct {
	// Ends reports whether the function of that name, whose definition is not known, frees what it is given.
	Ends func(name string) bool

	// Takes reports whether the function of that name, whose definition is not known, takes an argument over, from 0 on.
	Takes func(name string, arg int) bool

	// Gives returns by which arguments, from 1 on, and with 0 by its result, the function of that name gives what its caller has to release.
	Gives func(name string) []int

	defs map[string][]definition
	done map[depthOf]Func
}

// A depthOf is a function at a depth: what is seen of it depends on how far others are followed.
type depthOf struct {
	name  string
	depth int
}

// A definition is that of a function.
type definition struct {
	before string // it ends before the name
	params string
	text   string // it begins with the brace of the body
	plus   bool   // it is C++, where an assignment may copy
}

var head = regexp.MustCompile(`(\w+)\s*\(([^()]*(?:\([^()]*\)[^()]*)*)\)\s*\{`)

// Add adds the definitions of a text in C, or with plus in C++.
func (f *Functions) Add(text string, plus bool) {
	if f.defs == nil {
		f.defs, f.done = map[string][]definition{}, map[depthOf]Func{}
	}
	for _, m := range head.FindAllStringSubmatchIndex(text, -1) {
		name := text[m[2]:m[3]]
		if keyword[name] {
			continue
		}
		f.defs[name] = append(f.defs[name], definition{text[max(0, m[2]-100):m[2]], text[m[4]:m[5]], text[m[1]-1:], plus})
	}
}

// maxDepth is how many definitions are looked at one within the other.
const maxDepth = 3

// Func returns what is known of a function. ok is false if there is no definition. Of a function with several
// definitions, such as one for each system, one must free or keep a parameter, and all must allocate.
func (f *Functions) Func(name string) (fn Func, ok bool) {
	return f.at(name, maxDepth)
}

func (f *Functions) at(name string, depth int) (all Func, ok bool) {
	if fn, ok := f.done[depthOf{name, depth}]; ok {
		return fn, true
	}
	defs := f.defs[name]
	if len(defs) == 0 || depth == 0 {
		return Func{}, false
	}
	for i, d := range defs {
		b := f.body(d, depth)
		b.name = name
		fn := Func{Allocates: b.allocates(d)}
		for _, p := range parameters(d.params) {
			frees, keeps, returns, takes, passes := b.fate(p)
			_, outside := b.stored(b.same(p), "")
			fn.Outside, fn.Passes, fn.Makes = append(fn.Outside, outside), append(fn.Passes, passes), append(fn.Makes, b.makes(p))
			fn.Frees, fn.Keeps, fn.Returns, fn.Takes = append(fn.Frees, frees), append(fn.Keeps, keeps), append(fn.Returns, returns), append(fn.Takes, takes)
		}
		for i := range b.tokens {
			c, ok := b.callAt(i)
			fn.Calls, fn.News = fn.Calls || ok && !allocators[c.name], fn.News || b.at(i) == "return" && b.at(i+1) == "new"
			fn.Gives = append(fn.Gives, b.gives(c, ok)...)
		}
		if i == 0 {
			all = fn
			continue
		}
		all.Allocates, all.Calls, all.News = all.Allocates && fn.Allocates, all.Calls || fn.Calls, all.News || fn.News
		all.Frees, all.Keeps = either(all.Frees, fn.Frees), either(all.Keeps, fn.Keeps)
		all.Returns, all.Takes = either(all.Returns, fn.Returns), either(all.Takes, fn.Takes)
		all.Outside, all.Passes, all.Makes = either(all.Outside, fn.Outside), either(all.Passes, fn.Passes), both(all.Makes, fn.Makes)
	}
	f.done[depthOf{name, depth}] = all
	return all, true
}

// gives returns what a call gives to the caller of the body, which releases nothing itself.
func (b *body) gives(c call, ok bool) (list []Give) {
	if !ok || b.Gives == nil || has(b.tokens, "static") || slices.ContainsFunc(b.tokens, b.Ends) {
		return nil
	}
	for _, at := range b.Gives(c.name) {
		switch {
		case at == 0 && b.returns(c.name):
			list = append(list, Give{0, c.name, at})
		case 0 < at && at <= len(c.args) && len(c.args[at-1]) == 1 && slices.Contains(b.params, c.args[at-1][0]):
			list = append(list, Give{1 + slices.Index(b.params, c.args[at-1][0]), c.name, at})
		}
	}
	return list
}

// returns reports whether a body returns the result of a call of a function, itself or by a variable.
func (b *body) returns(name string) bool {
	for i, t := range b.tokens {
		if t != "return" {
			continue
		}
		e := plain(b.tokens[i+1 : i+1+max(0, slices.Index(b.tokens[i+1:], ";"))])
		if len(e) > 1 && e[0] == name || len(e) == 1 && slices.ContainsFunc(b.assignments(), func(a assignment) bool {
			return len(a.value) > 1 && a.value[0] == name && len(a.to) > 0 && a.to[len(a.to)-1] == e[0]
		}) {
			return true
		}
	}
	return false
}

func both(a, b []bool) (list []bool) {
	for i := range min(len(a), len(b)) {
		list = append(list, a[i] && b[i])
	}
	return list
}

func either(a, b []bool) []bool {
	if len(a) < len(b) {
		a, b = b, a
	}
	for i := range b {
		a[i] = a[i] || b[i]
	}
	return a
}
