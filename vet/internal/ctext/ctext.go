// Package ctext reads definitions of functions in C, as far as one can without a compiler: which
// parameters a function frees or keeps, and whether it returns what malloc has returned.
//
// It sees tokens. It follows no macro, and no type. So it says of a function what its text says
// plainly, and nothing of the others.
package ctext

import (
	"regexp"
	"slices"
	"strings"
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
			frees, keeps, returns, takes := b.fate(p)
			_, outside := b.stored(b.same(p))
			fn.Outside = append(fn.Outside, outside)
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
		all.Outside = either(all.Outside, fn.Outside)
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

func either(a, b []bool) []bool {
	if len(a) < len(b) {
		a, b = b, a
	}
	for i := range b {
		a[i] = a[i] || b[i]
	}
	return a
}

var word = regexp.MustCompile(`\w+`)

// parameters returns the names of parameters, "" where there is none.
func parameters(text string) (names []string) {
	depth, from := 0, 0
	add := func(param string) {
		param, _, _ = strings.Cut(param, "[")
		if _, pointer, ok := strings.Cut(param, "(*"); ok { // to a function
			param, _, _ = strings.Cut(pointer, ")")
		}
		words := word.FindAllString(param, -1)
		if len(words) == 0 {
			words = []string{""}
		}
		names = append(names, words[len(words)-1])
	}
	for i, c := range text {
		switch c {
		case '(':
			depth++
		case ')':
			depth--
		case ',':
			if depth == 0 {
				add(text[from:i])
				from = i + 1
			}
		}
	}
	add(text[from:])
	return names
}

// A body has the tokens of a function, without the outer braces.
type body struct {
	*Functions
	name   string
	tokens []string
	params []string
	plus   bool
	depth  int
}

var token = regexp.MustCompile(`(?s)/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|(?m:^[ \t]*#(?:\\\n|[^\n])*)|\w+|->|[=!<>+\-*/%&|^]=|&&|\|\||\+\+|--|::|\S`)

func (f *Functions) body(d definition, depth int) *body {
	b := &body{Functions: f, params: parameters(d.params), plus: d.plus, depth: depth}
	braces := 0
	for rest := d.text; rest != ""; {
		m := token.FindStringIndex(rest)
		if m == nil {
			break
		}
		t := rest[m[0]:m[1]]
		rest = rest[m[1]:]
		switch {
		case strings.HasPrefix(t, "/*"), strings.HasPrefix(t, "//"), strings.HasPrefix(strings.TrimLeft(t, " \t"), "#"):
			continue
		case t == "{":
			braces++
		case t == "}":
			if braces--; braces == 0 {
				return b
			}
		}
		if braces > 1 || t != "{" {
			b.tokens = append(b.tokens, t)
		}
	}
	return b
}

// at returns a token, "" where there is none.
func (b *body) at(i int) string {
	if i < 0 || i >= len(b.tokens) {
		return ""
	}
	return b.tokens[i]
}

func isWord(t string) bool { return t != "" && word.MatchString(t[:1]) }

// keyword has the words that are neither types nor functions.
var keyword = map[string]bool{
	"return": true, "else": true, "case": true, "goto": true, "do": true, "sizeof": true, "if": true, "for": true, "while": true, "switch": true, "catch": true,
}

// closes returns where the parenthesis that opens at i is closed.
func (b *body) closes(i int) int {
	depth := 0
	for ; i < len(b.tokens); i++ {
		switch b.tokens[i] {
		case "(":
			depth++
		case ")":
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return len(b.tokens)
}

// plain returns the tokens of an expression without casts and parentheses around it.
func plain(e []string) []string {
	for len(e) > 0 && e[0] == "(" {
		depth, end := 0, -1
		for i, t := range e {
			if t == "(" {
				depth++
			} else if t == ")" {
				if depth--; depth == 0 {
					end = i
					break
				}
			}
		}
		switch {
		case end < 0:
			return e
		case end == len(e)-1:
			e = e[1:end]
		default:
			e = e[end+1:] // a cast
		}
	}
	return e
}

// A call is one in a body.
type call struct {
	name string
	args [][]string // plain
	from int        // the token with the name
	end  int        // that of the last parenthesis
}

// callAt returns the call whose function is named by token i.
func (b *body) callAt(i int) (c call, ok bool) {
	if !isWord(b.at(i)) || keyword[b.at(i)] || b.at(i+1) != "(" {
		return c, false
	}
	c = call{name: b.at(i), from: i, end: b.closes(i + 1)}
	depth, from := 0, i+2
	for j := i + 2; j <= c.end; j++ {
		switch t := b.at(j); {
		case j == c.end, t == "," && depth == 0:
			if j > from {
				c.args = append(c.args, plain(b.tokens[from:min(j, len(b.tokens))]))
			}
			from = j + 1
		case t == "(" || t == "[" || t == "{":
			depth++
		case t == ")" || t == "]" || t == "}":
			depth--
		}
	}
	return c, true
}

// An assignment is a statement or an initializer x = value.
type assignment struct {
	to    []string // from the beginning of the statement
	value []string // plain
	from  int      // the token =
}

// assignments returns those of a body.
func (b *body) assignments() (list []assignment) {
	for i, t := range b.tokens {
		if t != "=" {
			continue
		}
		from, depth := i, 0
		for from > 0 {
			prev := b.tokens[from-1]
			if depth == 0 && (prev == ";" || prev == "{" || prev == "}" || prev == "(" || prev == "," || prev == ":" || prev == "else" || prev == ")" && b.condition(from-1)) {
				break
			}
			switch prev {
			case ")", "]":
				depth++
			case "(", "[":
				depth--
			}
			from--
		}
		end := i + 1
		for depth = 0; end < len(b.tokens); end++ {
			t := b.tokens[end]
			if depth == 0 && (t == ";" || t == "," || t == ")" || t == "}") {
				break
			}
			switch t {
			case "(", "[", "{":
				depth++
			case ")", "]", "}":
				depth--
			}
		}
		list = append(list, assignment{b.tokens[from:i], plain(b.tokens[i+1 : end]), i})
	}
	return list
}

// condition reports whether the parenthesis that ends at i is that of an if, a for or a while.
func (b *body) condition(i int) bool {
	depth := 0
	for ; i >= 0; i-- {
		switch b.tokens[i] {
		case ")":
			depth++
		case "(":
			if depth--; depth == 0 {
				t := b.at(i - 1)
				return t == "if" || t == "for" || t == "while" || t == "switch"
			}
		}
	}
	return false
}

// declares reports whether the body declares a variable, or, with array, an array.
func (b *body) declares(name string, array bool) bool {
	for i, t := range b.tokens {
		prev := b.at(i - 1)
		if t != name || array && b.at(i+1) != "[" {
			continue
		}
		stars := i - 1
		for b.at(stars) == "*" {
			stars--
		}
		if !isWord(b.at(stars)) || keyword[b.at(stars)] {
			if prev != "," { // int a, b;
				continue
			}
			continue
		}
		switch b.at(i + 1) {
		case ";", "=", "[", ",", ":":
			return true
		}
	}
	return false
}

// root returns the variable that an expression on the left begins with: a in a->b, *a and a[0].
func root(e []string) string {
	for _, t := range e {
		if isWord(t) {
			return t
		}
		if t != "*" && t != "(" {
			break
		}
	}
	return ""
}

// same are the names that a value has in a body: that of the parameter or the variable, and those of local variables that
// are given it.
func (b *body) same(name string) []string {
	names := []string{name}
	for range 3 {
		for _, a := range b.assignments() {
			if len(a.value) != 1 || !slices.Contains(names, a.value[0]) || len(a.to) == 0 {
				continue
			}
			v := a.to[len(a.to)-1]
			local := len(a.to) > 1 && !has(a.to, "->", ".", "[") && isWord(a.to[0]) || len(a.to) == 1 && b.declares(v, false)
			if local && isWord(v) && !slices.Contains(names, v) {
				names = append(names, v)
			}
		}
	}
	return names
}

func has(list []string, any ...string) bool {
	return slices.ContainsFunc(list, func(t string) bool { return slices.Contains(any, t) })
}

// stored reports whether a value with one of the names is put where others find it when the function has returned, and whether that is
// a variable outside of it, or what one points to.
func (b *body) stored(names []string) (kept, outside bool) {
	if b.plus {
		return false, false // the field may be a string, which has a copy
	}
	for _, a := range b.assignments() {
		if len(a.value) != 1 || !slices.Contains(names, a.value[0]) || len(a.to) == 0 {
			continue
		}
		v := root(a.to)
		other := !b.declares(v, a.to[len(a.to)-1] == "]") && !slices.Contains(b.params, v)
		outside = outside || other && v != "" && !b.declares(v, false)
		switch {
		case has(a.to, "->"), a.to[0] == "*", a.to[0] == "(":
			kept = true
		case a.to[len(a.to)-1] == "]":
			kept = kept || !b.declares(v, true)
		case has(a.to, "."), len(a.to) == 1:
			kept = kept || other
		}
	}
	return kept, outside
}

// assigned reports whether a parameter gets another value, as in name = lower(name).
func (b *body) assigned(name string) bool {
	return slices.ContainsFunc(b.assignments(), func(a assignment) bool { return len(a.to) == 1 && a.to[0] == name })
}

var (
	freeing = regexp.MustCompile(`(?i)free`)
	lists   = regexp.MustCompile(`(?i)(add|insert|append|push|register|queue|attach|put|link)`)
)

// fate says what becomes of a parameter.
func (b *body) fate(name string) (frees, keeps, returns, takes bool) {
	if name == "" || b.assigned(name) {
		return false, false, false, false
	}
	names := b.same(name)
	is := func(e []string) bool { return len(e) == 1 && slices.Contains(names, e[0]) }
	for i, t := range b.tokens {
		switch {
		case t == "return":
			end := i + 1
			for end < len(b.tokens) && b.tokens[end] != ";" {
				end++
			}
			e := plain(b.tokens[i+1 : end])
			into := len(e) > 1 && (is(e[:1]) && (e[1] == "+" || e[1] == "-") || e[0] == "&" && is(e[1:2]))
			cast := len(e) == 4 && e[1] == "(" && e[0] == strings.ToUpper(e[0]) && is(e[2:3]) // GTK_WIDGET(p)
			returns, keeps = returns || is(e) || cast, keeps || into
		case t == "delete":
			j := i + 1
			for b.at(j) == "[" || b.at(j) == "]" {
				j++
			}
			frees = frees || slices.Contains(names, b.at(j)) && b.at(j+1) == ";"
		}
		c, ok := b.callAt(i)
		if !ok {
			continue
		}
		for arg, e := range c.args {
			if !is(e) {
				continue
			}
			fn, known := b.Functions.at(c.name, b.depth-1)
			if known && arg < len(fn.Frees) {
				frees, keeps = frees || fn.Frees[arg], keeps || fn.Keeps[arg]
			} else if !known {
				frees = frees || b.Ends(c.name)
			}
			for other, e := range c.args { // set(x, s, free)
				takes = takes || arg > 0 && other > arg && slices.Equal(e, []string{"free"})
				keeps = keeps || other != arg && len(e) == 1 && freeing.MatchString(e[0]) && !slices.Contains(b.params, e[0])
			}
		}
	}
	kept, _ := b.stored(names)
	return frees, keeps || kept, returns, takes
}

var allocators = map[string]bool{"malloc": true, "calloc": true, "realloc": true, "strdup": true, "strndup": true}

// allocation reports whether an expression is a call that allocates.
func (b *body) allocation(e []string) bool {
	if len(e) < 3 || !isWord(e[0]) || e[1] != "(" || e[len(e)-1] != ")" {
		return false
	}
	depth := 0
	for i, t := range e[1:] {
		if t == "(" {
			depth++
		} else if t == ")" {
			if depth--; depth == 0 && i+1 < len(e)-1 {
				return false // more than the call
			}
		}
	}
	if allocators[e[0]] || e[0] == b.name { // what the function itself returns, or in C++ another one of that name
		return true
	}
	fn, ok := b.Functions.at(e[0], b.depth-1)
	return ok && fn.Allocates
}

func isNull(e []string) bool {
	return len(e) == 1 && (e[0] == "NULL" || e[0] == "0" || e[0] == "nullptr")
}

var pointer = regexp.MustCompile(`\*\s*(const\s*|restrict\s*)?$`)

// allocates reports whether each return statement returns nothing, or memory that the function has made and that nothing else has.
func (b *body) allocates(d definition) bool {
	if !pointer.MatchString(d.before) || has(b.tokens, "static") { // a cache, perhaps
		return false
	}
	found := false
	for i, t := range b.tokens {
		if t != "return" {
			continue
		}
		end := i + 1
		for end < len(b.tokens) && b.tokens[end] != ";" {
			end++
		}
		list := [][]string{b.tokens[i+1 : end]}
		if q, c := slices.Index(list[0], "?"), slices.Index(list[0], ":"); 0 <= q && q < c {
			list = [][]string{list[0][q+1 : c], list[0][c+1:]}
		}
		for _, e := range list {
			switch e := plain(e); {
			case isNull(e):
			case b.allocation(e), len(e) == 1 && b.fresh(e[0]):
				found = true
			default:
				return false
			}
		}
	}
	return found
}

// fresh reports whether a variable has nothing but memory that the body has allocated and not given away.
func (b *body) fresh(v string) bool {
	if !b.declares(v, false) {
		return false
	}
	made := false
	for _, a := range b.assignments() {
		if len(a.to) == 0 || a.to[len(a.to)-1] != v || has(a.to, "->", ".", "[") || a.to[0] == "*" {
			continue
		}
		if b.allocation(a.value) {
			made = true
		} else if !isNull(a.value) {
			return false
		}
	}
	names := b.same(v)
	if kept, _ := b.stored(names); kept {
		return false
	}
	for i := range b.tokens {
		c, ok := b.callAt(i)
		if !ok {
			continue
		}
		for _, e := range c.args {
			switch {
			case len(e) == 2 && e[0] == "&" && e[1] == v:
				if c.name != "asprintf" && c.name != "vasprintf" {
					return false
				}
				made = true
			case len(e) != 1 || !slices.Contains(names, e[0]):
			case b.Ends(c.name):
				next := b.tokens[min(c.end+2, len(b.tokens)):]
				gone := len(next) > 2 && (next[0] == "return" && isNull(next[1:2]) || next[0] == v && next[1] == "=" && isNull(next[2:3]))
				if !gone && !allocators[c.name] {
					return false
				}
			case lists.MatchString(c.name):
				return false
			}
		}
	}
	return made
}
