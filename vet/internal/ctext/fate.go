package ctext

import (
	"regexp"
	"slices"
	"strings"
)

// stored reports whether a value with one of the names is put where others find it when the function has returned, and whether that is
// a variable outside of it, or what one points to. What the parameter but points to does not count.
func (b *body) stored(names []string, but string) (kept, outside bool) {
	if b.plus {
		return false, false // the field may be a string, which has a copy
	}
	for _, a := range b.assignments() {
		if len(a.value) != 1 || !slices.Contains(names, a.value[0]) || len(a.to) == 0 || slices.Equal(a.to, []string{"*", but}) {
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
	reads   = regexp.MustCompile(`^(str(n?dup|n?len|n?cmp|n?casecmp|n?cpy|n?cat|chr|rchr|str|to\w+)|mem(cpy|move|cmp|set|chr)|ato[ifl]+|[sf]?n?printf|f?puts|fopen|open|stat|access|unlink)$`)
	lists   = regexp.MustCompile(`(?i)(add|insert|append|push|register|queue|attach|put|link)`)
)

// fate says what becomes of a parameter.
func (b *body) fate(name string) (frees, keeps, returns, takes, passes bool) {
	if name == "" || b.assigned(name) {
		return false, false, false, false, false
	}
	names := b.same(name)
	counted := false
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
			if counted = counted || strings.HasSuffix(c.name, "_ref"); counted {
				takes = false
			}
			fn, known := b.Functions.at(c.name, b.depth-1)
			if known && arg < len(fn.Frees) {
				frees, keeps, takes = frees || fn.Frees[arg], keeps || fn.Keeps[arg], takes || fn.Takes[arg] && !counted
				passes = passes || fn.Passes[arg]
			} else if !known {
				frees, takes = frees || b.Ends(c.name), takes || !counted && b.Takes != nil && b.Takes(c.name, arg)
				passes = passes || !reads.MatchString(c.name)
			}
			for other, e := range c.args { // set(x, s, free)
				if len(e) == 2 && e[0] == "&" {
					e = e[1:] // &free
				}
				takes = takes || arg > 0 && other > arg && slices.Equal(e, []string{"free"})
				keeps = keeps || other != arg && len(e) == 1 && freeing.MatchString(e[0]) && !slices.Contains(b.params, e[0])
			}
		}
	}
	kept, _ := b.stored(names, "")
	return frees, keeps || kept || takes, returns, takes, passes
}

// returned reports whether a body returns a variable.
func (b *body) returned(v string) bool {
	for i, t := range b.tokens {
		if t == "return" && b.at(i+1) == v && b.at(i+2) == ";" {
			return true
		}
	}
	return false
}

// makes reports whether a body puts nothing but NULL and memory that it has allocated where a parameter points to.
func (b *body) makes(name string) (found bool) {
	for _, a := range b.assignments() {
		switch {
		case !slices.Equal(a.to, []string{"*", name}) || isNull(a.value):
		case !b.allocation(a.value) && !(len(a.value) == 1 && b.fresh(a.value[0], name) && !b.returned(a.value[0])):
			return false
		default:
			found = true
		}
	}
	return found && !has(b.tokens, "static") && b.onlyMakes(name)
}

// onlyMakes reports whether a body uses a parameter for nothing but *p = value and to compare it with NULL.
func (b *body) onlyMakes(name string) bool {
	for i, t := range b.tokens {
		if t != name {
			continue
		}
		prev, next := b.at(i-1), b.at(i+1)
		assigned := prev == "*" && next == "="
		asked := prev == "!" || next == "==" || next == "!=" || (prev == "(" || prev == "&&") && (next == ")" || next == "&&") && b.condition(b.closes(i-1))
		if !assigned && !asked {
			return false
		}
	}
	return true
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
			case b.allocation(e), len(e) == 1 && b.fresh(e[0], ""):
				found = true
			default:
				return false
			}
		}
	}
	return found
}

// fresh reports whether a variable has nothing but memory that the body has allocated and not given away, but for what a parameter points to.
func (b *body) fresh(v, but string) bool {
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
	if kept, _ := b.stored(names, but); kept {
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
