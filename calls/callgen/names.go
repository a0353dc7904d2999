package main

import (
	"go/token"
	"regexp"
	"strings"
	"unicode"
)

var (
	identifier = regexp.MustCompile(`[A-Za-z_]\w*`)
	inStars    = regexp.MustCompile(`\(\s*\*+\s*([A-Za-z_]\w*)\s*\)`)
)

// taken are names that the written code uses for itself.
var taken = map[string]bool{"c": true, "w": true, "r": true, "C": true, "calls": true, "math": true, "unsafe": true,
	"uint64": true, "float64": true, "append": true,
	"w0": true, "w1": true, "w2": true, "is0": true, "is1": true, "is2": true}

// notNames are words that end the declaration of a parameter without a name.
var notNames = map[string]bool{
	"char": true, "short": true, "int": true, "long": true, "float": true, "double": true, "void": true,
	"signed": true, "unsigned": true, "_Bool": true, "const": true, "restrict": true, "__restrict": true, "volatile": true,
}

// nameParams gives the parameters the names that they have in the preprocessed text, if all of
// a declaration have one.
func (f *function) nameParams(text string) {
	re := regexp.MustCompile(`\b` + f.name + `\s*\(`)
	for _, at := range re.FindAllStringIndex(text, -1) {
		params, ok := parameters(text[at[1]:])
		if !ok || len(params) != len(f.params) {
			continue
		}
		var names []string
		used := map[string]bool{}
		for _, p := range params {
			name := goName(paramName(p))
			if name == "" || used[name] {
				break
			}
			used[name] = true
			names = append(names, name)
		}
		if len(names) == len(f.params) {
			for i, name := range names {
				f.params[i].name = name
			}
			return
		}
	}
}

// parameters splits what is behind an opening parenthesis, up to the closing one.
func parameters(text string) (list []string, ok bool) {
	depth, begin := 0, 0
	for i, c := range text {
		switch c {
		case '(', '[':
			depth++
		case ']':
			depth--
		case ')':
			if depth == 0 {
				return append(list, text[begin:i]), true
			}
			depth--
		case ',':
			if depth == 0 {
				list, begin = append(list, text[begin:i]), i+1
			}
		case ';', '{', '}':
			return nil, false
		}
	}
	return nil, false
}

// paramName returns the name in a declaration, "" if it has none.
func paramName(text string) string {
	if m := inStars.FindStringSubmatch(text); m != nil {
		return m[1]
	}
	text, _, _ = strings.Cut(text, "[")
	text = strings.TrimSpace(text)
	all := identifier.FindAllStringIndex(text, -1)
	if len(all) < 2 && !strings.Contains(text, "*") || len(all) == 0 {
		return ""
	}
	last := all[len(all)-1]
	if name := text[last[0]:last[1]]; last[1] == len(text) && !notNames[name] {
		before := identifier.FindAllString(text[:last[0]], -1)
		if n := len(before); n > 0 && (before[n-1] == "struct" || before[n-1] == "union" || before[n-1] == "enum") {
			return ""
		}
		return name
	}
	return ""
}

// goName makes a name of a parameter from one of C.
func goName(name string) string {
	name = camel(strings.TrimLeft(name, "_"))
	if name == "" {
		return ""
	}
	runes := []rune(name)
	if len(runes) == 1 || !unicode.IsUpper(runes[1]) {
		runes[0] = unicode.ToLower(runes[0])
	}
	name = string(runes)
	if token.IsKeyword(name) || taken[name] {
		name += "0"
	}
	return name
}

// camel joins the words of a name, each but the first with a capital.
func camel(name string) string {
	var b strings.Builder
	up := false
	for _, r := range name {
		if r == '_' {
			up = true
			continue
		}
		if up {
			r = unicode.ToUpper(r)
		}
		up = false
		b.WriteRune(r)
	}
	return b.String()
}

// method returns the name of the Go method for a C function.
func (j *job) method(name string) string {
	runes := []rune(camel(strings.TrimLeft(strings.TrimPrefix(name, j.strip), "_")))
	if len(runes) == 0 || !unicode.IsLetter(runes[0]) {
		runes = []rune(camel(name))
	}
	if len(runes) == 0 || !unicode.IsLetter(runes[0]) {
		runes = append([]rune{'F'}, runes...) // C has such names: _, _1
	}
	runes[0] = unicode.ToUpper(runes[0])
	return string(runes)
}
