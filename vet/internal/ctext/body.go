package ctext

import (
	"regexp"
	"slices"
	"strings"
)

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
		if t != name || array && b.at(i+1) != "[" {
			continue
		}
		stars := i - 1
		for b.at(stars) == "*" {
			stars--
		}
		if !isWord(b.at(stars)) || keyword[b.at(stars)] {
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
